"""The file of access: whom a provider vouches for, and what each of its groups may see. TOML.

origin = "https://hubbub.example.org"

[oidc]
issuer = "https://id.example.org/realms/company"
client = "hubbub"
secret_file = "oidc.secret"

[groups."telemetry"]
role = "viewer"
metrics = ["*"]
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from hubbub.aggregator.access.tokens import ROLES, Grant
from hubbub.errors import BadParameter
from hubbub.errors.address_checks import secure_parts
from hubbub.errors.message_words import did_you_mean
from hubbub.programs.text_files import parse_toml, read_text

_LONGEST_SESSION_HOURS: Final = 24 * 7
_FILES: Final = "secret_file", "session_keys", "authority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Oidc:
    """An OpenID Connect provider, and this service as its client.

    Args:
        issuer: address of the provider, as in its discovery document.
        client: client id of this service.
        secret: client secret; "" for a public client.
        audience: audience that programs' tokens must have.
        groups_claim: claim that contains groups; with dots, a claim within claims.
        session_seconds: time after which people must log in again.
        session_keys: keys that encrypt sessions, the newest first; without any, one is drawn at the
            start, so that a restart logs everybody out.
        authority: PEM file to which the provider's certificate chains; None for the system's.
        title: text of the login button after "Log in with".
    """

    issuer: str
    client: str
    origin: str
    secret: str
    audience: str
    groups_claim: str
    scopes: tuple[str, ...]
    session_seconds: int
    session_keys: tuple[bytes, ...]
    authority: Path | None
    title: str


@dataclass(frozen=True, slots=True)
class AccessFile:
    """The content of an access file; `groups` has the grant of each group."""

    groups: Mapping[str, Grant]
    oidc: Oidc | None


def read_access(path: Path) -> AccessFile:
    """Reads an access file. Raises BadParameter if it is invalid, or cannot be read."""
    text = _read(path, "it")
    try:
        toml = parse_toml(text)
    except ValueError as error:
        raise BadParameter(f"{path}: cannot be read as TOML: {error}") from error
    table = _Table(path, "", toml)
    table.refuse_others("origin", "oidc", "groups")
    groups = _groups(table.table("groups"))
    oidc = _oidc(path, table.table("oidc"), table.text("origin")) if "oidc" in toml else None
    # Refuses an empty file, too, which a full disk or a faulty script may leave.
    if not groups:
        raise BadParameter(
            f'{path}: no group has access: add one, as [groups."telemetry"] with metrics = ["*"]'
        )
    return AccessFile(groups, oidc)


def files_of(path: Path) -> list[Path]:
    """An access file and the files that it names, even if some are unusable."""
    try:
        toml = parse_toml(read_text(path)).get("oidc")
    except ValueError:
        return [path]
    table = toml if isinstance(toml, dict) else {}
    file_fields = (table.get(field) for field in _FILES)
    return [path, *(path.parent / name for name in file_fields if isinstance(name, str) and name)]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the file, read field by field; error messages call it `name`."""

    path: Path
    name: str
    fields: Mapping[str, Any]

    def refuse_others(self, *names: str) -> None:
        for field in self.fields:
            if field not in names:
                existing = f"; there are {', '.join(names)}"
                meant = did_you_mean(field, names, otherwise=existing)
                raise self.wrong(field, f"is not a field{meant}")

    def wrong(self, field: str, problem: str) -> BadParameter:
        table_prefix = f"[{self.name}] " if self.name else ""
        return BadParameter(f"{self.path}: {table_prefix}{field[:60]} {problem}")

    def text(self, field: str, default: str | None = None) -> str:
        value = self.fields.get(field, default)
        if value is None or value == "":
            raise self.wrong(field, "is missing" if value is None else "is empty")
        if not (isinstance(value, str) and value.isprintable() and value.strip() == value):
            raise self.wrong(field, "is not a text, or has spaces around it")
        return value

    def texts(self, field: str, default: tuple[str, ...]) -> tuple[str, ...]:
        values = self.fields.get(field, list(default))
        if not (
            isinstance(values, list)
            and values
            and all(isinstance(value, str) and value.strip() for value in values)
        ):
            raise self.wrong(field, 'is not a list of texts such as ["theme", "browser.*"]')
        return tuple(values)

    def number(self, field: str, default: int, maximum: int) -> int:
        value = self.fields.get(field, default)
        if type(value) is not int or not 1 <= value <= maximum:
            raise self.wrong(field, f"is not a whole number in [1, {maximum}]")
        return value

    def table(self, field: str) -> "_Table":
        value = self.fields.get(field, {})
        if not isinstance(value, dict):
            raise self.wrong(field, "is not a table")
        return _Table(self.path, ".".join(filter(None, (self.name, field))), value)


