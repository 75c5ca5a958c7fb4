"""`hubbub backup`, `verify` and `restore`: an installation kept, and made again."""

import argparse
import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from hubbub.cli.backup.archive import (
    Lock,
    Opener,
    lock_for,
    lock_with,
    open_by,
    open_with,
    pack,
    unpack,
)
from hubbub.cli.backup.loading import copy_into, loaded, number_of_keys, refuse_keys
from hubbub.cli.backup.manifest import ROLES, read_checked, write_manifest
from hubbub.cli.backup.snapshot import read_together
from hubbub.cli.local.embedded_redis import EmbeddedRedis, url_of
from hubbub.cli.local.redis_programs import Server
from hubbub.cli.terminal.output import say
from hubbub.cli.terminal.progress import progress
from hubbub.cli.terminal.service_client import nothing_runs
from hubbub.errors import BackupUnusable, ServiceUnavailable, StateUnusable, StoreUnavailable
from hubbub.errors.text_files import read_text
from hubbub.runtime import redis_url

_SETTINGS_BY_ROLE: Final = {
    "shuffler": "HUBBUB_SHUFFLER_REDIS_URL",
    "aggregator": "HUBBUB_AGGREGATOR_REDIS_URL",
}
_URLS: Final = (
    "The URLs of both Redis, with the user operator, come from HUBBUB_SHUFFLER_REDIS_URL and "
    "HUBBUB_AGGREGATOR_REDIS_URL"
)


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the three to the command line."""
    backup = commands.add_parser(
        "backup",
        description="Copies a running installation into a new folder: what both Redis held at one "
        "moment, and the installation's files, encrypted, with a checksum of each part.",
        epilog=f"{_URLS}; for a folder of `hubbub up` they are known.",
    )
    _folder(backup, "a new one, for the backup")
    backup.add_argument(
        "--home",
        type=Path,
        default=Path(".hubbub"),
        metavar="INSTALLATION",
        help="the folder of `hubbub up` or `hubbub init` (%(default)s)",
    )
    locks = backup.add_mutually_exclusive_group(required=True)
    locks.add_argument(
        "--passphrase",
        type=Path,
        metavar="FILE",
        help="encrypts to what is in this file, of 12 characters at least",
    )
    locks.add_argument(
        "--for",
        dest="recipient",
        metavar="age1...",
        help="encrypts to a public key of age, as age-keygen prints it",
    )
    backup.set_defaults(run=_backup)
    verify = commands.add_parser(
        "verify",
        description="Checks that every part of a backup is as it was written, and that a Redis "
        "reads it; with a passphrase or a key also that the files open by it.",
    )
    _folder(verify, "the backup")
    _openers(verify)
    verify.set_defaults(run=_verify)
    restore = commands.add_parser(
        "restore",
        description="Checks a backup and makes an installation from it, in a new folder and in "
        "empty Redis. Nothing is overwritten. docs/operate/restore.md says what follows.",
        epilog=f"{_URLS}; a folder of `hubbub up` has its own.",
    )
    _folder(restore, "the backup")
    where = restore.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--home",
        type=Path,
        metavar="INSTALLATION",
        help="the files into this new folder; of `hubbub up`, with its Redis",
    )
    where.add_argument("--redis", action="store_true", help="what the Redis held, into both Redis")
    _openers(restore)
    restore.set_defaults(run=_restore)


def _folder(parser: argparse.ArgumentParser, purpose: str) -> None:
    parser.add_argument("folder", type=Path, help=purpose)


def _openers(parser: argparse.ArgumentParser) -> None:
    openers = parser.add_mutually_exclusive_group()
    openers.add_argument("--passphrase", type=Path, metavar="FILE", help="a file that holds it")
    openers.add_argument("--identity", type=Path, metavar="FILE", help="a private key of age")


def _backup(arguments: argparse.Namespace) -> int:
    folder, home = arguments.folder, arguments.home
    lock = _lock(arguments)
    if not home.is_dir():
        raise StateUnusable(f"{home}: is no folder; name that of `hubbub up` or `hubbub init`")
    urls = {role: _url(role, home) for role in ROLES}
    _make_empty(folder)
    try:
        with ExitStack() as stack, _bars("bytes") as on:
            files = {role: stack.enter_context(_rdb(folder, role).open("xb")) for role in ROLES}
            asyncio.run(read_together(urls, files, on))
        absent = pack(home, folder / "installation.age", lock, arguments.passphrase)
        write_manifest(folder, version("hubbub"))
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)  # half a backup is none
        if isinstance(error, StoreUnavailable) and url_of(home, "aggregator"):
            raise ServiceUnavailable(nothing_runs(home)) from error
        if isinstance(error, OSError):
            what = f"{error.filename}: cannot be written: {error.strerror}"
            raise StateUnusable(what) from error
        raise
    size = sum(path.stat().st_size for path in folder.iterdir())
    say(f"{folder}: {size:,} bytes, made {read_checked(folder).made}")
    if absent:
        say(f"not in installation.age, as Redis' data, logs or secrets: {', '.join(absent)}")
    for role in ROLES:
        say(f"{role}.rdb: {_needs(folder, role)}")
    say("keep the passphrase or the private key elsewhere: without it no key comes back")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    folder = arguments.folder
    made, opener = read_checked(folder), _opener(arguments)
    if opener is not None:
        number = unpack(folder / "installation.age", opener, None)
        say(f"installation.age: opens, {number:,} files")
    for role in ROLES:
        with loaded(_rdb(folder, role)) as server:
            number = asyncio.run(number_of_keys(server.url))
        say(f"{role}.rdb: {number:,} keys, {_needs(folder, role)}")
    say(f"{folder}: whole, made {made.made} by hubbub {made.version}")
    if opener is None:
        say("installation.age: as it was written; whether it opens, --passphrase or --identity say")
    return 0


def _restore(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    made = read_checked(folder)
    if arguments.redis:
        _fill({role: _url(role, None) for role in ROLES}, folder)
    else:
        home, opener = arguments.home, _opener(arguments)
        if opener is None:
            raise BackupUnusable("the files are encrypted; give --passphrase or --identity")
        _make_empty(home)
        unpack(folder / "installation.age", opener, home)
        if (home / "compose.yaml").exists() or (home / "redis").exists():
            say(f"{home}: the files are back")
            say(f"next: start both Redis of it, nothing else, and: hubbub restore {folder} --redis")
            return 0
        with ExitStack() as stack:
            urls = {}
            for role in ROLES:
                server = EmbeddedRedis((home / f"redis-{role}").absolute())
                stack.callback(server.stop)
                urls[role] = server.url
            _fill(urls, folder)
    say(f"restored, as of {made.made}; the services may start")
    say("reports that were acknowledged since do not come again (docs/operate/restore.md)")
    return 0


def _fill(urls: dict[str, str], folder: Path) -> None:
    """Put both files into empty servers; both are looked at before either is written to."""
    for role, url in urls.items():
        asyncio.run(refuse_keys(url, role))
    with _bars("keys") as on:
        for role, url in urls.items():
            with loaded(_rdb(folder, role)) as held:
                asyncio.run(copy_into(held.url, url, f"{role}:", partial(on, role)))


def _needs(folder: Path, role: str) -> str:
    """Which server reads a backup's file here."""
    writer = Server.writer_of(_rdb(folder, role))
    return f"verify and restore need {writer} or newer here" if writer else "any Redis reads it"


