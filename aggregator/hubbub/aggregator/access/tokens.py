"""Rights of callers, and tokens that give them: secrets, whose hashes are in a file.

Metrics that a caller may not see do not exist for them.
A viewer reads estimates; a publisher also makes releases; an admin also sees who has tokens.
`hubbub keys token` writes the file, and the service reads it again when it changes, so that a token
can be revoked while the service runs.
"""

import hashlib
import json
import logging
import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal, get_args

from hubbub.errors import AccessRefused, BadParameter, KeysUnusable
from hubbub.fields.rules import metric_name_of
from hubbub.programs.atomic_write import locked, refuse_unwritable, replace_file

Role = Literal["viewer", "publisher", "admin"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
"""Each may what the ones before it may."""

Way = Literal["machine", "token", "login", "script"]
"""By what somebody is known: being on this machine, a token of ours, a login at the provider, or a
token of the provider's that a program shows."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A role for some metrics; `metrics` are patterns of names as for files: "*", "browser.*"."""

    role: Role
    metrics: tuple[str, ...] = ("*",)

    def covers(self, metric: str) -> bool:
        """Whether it includes this metric; tiers and cells ("theme/0.5") belong to their metric."""
        name = metric_name_of(metric)
        return any(fnmatchcase(name, pattern) for pattern in self.metrics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller of a request.

    Args:
        name: for display.
        subject: the provider's identifier; "" for tokens.
        groups: the person's groups that have rights.
        until: end of access in seconds since 1970; 0 for no end.
        role: highest role for any metric; None without any.
        sees_all: whether no metric is hidden.
        may_all: whether everything is allowed for all metrics.
    """

    name: str
    way: Way
    grants: tuple[Grant, ...]
    subject: str = ""
    groups: tuple[str, ...] = ()
    until: int = 0
    role: Role | None = field(init=False, repr=False, compare=False)
    sees_all: bool = field(init=False, repr=False, compare=False)
    may_all: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Precomputes the answers to frequent checks."""
        roles = [grant.role for grant in self.grants]
        unlimited = [grant.role for grant in self.grants if "*" in grant.metrics]
        object.__setattr__(self, "role", max(roles, key=ROLES.index, default=None))
        object.__setattr__(self, "sees_all", bool(unlimited))
        object.__setattr__(self, "may_all", ROLES[-1] in unlimited)

    def sees(self, metric: str) -> bool:
        """Whether a metric exists for the caller."""
        return any(grant.covers(metric) for grant in self.grants)

    def check(self, role: Role, metric: str = "") -> None:
        """Raises AccessRefused unless the caller has the role, and has it for this metric.

        Does not raise for a metric that does not exist for the caller.
        """
        allowed = ROLES[ROLES.index(role) :]
        if self.role not in allowed:
            raise AccessRefused(f"this needs the role {role}")
        roles = {grant.role for grant in self.grants if grant.covers(metric)} if metric else set()
        if roles and roles.isdisjoint(allowed):
            raise AccessRefused(f"this needs the role {role} for this metric")


EVERYONE: Final = Caller(name="this machine", way="machine", grants=(Grant(ROLES[-1]),))
"""Who asks where nobody is asked who they are."""


def granted(groups: Collection[str], rights: Mapping[str, Grant]) -> tuple[Grant, ...]:
    """All grants of these groups together."""
    return tuple(grant for group, grant in rights.items() if group in groups)


_log: Final = logging.getLogger("hubbub.aggregator")

_BYTES: Final = 32
PREFIX: Final = "hubbub_"
"""By it our tokens are told from a provider's."""
_LOOK_SECONDS: Final = 1.0
_DAY_SECONDS: Final = 86_400
_LONGEST_NAME: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token, stored as a hash.

    Args:
        expires: seconds since 1970.
        groups: it sees the metrics of these groups; without groups, all metrics.
    """

    name: str
    role: Role
    sha256: str
    expires: int
    groups: tuple[str, ...] = ()

    def caller(self, rights: Mapping[str, Grant]) -> Caller:
        """The caller who presents it."""
        grants = tuple(
            Grant(min(grant.role, self.role, key=ROLES.index), grant.metrics)
            for grant in granted(self.groups, rights)
        )
        if not self.groups:
            grants = (Grant(self.role),)
        return Caller(
            name=self.name, way="token", grants=grants, groups=self.groups, until=self.expires
        )


class Tokens:
    """The current tokens of a file."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._looked = 0.0
        self._stamp: tuple[int, int] | None = None
        self._tokens_by_digest: Mapping[str, Token] = {}
        read_tokens(path)  # fails at the start if it is invalid
        self._reload_if_changed()

    def find(self, secret: str) -> Token | None:
        """The token of a secret, if it exists and has not expired."""
        if self._clock() - self._looked >= _LOOK_SECONDS:
            self._reload_if_changed()
        token = self._tokens_by_digest.get(_hash(secret))
        return token if token and token.expires > self._clock() else None

    def all_tokens(self) -> list[Token]:
        """All tokens of the file, including expired ones."""
        self._reload_if_changed()
        return sorted(self._tokens_by_digest.values(), key=lambda token: token.name)

    def _reload_if_changed(self) -> None:
        self._looked = self._clock()
        try:
            status = self._path.stat()
        except OSError:
            # A deleted file admits nobody; read_tokens reports it at the start.
            self._tokens_by_digest, self._stamp = {}, None
            return
        former, self._stamp = self._stamp, (status.st_mtime_ns, status.st_ino)
        if self._stamp != former:
            try:
                self._tokens_by_digest = {token.sha256: token for token in read_tokens(self._path)}
            except KeysUnusable as error:
                _log.warning("not reloaded, the former files stay in use: %s", error)


def read_tokens(path: Path) -> list[Token]:
    """The tokens of a file. Raises KeysUnusable if it is no token file, or cannot be read."""
    try:
        return [
            Token(**{**token, "groups": tuple(token.get("groups", ()))})
            for token in json.loads(path.read_bytes())["tokens"]
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise KeysUnusable(
            f"{path}: not a file of tokens; make one with: hubbub keys token NEW-FILE --name NAME"
        ) from error


def add_token(
    path: Path, name: str, role: Role, days: int, now: float, *, groups: Sequence[str] = ()
) -> str:
    """Creates a token, stores its hash, and returns the secret, which is shown only once.

    `groups` limits it to the metrics of these groups.

    Raises:
        BadParameter: an invalid name, or one that is taken.
        KeysUnusable: the file cannot be read or written.
    """
    for what, text in (("token's", name), *(("group's", group) for group in groups)):
        if not (text.strip() and text.isprintable() and len(text) <= _LONGEST_NAME):
            raise BadParameter(f"a {what} name is 1 to {_LONGEST_NAME} printable characters")
    secret = PREFIX + secrets.token_urlsafe(_BYTES)
    until = int(now) + days * _DAY_SECONDS
    token = Token(name=name, role=role, sha256=_hash(secret), expires=until, groups=tuple(groups))
    with refuse_unwritable(path, KeysUnusable), locked(path):
        tokens = read_tokens(path) if path.exists() else []
        if any(other.name == name for other in tokens):
            raise BadParameter(f'there is a token "{name}" already; remove it first, with --remove')
        _write(path, [*tokens, token])
    return secret


def remove_token(path: Path, name: str) -> None:
    """Revokes a token, effective within a second.

    Raises:
        BadParameter: there is no such token.
        KeysUnusable: the file cannot be read or written.
    """
    with refuse_unwritable(path, KeysUnusable), locked(path):
        tokens = read_tokens(path)
        others = [token for token in tokens if token.name != name]
        if len(others) == len(tokens):
            raise BadParameter(f'there is no token "{name}" in {path}')
        _write(path, others)


def _write(path: Path, tokens: list[Token]) -> None:
    # Empty fields are left out, so that versions before groups can read the file.
    lines = [
        {name: value for name, value in asdict(token).items() if value != ()} for token in tokens
    ]
    text = json.dumps({"tokens": lines}, indent=1) + "\n"
    replace_file(path, text.encode(), mode=0o600)


def _hash(secret: str) -> str:
    # A token of 32 random bytes cannot be guessed, so a fast hash is enough.
    return hashlib.sha256(secret.encode()).hexdigest()
