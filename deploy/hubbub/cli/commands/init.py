"""`hubbub init`: everything that an installation needs beside its programs, made in one folder."""

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet

from hubbub.aggregator.access.tokens import add_token
from hubbub.authoring import Catalog
from hubbub.cli.terminal.catalog_reading import read_aloud
from hubbub.cli.terminal.output import say
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.errors.development_messages import PROTECTS_NOBODY
from hubbub.fields.rules import is_address
from hubbub.installation.certificate_authorities import (
    PARTIES,
    ROLES,
    names_by_role,
    trust_other,
    write_certificates,
)
from hubbub.installation.keys_and_bundles import build_bundle, make_keys
from hubbub.keys.issuer import make_token_key, take_token_public
from hubbub.programs.atomic_write import refuse_unwritable
from hubbub.programs.command_line import command
from hubbub.programs.options import Group, argument, option, options

# The containers' names in deploy/compose; the chart's services are named by --host.
_NAMES: Final = {
    "shuffler": ("shuffler",),
    "aggregator": ("aggregator",),
    "redis": ("redis-pool", "redis-totals", "redis-issuer"),
}
_HOSTS: Final = {"shuffler": "redis-pool", "aggregator": "redis-totals", "issuer": "redis-issuer"}
_BOTH: Final = ("shuffler", "aggregator")
_CATALOG: Final = Path("metrics.toml")
_CA: Final = "/etc/hubbub/tls/ca.pem"
_WATCHING: Final = ("data/prometheus", "data/alertmanager", "data/grafana")
_CREATED_FILES: Final = (
    ("app.hubbub", "for the apps"),
    ("operator.hubbub", "for the aggregator: app.hubbub, candidates and alerts"),
    ("keys/operator.key", "signs bundles: keep it offline, with a copy"),
    ("keys/opening.keys.json", "opens reports: only for the aggregator"),
    ("tls-authorities", "renews certificates: keep it offline, with a copy"),
    ("access/access.toml", "access rights, and logins at your provider"),
    ("passwords", "password of Grafana, tokens for the page and Prometheus"),
    ("keys/tokens.key", "makes tokens: for the issuer and the shuffler"),
    ("keys/tokens.pub", "its public half: for the builder of bundles"),
)
_TOKEN_DAYS: Final = 365
# User of the images; the key that signs bundles stays with its maker.
_USER: Final = 10_001
_OWN: Final = frozenset({"operator.key", "analyst.token", ".env"})
_PARTIES: Final = Group("one of several parties")


@options
class InitOptions:
    folder: Path = argument("folder for all the files")
    catalog: Path | None = option(f"the catalog to build ({_CATALOG})")
    host: tuple[str, ...] = option(
        "another host name of a role, or NAME alone for all roles (repeatable); the shuffler of "
        "the catalog and the names of the containers are included",
        metavar="ROLE=NAME",
    )
    dev: bool = option(
        "for development only: the privacy settings protect nobody; services of a production "
        "installation refuse its files"
    )
    tokens: Path | None = option(
        "public key of the token issuer, if the catalog names an issuer; whoever runs the "
        "issuer has it",
        metavar="TOKENS.PUB",
    )
    party: str = option(
        "the service that this party runs; only its keys, certificates and Redis are made",
        default="",
        choices=(*PARTIES, "issuer"),
        group=_PARTIES,
    )
    peer: str = option(
        "address of the other party: the aggregator, or the status port of the shuffler",
        default="",
        metavar="HOST:PORT",
        group=_PARTIES,
    )
    trust: Path | None = option(
        "certificate authorities of the other party; they can be added later with hubbub "
        "keys trust",
        metavar="CA.PEM",
        group=_PARTIES,
    )


