"""`hubbub init`: everything that an installation needs beside its programs, made in one folder."""

import argparse
import os
import secrets
import time
from importlib.resources import files
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet

from hubbub.aggregator.access.tokens import add_token
from hubbub.catalog import Catalog
from hubbub.cli.certificate_authorities import names_by_role, write_certificates
from hubbub.cli.installation import build_bundle, make_keys
from hubbub.cli.terminal.output import say
from hubbub.errors import KeysUnusable
from hubbub.errors.places import PROTECTS_NOBODY
from hubbub.privacy.central_catalog import read_with_promises

# As the containers of deploy/compose call each other; the chart's services go by --host.
_NAMES: Final = {
    "shuffler": ("shuffler",),
    "aggregator": ("aggregator",),
    "redis": ("redis-pool", "redis-totals"),
}
_REDIS: Final = {"shuffler": "redis-pool:6379", "aggregator": "redis-totals:6379"}
_CA: Final = "/etc/hubbub/tls/ca.pem"
_FOLDERS: Final = (
    *("data/redis-pool", "data/redis-totals"),
    *("data/prometheus", "data/alertmanager", "data/grafana"),
    "notice",
)
_TOKEN_DAYS: Final = 365
# Of the images; the key that signs bundles stays with whoever made it.
_USER: Final = 10_001
_OWN: Final = frozenset({"operator.key", "analyst.token", ".env"})
_DESCRIPTION: Final = """
Makes, in FOLDER: keys, certificates, bundle and stream table of the catalog, settings and users for
Redis, passwords and tokens drawn at random, folders for data. Nothing that is there is overwritten.
Run as root, it gives what services read to user 10001. docs/operate/install.md goes on from here.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `init` to the command line."""
    parser = commands.add_parser(
        "init",
        description=_DESCRIPTION,
    )
    parser.add_argument("folder", type=Path, help="where all of it goes")
    parser.add_argument(
        "--catalog",
        type=Path,
        default=Path("metrics.toml"),
        help="the catalog to build (%(default)s)",
    )
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="another name that a role is dialled by, or NAME alone for all of them (repeat); the "
        "catalog's shuffler and the names of the containers are among them",
    )
    parser.add_argument(
        "--dev",
        action="store_true",
        help="for development: numbers protect nobody; its services are told so, and no others "
        "take its files",
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    folder: Path = arguments.folder
    initialise(
        folder, read_with_promises(arguments.catalog), arguments.host, development=arguments.dev
    )
    if arguments.dev:
        say(f"{PROTECTS_NOBODY} Its services are told so by HUBBUB_DEV=1 in their .env files.")
    say(f"{folder}: ready to run")
    say(f"  {folder}/app.hubbub             for the apps")
    say(f"  {folder}/operator.hubbub        the same for the aggregator, with more")
    say(f"  {folder}/keys/operator.key      signs bundles: keep it offline, and a copy")
    say(f"  {folder}/keys/opening.keys.json opens reports: for the aggregator alone")
    say(f"  {folder}/tls-authorities        renews certificates: keep it offline, and a copy")
    say(f"  {folder}/access/access.toml     who may see what; logins at your provider")
    say(f"  {folder}/passwords              of Grafana, and tokens for the page and Prometheus")
    if (folder / "compose.yaml").exists():
        say(f"next: docker compose --project-directory {folder} up --build --detach")
    return 0


def initialise(
    folder: Path, catalog: Catalog, hosts: list[str], *, development: bool = False
) -> None:
    """Make all of it.

    Raises:
        KeysUnusable: there is such an installation already, or the folder cannot be written.
    """
    for there in ("keys", "tls", "redis", "access", "passwords", ".env"):
        if (folder / there).exists():
            raise KeysUnusable(
                f"{folder / there} exists; nothing is overwritten: give another folder, or move it"
            )
    names = names_by_role(hosts)
    names["shuffler"].append(
        catalog.shuffler.removeprefix("https://").rpartition(":")[0].strip("[]")
    )
    tls = folder / "tls"
    make_keys(folder / "keys", development=development)
    write_certificates(
        tls, {role: [*_NAMES[role], *names[role]] for role in names}, folder / "tls-authorities"
    )
    build_bundle(
        catalog,
        folder / "keys",
        out=folder / "app.hubbub",
        streams=folder / "streams.json",
        previous=folder / "app.hubbub",
        roots=(tls / "ca.pem").read_text(),
    )
    try:
        _write_access(folder)
        _write_redis(folder, "HUBBUB_DEV=1\n" if development else "")
        for name in _FOLDERS:
            (folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        user, group = os.getuid(), os.getgid()
        if user == 0:  # services never run as root
            user = group = _USER
            _give(folder, user)
        _write(folder / ".env", f"HUBBUB_USER={user}:{group}\n")
    except OSError as error:
        raise KeysUnusable(f"{error.filename}: cannot be written: {error.strerror}") from error


def _write_redis(folder: Path, more: str) -> None:
    """Settings, users with passwords of their own, and the URL that each service takes.

    more: what services are told beside that.
    """
    (folder / "redis").mkdir(mode=0o700)
    source = files("hubbub.cli") / "redis"
    for name in ("redis.conf", "start.sh"):
        _write(folder / "redis" / name, (source / name).read_text(), mode=0o644)
    administrator = secrets.token_urlsafe(24)
    _write(folder / "passwords" / "redis.password", administrator)
    users = (source / "users.acl").read_text().replace("CHANGE-ME-OPERATOR", administrator)
    viewer = secrets.token_urlsafe(24)
    _write(folder / "passwords" / "redis-viewer.password", viewer)
    users = users.replace("CHANGE-ME-VIEWER", viewer)
    for role, address in _REDIS.items():
        password = secrets.token_urlsafe(24)
        users = users.replace(f"CHANGE-ME-{role.upper()}", password)
        url = f"rediss://{role}:{password}@{address}/0?ssl_ca_certs={_CA}"
        _write(folder / f"{role}.env", f"HUBBUB_REDIS_URL={url}\n{more}")
    _write(folder / "redis" / "users.acl", users)


def _write_access(folder: Path) -> None:
    """Who may ask, what seals sessions of people who log in, and the password of Grafana."""
    for name in ("access", "passwords"):
        (folder / name).mkdir(mode=0o700)
    for name in ("analyst", "prometheus"):
        token = add_token(folder / "access/tokens.json", name, "viewer", _TOKEN_DAYS, time.time())
        _write(folder / "passwords" / f"{name}.token", token)
    _write(folder / "access/access.toml", (files("hubbub.cli") / "access.toml").read_text())
    _write(folder / "access/session.keys", f"{Fernet.generate_key().decode()}\n")
    _write(folder / "passwords" / "grafana.password", secrets.token_urlsafe(18))


def _give(folder: Path, user: int) -> None:
    """Let the services read what is theirs."""
    for made in ("keys", "tls", "redis", "access", "passwords", "data", "notice"):
        for path in (folder / made, *(folder / made).rglob("*")):
            if path.name not in _OWN:
                os.chown(path, user, user)


def _write(path: Path, text: str, mode: int = 0o600) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