def _rdb(folder: Path, role: str) -> Path:
    return folder / f"{role}.rdb"


def _url(role: str, home: Path | None) -> str:
    """Of a folder of `hubbub up`, else of the environment."""
    return (url_of(home, role) if home else None) or redis_url(_SETTINGS_BY_ROLE[role])


def _make_empty(folder: Path) -> None:
    """A folder that nothing is in, for us alone."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        taken = any(folder.iterdir())
    except OSError as error:
        raise StateUnusable(f"{folder}: {error.strerror}; give a writable folder") from error
    if taken:
        raise BackupUnusable(f"{folder}: is not empty; nothing is overwritten: give a new folder")


def _lock(arguments: argparse.Namespace) -> Lock:
    if arguments.recipient is not None:
        return lock_for(arguments.recipient)
    return lock_with(_secret(arguments.passphrase))


def _opener(arguments: argparse.Namespace) -> Opener | None:
    if arguments.identity is not None:
        return open_by(_secret(arguments.identity))
    return None if arguments.passphrase is None else open_with(_secret(arguments.passphrase))


def _secret(path: Path) -> str:
    try:
        return read_text(path).strip()
    except ValueError as error:
        raise BackupUnusable(str(error)) from error


@contextmanager
def _bars(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """Progress by role on a terminal."""
    with progress() as shown:
        tasks = {role: shown.add_task(f"{role}, {what}", total=None) for role in ROLES}

        def on(role: str, done: int, total: int) -> None:
            shown.update(tasks[role], completed=done, total=total)

        yield on