def _groups(groups: _Table) -> dict[str, Grant]:
    grants = {}
    for name in groups.fields:
        if not name.strip():
            raise groups.wrong('""', "is an empty group name; write it as the provider does")
        group = groups.table(name)
        if "certificates" in group.fields:
            raise group.wrong(
                "certificates",
                "no longer exists; delete it: analysts query over HTTP, with a login or a token "
                "of hubbub keys token",
            )
        group.refuse_others("role", "metrics")
        role = group.text("role", ROLES[0])
        if role not in ROLES:
            raise group.wrong("role", f"is not one of {', '.join(ROLES)}")
        if "metrics" not in group.fields:
            raise group.wrong("metrics", f"is missing; for all metrics write metrics = {['*']}")
        grants[name] = Grant(role, group.texts("metrics", ()))
    return grants


def _oidc(path: Path, table: _Table, origin: str) -> Oidc:
    names = {field.name for field in fields(Oidc)} - {"origin", "secret", "session_seconds"}
    table.refuse_others(*sorted(names | {"secret_file", "session_hours"}))
    issuer = _address(table, "issuer", table.text("issuer"))
    own_origin = urlsplit(_address(_Table(path, "", {}), "origin", origin))
    if own_origin.path not in {"", "/"} or own_origin.query:
        raise BadParameter(f"{path}: origin must be https://HOST, without a path")
    client = table.text("client")
    file_paths = {
        field: path.parent / table.text(field) for field in _FILES if field in table.fields
    }
    secret = (
        _read(file_paths["secret_file"], "its secret_file").strip()
        if "secret_file" in file_paths
        else ""
    )
    if "secret_file" in file_paths and not secret:
        raise table.wrong("secret_file", "is an empty file; leave it out for a public client")
    if "authority" in file_paths:
        from cryptography import x509  # noqa: PLC0415 beside its one use

        authority = file_paths["authority"]
        try:
            x509.load_pem_x509_certificates(_read(authority, "its authority").encode())
        except ValueError as error:
            raise BadParameter(
                f"{authority}: its authority file has no certificates in PEM"
            ) from error
    oidc = Oidc(
        issuer=issuer,
        client=client,
        origin=origin.rstrip("/"),
        secret=secret,
        audience=table.text("audience", client),
        groups_claim=table.text("groups_claim", "groups"),
        scopes=table.texts("scopes", ("openid", "profile", "email")),
        session_seconds=3600 * table.number("session_hours", 8, _LONGEST_SESSION_HOURS),
        session_keys=_keys(file_paths["session_keys"]) if "session_keys" in file_paths else (),
        authority=file_paths.get("authority"),
        title=table.text("title", urlsplit(issuer).hostname or issuer),
    )
    if "openid" not in oidc.scopes:
        raise table.wrong("scopes", 'lacks "openid", which a login needs')
    return oidc


def _address(table: _Table, field: str, text: str) -> str:
    if secure_parts(text) is None:
        raise table.wrong(field, "is not https://HOST (http:// is only for 127.0.0.1)")
    return text


def _keys(path: Path) -> tuple[bytes, ...]:
    from cryptography.fernet import Fernet  # noqa: PLC0415 beside its one use

    lines = [line.encode() for line in _read(path, "its session_keys").split()]
    try:
        for line in lines:
            Fernet(line)
    except ValueError as error:
        raise BadParameter(
            f"{path}: contains a line that is not a key; make a file: hubbub keys session"
        ) from error
    if not lines:
        raise BadParameter(f"{path}: contains no key; make one: hubbub keys session {path}")
    return tuple(lines)


def _read(path: Path, kind: str) -> str:
    try:
        return read_text(path)
    except ValueError as error:
        raise BadParameter(f"--http-access: {kind}, {error}") from error