@command(
    "init",
    description="""
Makes in FOLDER: keys, certificates, the bundle and the stream table of the catalog, settings and
users for Redis, random passwords and tokens, and folders for data. It overwrites nothing. Run as
root, it gives the files that services read to user 10001. The next steps are in
docs/operate/install.md. With --party it makes the files of one party: see
docs/operate/two-parties.md and tokens.md.
""",
)
def _run(options: InitOptions) -> None:
    folder, party = options.folder, options.party
    _check_party(options)
    if party == "shuffler":  # the stream table comes from the other party
        _refuse_made(folder)
        _certify(folder, names_by_role(options.host), PARTIES["shuffler"])
        if options.trust:
            trust_other(folder / "tls", options.trust)
        _settle(folder, ("shuffler",), options.peer)
    elif party == "issuer":  # it never contains data of reports
        _refuse_made(folder)
        make_token_key(folder / "keys")
        # Devices already trust the authority of its certificate.
        _certify(folder, names_by_role(options.host), ("redis",))
        _settle(folder, ("issuer",))
    else:
        initialise(
            folder,
            read_aloud(options.catalog or _CATALOG),
            options.host,
            options.tokens,
            development=options.dev,
            peer=options.peer,
            trust=options.trust,
        )
    if options.dev:
        say(f"{PROTECTS_NOBODY} HUBBUB_DEV=1 in the .env files of its services marks it.")
    say(f"{folder}: made, with")
    for name, meaning in _CREATED_FILES:
        if (folder / name).exists():
            say(f"  {folder}/{name:<23} {meaning}")
    if party == "issuer":
        say("next: a certificate, the stream table and accounts, as docs/operate/tokens.md says")
    elif party:
        say(f"next: give {folder}/tls/ca.pem to the other party, and continue as")
        say("docs/operate/two-parties.md says")
    file = f"{party or 'compose'}.yaml"
    if (folder / file).exists():
        only = f" --file {folder}/{file}" if party else ""
        say(f"next: docker compose --project-directory {folder}{only} up --build --detach")


def _check_party(options: InitOptions) -> None:
    """Raises BadParameter if the options about two parties conflict."""
    party = options.party
    if party not in _BOTH and (options.peer or options.trust):
        raise BadParameter("--peer and --trust need --party shuffler or --party aggregator")
    if party in {"shuffler", "issuer"}:
        if options.tokens:
            raise BadParameter(
                "--tokens is for the builder of bundles; this party needs keys/tokens.key"
            )
        if options.catalog:
            raise BadParameter(
                f"--catalog is for the builder of bundles, and the {party}'s party builds "
                "none: leave it out"
            )
        if options.dev:
            raise BadParameter("--dev does not go with --party: it protects nobody")
    if party in _BOTH and not is_address(options.peer):
        raise BadParameter("--party needs --peer HOST:PORT, the other party's service")
    if party == "aggregator" and options.trust is None:
        raise BadParameter(
            "--party aggregator needs --trust CA.PEM, so that devices trust the shuffler; "
            "the shuffler's party makes it first, with hubbub init --party shuffler"
        )


def initialise(
    folder: Path,
    catalog: Catalog,
    hosts: Sequence[str],
    tokens: Path | None = None,
    *,
    development: bool = False,
    peer: str = "",
    trust: Path | None = None,
) -> None:
    """Makes an installation, or, if `trust` is given, the aggregator's half of one by two parties.

    `tokens` is the public key of the catalog's issuer, if it names one; `peer` is the address of
    the other party's shuffler status; `trust` is the other party's ca.pem.

    Raises:
        BadParameter: the catalog names an issuer, and there is no key, or a key and none is named.
        KeysUnusable: there is such an installation already, or the folder cannot be written.
    """
    _refuse_made(folder)
    if bool(catalog.tokens) is not bool(tokens):
        raise BadParameter(
            "--tokens is the key of an issuer, but the catalog names none; leave it out"
            if tokens
            else "the catalog names an issuer of tokens: give its tokens.pub with --tokens "
            "FILE; the issuer's operator makes it, with: hubbub init FOLDER --party issuer"
        )
    names = names_by_role(hosts)
    names["shuffler"].append(
        catalog.shuffler.removeprefix("https://").rpartition(":")[0].strip("[]")
    )
    if tokens:
        take_token_public(folder / "keys", tokens)
    make_keys(folder / "keys", development=development)
    _certify(folder, names, PARTIES["aggregator"] if trust else ROLES)
    if trust:
        trust_other(folder / "tls", trust)
    build_bundle(
        catalog,
        folder / "keys",
        out=folder / "app.hubbub",
        streams=folder / "streams.json",
        previous=folder / "app.hubbub",
        roots=(folder / "tls" / "ca.pem").read_text(),
    )
    _settle(
        folder,
        ("aggregator",) if trust else _BOTH,
        peer,
        settings="HUBBUB_DEV=1\n" if development else "",
    )


