"""`hubbub backup`, `verify` and `restore`: copies an installation, and makes it again."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from hubbub.cli.terminal.output import say
from hubbub.cli.terminal.progress import progress
from hubbub.errors import BackupUnusable, ServiceUnavailable, StateUnusable, StoreUnavailable
from hubbub.installation import archive, redis_snapshot
from hubbub.installation.embedded_redis import EmbeddedRedis, Server, url_of
from hubbub.installation.running_endpoints import HOME, nothing_runs
from hubbub.programs.atomic_write import refuse_unwritable
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import Exclusive, argument, option, options
from hubbub.programs.text_files import read_text
from hubbub.runtime.service_options import redis_url

_SETTINGS_BY_ROLE: Final = {
    "shuffler": "HUBBUB_SHUFFLER_REDIS_URL",
    "aggregator": "HUBBUB_AGGREGATOR_REDIS_URL",
}
ROLES: Final = (*_SETTINGS_BY_ROLE,)
_ENCRYPTION: Final = Exclusive(required=True)
_OPENER: Final = Exclusive()
_WHERE: Final = Exclusive(required=True)
_URLS: Final = (
    "For an installation of `hubbub init`, set HUBBUB_SHUFFLER_REDIS_URL and "
    'HUBBUB_AGGREGATOR_REDIS_URL, with the user "operator".'
)


@options
class OpenerOptions:
    """Options for decrypting the files of a backup."""

    passphrase: Path | None = option(
        "file that contains the passphrase", metavar="FILE", exclusive=_OPENER
    )
    identity: Path | None = option(
        "file of a private key of age", metavar="FILE", exclusive=_OPENER
    )

    def opener(self) -> archive.Opener | None:
        """What decrypts them; None if neither option is given."""
        if self.identity:
            return archive.key_opener(_secret(self.identity))
        return archive.passphrase_opener(_secret(self.passphrase)) if self.passphrase else None


@command(
    "backup",
    description="Copies a running installation into a new folder: the contents of both Redis "
    "at one moment, and the files of the installation, encrypted, with a checksum "
    "of each part.",
    epilog=_URLS,
)
def _backup(
    folder: Path = argument("new folder for the backup"),
    home: Path = option(
        "the folder of `hubbub up` or `hubbub init` (%(default)s)",
        default=HOME,
        metavar="INSTALLATION",
    ),
    passphrase: Path | None = option(
        "encrypt with the passphrase in this file, which has at least 12 characters",
        metavar="FILE",
        exclusive=_ENCRYPTION,
    ),
    recipient: str = option(
        "encrypt to a public key of age, as age-keygen prints it",
        name="--for",
        default="",
        metavar="age1...",
        exclusive=_ENCRYPTION,
    ),
) -> None:
    encryption = (
        archive.encryption_by(_secret(passphrase))
        if passphrase
        else archive.encryption_to(recipient)
    )
    if not home.is_dir():
        raise StateUnusable(f"{home}: is not a folder; give that of `hubbub up` or `hubbub init`")
    urls = {role: _url(role, home) for role in ROLES}
    try:
        with _new_folder(folder), refuse_unwritable(folder, StateUnusable):
            with ExitStack() as stack, _bars("bytes") as progress:
                files = {role: stack.enter_context(_rdb(folder, role).open("xb")) for role in ROLES}
                asyncio.run(redis_snapshot.read_together(urls, files, progress))
            absent = archive.pack(home, folder / "installation.age", encryption, passphrase)
            archive.write_manifest(folder)
    except StoreUnavailable as error:
        if url_of(home, "aggregator"):
            raise ServiceUnavailable(nothing_runs(home)) from error
        raise
    size = sum(path.stat().st_size for path in folder.iterdir())
    say(f"{folder}: {size:,} bytes, made {archive.read_checked(folder)['made']}")
    if absent:
        say(f"left out of installation.age (Redis' data, logs, secrets): {', '.join(absent)}")
    for role in ROLES:
        say(f"{role}.rdb: {_needs(folder, role)}")
    say("keep the passphrase or the private key elsewhere: without it the keys cannot be restored")


@command(
    "verify",
    description="Checks that every part of a backup is unchanged, and that a Redis reads it; "
    "with a passphrase or a key also that it opens the files.",
)
def _verify(*, folder: Path = argument("the backup"), key: OpenerOptions) -> None:
    manifest, opener = archive.read_checked(folder), key.opener()
    for path in sorted(folder.iterdir()):
        if path.name not in archive.PARTS:
            say(f"{path}: is no part of the backup; it is not checked, and not restored")
    if opener is not None:
        number = archive.unpack(folder / "installation.age", opener, None)
        say(f"installation.age: opens, {number:,} files")
    for role in ROLES:
        with redis_snapshot.loaded_server(_rdb(folder, role)) as server:
            number = asyncio.run(redis_snapshot.number_of_keys(server.url))
        say(f"{role}.rdb: {number:,} keys, {_needs(folder, role)}")
    say(f"{folder}: complete and unchanged, made {manifest['made']} by hubbub {manifest['hubbub']}")
    if opener is None:
        say("installation.age: unchanged; to check that it opens, give --passphrase or --identity")


@command(
    "restore",
    description="Checks a backup and makes an installation from it, in a new folder and in "
    "empty Redis. It overwrites nothing. The next steps are in "
    "docs/operate/restore.md.",
    epilog=_URLS,
)
def _restore(
    *,
    folder: Path = argument("the backup"),
    home: Path | None = option(
        "new folder for the files, and for an installation of `hubbub up` also for its Redis",
        metavar="INSTALLATION",
        exclusive=_WHERE,
    ),
    redis: bool = option("also restore the contents of both Redis", exclusive=_WHERE),
    key: OpenerOptions,
) -> None:
    manifest = archive.read_checked(folder)
    if redis or home is None:
        _fill({role: _url(role, None) for role in ROLES}, folder)
    else:
        opener = key.opener()
        if opener is None:
            raise BackupUnusable("the files are encrypted; give --passphrase or --identity")
        with _new_folder(home), ExitStack() as stack:
            archive.unpack(folder / "installation.age", opener, home)
            if (home / "compose.yaml").exists() or (home / "redis").exists():
                say(f"{home}: files restored")
                say(f"next: start only its two Redis, then run: hubbub restore {folder} --redis")
                return
            servers = {}
            for role in ROLES:
                servers[role] = EmbeddedRedis((home / f"redis-{role}").absolute())
                stack.callback(servers[role].stop)
            try:
                _fill({role: server.url for role, server in servers.items()}, folder)
            except StoreUnavailable as error:
                # A full disk ends Redis, whose log has no room to say so.
                raise StateUnusable(
                    f"{home}: its Redis ended while it was filled; its disk had "
                    f"{shutil.disk_usage(home).free:,} bytes left: make room there, and restore "
                    f"again ({error})"
                ) from error
    say(f"restored to {manifest['made']}; now start the services")
    say("reports acknowledged after that are lost (docs/operate/restore.md)")


def _fill(urls: dict[str, str], folder: Path) -> None:
    """Loads both files into empty servers, after checking both servers."""
    for role, url in urls.items():
        asyncio.run(redis_snapshot.refuse_keys(url, role))
    with _bars("keys") as progress:
        for role, url in urls.items():
            with redis_snapshot.loaded_server(_rdb(folder, role)) as source:
                asyncio.run(
                    redis_snapshot.copy_into(source.url, url, f"{role}:", partial(progress, role))
                )


def _needs(folder: Path, role: str) -> str:
    """Says which server program reads a backup's file here."""
    writer = Server.writer_of(_rdb(folder, role))
    return f"verify and restore need {writer} or newer here" if writer else "any Redis reads it"


def _rdb(folder: Path, role: str) -> Path:
    return folder / f"{role}.rdb"


def _url(role: str, home: Path | None) -> str:
    """The URL of a role's Redis: of a folder of `hubbub up`, else of the environment."""
    return (url_of(home, role) if home else None) or redis_url(_SETTINGS_BY_ROLE[role])


@contextmanager
def _new_folder(folder: Path) -> Iterator[None]:
    """Makes an empty folder for this user only; removes it after a failure."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        not_empty = any(folder.iterdir())
    except OSError as error:
        raise StateUnusable(f"{folder}: {error.strerror}; give a writable folder") from error
    if not_empty:
        raise BackupUnusable(f"{folder}: is not empty; nothing is overwritten: give a new folder")
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _secret(path: Path) -> str:
    try:
        return read_text(path).strip()
    except ValueError as error:
        raise BackupUnusable(str(error)) from error


@contextmanager
def _bars(title: str) -> Iterator[Callable[[str, int, int], None]]:
    """Shows progress by role on a terminal."""
    with progress() as bars:
        tasks = {role: bars.add_task(f"{role}, {title}", total=None) for role in ROLES}
        yield lambda role, done, total: bars.update(tasks[role], completed=done, total=total)
