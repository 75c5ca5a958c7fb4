"""Tokens: access over HTTP by secrets, whose hashes are in a file.

A viewer reads estimates; a publisher also makes releases; an admin also sees who has tokens.
`hubbub keys token` writes the file, and the service reads it again when it changes, so that a token
can be revoked while the service runs.
"""

import hashlib
import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from hubbub.aggregator.access.rights import Caller, Grant, Role, granted, within
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.programs.atomic_write import refuse_unwritable, replace_file

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
        grants = within(granted(self.groups, rights), self.role)
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
        self._look()

    def find(self, secret: str) -> Token | None:
        """The token of a secret, if it exists and has not expired."""
        if self._clock() - self._looked >= _LOOK_SECONDS:
            self._look()
        token = self._tokens_by_digest.get(_hash(secret))
        return token if token and token.expires > self._clock() else None

    def all(self) -> list[Token]:
        """All tokens of the file, including expired ones."""
        self._look()
        return sorted(self._tokens_by_digest.values(), key=lambda token: token.name)

    def _look(self) -> None:
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
    tokens = read_tokens(path) if path.exists() else []
    for what, text in (("token's", name), *(("group's", group) for group in groups)):
        if not (text.strip() and text.isprintable() and len(text) <= _LONGEST_NAME):
            raise BadParameter(f"a {what} name is 1 to {_LONGEST_NAME} printable characters")
    if any(token.name == name for token in tokens):
        raise BadParameter(f'there is a token "{name}" already; remove it first, with --remove')
    secret = PREFIX + secrets.token_urlsafe(_BYTES)
    until = int(now) + days * _DAY_SECONDS
    tokens.append(
        Token(name=name, role=role, sha256=_hash(secret), expires=until, groups=tuple(groups))
    )
    _write(path, tokens)
    return secret


def remove_token(path: Path, name: str) -> None:
    """Revokes a token, effective within a second.

    Raises:
        BadParameter: there is no such token.
        KeysUnusable: the file cannot be read or written.
    """
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
    with refuse_unwritable(path, KeysUnusable):
        replace_file(path, text.encode(), mode=0o600)


def _hash(secret: str) -> str:
    # A token of 32 random bytes cannot be guessed, so a fast hash is enough.
    return hashlib.sha256(secret.encode()).hexdigest()