def _refuse_made(folder: Path) -> None:
    for there in ("keys", "tls", "redis", "access", "passwords", ".env"):
        if (folder / there).exists():
            raise KeysUnusable(
                f"{folder / there} exists; nothing is overwritten: give another folder, or move it"
            )


def _certify(folder: Path, names: Mapping[str, Sequence[str]], roles: Sequence[str]) -> None:
    """Makes authorities and certificates of these roles, for the names of the containers."""
    called = {role: [*_NAMES[role], *names[role]] for role in names}
    write_certificates(folder / "tls", called, folder / "tls-authorities", roles)


def _settle(folder: Path, services: Sequence[str], peer: str = "", *, settings: str = "") -> None:
    """Writes settings, passwords and data folders, and sets their owners.

    `peer` is the other party's service, if there are two; `settings` are further ones of services.
    """
    with refuse_unwritable(folder, KeysUnusable):
        if "aggregator" in services:
            _write_access(folder)
        else:
            (folder / "passwords").mkdir(mode=0o700)
        _write_redis(folder, services, settings)
        data = [f"data/{_HOSTS[service]}" for service in services]
        data += ["data/files"] if "aggregator" in services else []
        changing = ("issuer",) if "issuer" in services else ("notice", "tokens")
        for name in (*changing, *data, *(_WATCHING if services == _BOTH else ())):
            (folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        if "issuer" in services:
            _write(folder / "issuer" / "accounts", "")
        user, group = os.getuid(), os.getgid()
        if user == 0:  # services never run as root
            user = group = _USER
            _give(folder, user)
        other = f"HUBBUB_PEER={peer}\n" if peer else ""
        _write(folder / ".env", f"HUBBUB_USER={user}:{group}\n{other}")


def _write_redis(folder: Path, services: Sequence[str], settings: str) -> None:
    """Writes Redis' settings, users with passwords, and the URL for each service.

    `services` are those that run here, which become users; `settings` are further ones of them.
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
    others = tuple(f"user {role} " for role in _HOSTS if role not in services)
    users = "".join(line for line in users.splitlines(keepends=True) if not line.startswith(others))
    for role in services:
        address, password = f"{_HOSTS[role]}:6379", secrets.token_urlsafe(24)
        users = users.replace(f"CHANGE-ME-{role.upper()}", password)
        url = f"rediss://{role}:{password}@{address}/0?ssl_ca_certs={_CA}"
        _write(folder / f"{role}.env", f"HUBBUB_REDIS_URL={url}\n{settings}")
    _write(folder / "redis" / "users.acl", users)


def _write_access(folder: Path) -> None:
    """Writes the access file, the key of login sessions, and Grafana's password."""
    for name in ("access", "passwords"):
        (folder / name).mkdir(mode=0o700)
    for name in ("analyst", "prometheus"):
        token = add_token(folder / "access/tokens.json", name, "viewer", _TOKEN_DAYS, time.time())
        _write(folder / "passwords" / f"{name}.token", token)
    _write(folder / "access/access.toml", (files("hubbub.cli") / "access.toml").read_text())
    _write(folder / "access/session.keys", f"{Fernet.generate_key().decode()}\n")
    _write(folder / "passwords" / "grafana.password", secrets.token_urlsafe(18))


def _give(folder: Path, user: int) -> None:
    """Makes the services' files readable by their user."""
    names = ("keys", "tls", "redis", "access", "passwords", "data", "notice", "tokens", "issuer")
    for name in names:
        for path in (folder / name, *(folder / name).rglob("*")):
            if path.exists() and path.name not in _OWN:
                os.chown(path, user, user)


def _write(path: Path, text: str, mode: int = 0o600) -> None:
    path.touch(mode, exist_ok=False)
    path.write_text(text, encoding="utf-8")
