"""Makes an installation: everything that it needs beside its programs, in one folder."""

import os
import secrets
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet

from hubbub.aggregator.access.tokens import add_token
from hubbub.authoring import Catalog
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.installation.certificate_authorities import (
    PARTIES,
    ROLES,
    names_by_role,
    trust_other,
    write_certificates,
)
from hubbub.installation.keys_and_bundles import build_bundle, make_keys
from hubbub.keys.issuer_and_gateway_keys import make_token_key, take_token_public
from hubbub.programs.atomic_write import refuse_unwritable

# The containers' names in deploy/compose; the chart's services are named by --host.
_NAMES: Final = {
    "shuffler": ("shuffler",),
    "aggregator": ("aggregator",),
    "redis": ("redis-pool", "redis-totals", "redis-issuer"),
}
_HOSTS: Final = {"shuffler": "redis-pool", "aggregator": "redis-totals", "issuer": "redis-issuer"}
BOTH: Final = ("shuffler", "aggregator")
"""The services of one whole installation."""
_CA: Final = "/etc/hubbub/tls/ca.pem"
_WATCHING: Final = ("data/prometheus", "data/alertmanager", "data/grafana")
_TOKEN_DAYS: Final = 365
# User of the images; the key that signs bundles stays with its maker.
_USER: Final = 10_001
_OWN: Final = frozenset({"operator.key", "analyst.token", ".env"})


def initialise(
    folder: Path,
    services: Sequence[str],
    hosts: Sequence[str],
    *,
    catalog: Catalog | None = None,
    tokens: Path | None = None,
    development: bool = False,
    peer: str = "",
    trust: Path | None = None,
) -> None:
    """Makes what these services need: BOTH, or the only one that a party runs.

    `hosts` are as for `names_by_role`. `catalog` is the one to build, None for a shuffler's or an
    issuer's party; `tokens` is the public key of the issuer that it names, if any. `peer` is the
    address of the other party's service, and `trust` its ca.pem, None if it comes later.

    Raises:
        BadParameter: the catalog names an issuer, and there is no key, or a key and none is named.
        KeysUnusable: there is such an installation already, or the folder cannot be written.
    """
    for name in ("keys", "tls", "redis", "access", "passwords", ".env"):
        if (folder / name).exists():
            raise KeysUnusable(
                f"{folder / name} exists; nothing is overwritten: give another folder, or move it"
            )
    names, keys = names_by_role(hosts), folder / "keys"
    if catalog:
        if bool(catalog.tokens) is not bool(tokens):
            raise BadParameter(
                "--tokens is the key of an issuer, but the catalog names none; leave it out"
                if tokens
                else "the catalog names an issuer of tokens: give its tokens.pub with --tokens "
                "FILE; the issuer's operator makes it, with: hubbub init FOLDER --party issuer"
            )
        address = catalog.shuffler.removeprefix("https://")
        names["shuffler"].append(address.rpartition(":")[0].strip("[]"))
        if tokens:
            take_token_public(keys, tokens)
        make_keys(keys, development=development)
    elif "issuer" in services:
        make_token_key(keys)
    # Devices already trust the authority of an issuer's certificate, so that it only has a Redis.
    roles = ROLES if services == BOTH else PARTIES.get(services[0], ("redis",))
    called = {role: [*_NAMES[role], *names[role]] for role in names}
    write_certificates(folder / "tls", called, folder / "tls-authorities", roles)
    if trust:
        trust_other(folder / "tls", trust)
    if catalog:
        build_bundle(
            catalog,
            keys,
            out=folder / "app.hubbub",
            streams=folder / "streams.json",
            roots=(folder / "tls" / "ca.pem").read_text(),
        )
    _settle(folder, services, peer, settings="HUBBUB_DEV=1\n" if development else "")


def _settle(folder: Path, services: Sequence[str], peer: str, *, settings: str) -> None:
    """Writes access, passwords, Redis' settings and users, data folders; sets their owners.

    Each service gets its URL of Redis, and `settings`.
    """
    with refuse_unwritable(folder, KeysUnusable):
        if "aggregator" in services:
            for name in ("access", "passwords"):
                (folder / name).mkdir(mode=0o700)
            for name in ("analyst", "prometheus"):
                token = add_token(
                    folder / "access/tokens.json", name, "viewer", _TOKEN_DAYS, time.time()
                )
                _write(folder / "passwords" / f"{name}.token", token)
            access = (files("hubbub.installation") / "access.toml").read_text()
            _write(folder / "access/access.toml", access)
            _write(folder / "access/session.keys", f"{Fernet.generate_key().decode()}\n")
            _write(folder / "passwords" / "grafana.password", secrets.token_urlsafe(18))
        else:
            (folder / "passwords").mkdir(mode=0o700)
        (folder / "redis").mkdir(mode=0o700)
        source = files("hubbub.installation") / "redis"
        for name in ("redis.conf", "start.sh"):
            _write(folder / "redis" / name, (source / name).read_text(), mode=0o644)
        administrator = secrets.token_urlsafe(24)
        _write(folder / "passwords" / "redis.password", administrator)
        users = (source / "users.acl").read_text().replace("CHANGE-ME-OPERATOR", administrator)
        viewer = secrets.token_urlsafe(24)
        _write(folder / "passwords" / "redis-viewer.password", viewer)
        users = users.replace("CHANGE-ME-VIEWER", viewer)
        others = tuple(f"user {role} " for role in _HOSTS if role not in services)
        users = "".join(
            line for line in users.splitlines(keepends=True) if not line.startswith(others)
        )
        for role in services:
            address, password = f"{_HOSTS[role]}:6379", secrets.token_urlsafe(24)
            users = users.replace(f"CHANGE-ME-{role.upper()}", password)
            url = f"rediss://{role}:{password}@{address}/0?ssl_ca_certs={_CA}"
            _write(folder / f"{role}.env", f"HUBBUB_REDIS_URL={url}\n{settings}")
        _write(folder / "redis" / "users.acl", users)
        data = [f"data/{_HOSTS[service]}" for service in services]
        data += ["data/files"] if "aggregator" in services else []
        changing = ("issuer",) if "issuer" in services else ("notice", "tokens")
        for name in (*changing, *data, *(_WATCHING if services == BOTH else ())):
            (folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        if "issuer" in services:
            _write(folder / "issuer" / "accounts", "")
        user, group = os.getuid(), os.getgid()
        if user == 0:  # services never run as root
            user = group = _USER
            _give(folder, user)
        other = f"HUBBUB_PEER={peer}\n" if peer else ""
        _write(folder / ".env", f"HUBBUB_USER={user}:{group}\n{other}")


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
