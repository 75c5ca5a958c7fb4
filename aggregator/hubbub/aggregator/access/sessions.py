"""Sessions: a browser's encrypted cookie about who logged in, which it can neither read nor change.

There is no table of sessions, except of those ended early (ended_sessions.py): any aggregator with
the same keys accepts a session of another, and no data about people is stored beside devices' data.
Fernet (AES-128-CBC and HMAC-SHA256; Fernet specification, 2013) encrypts; its keys are those of the
access file.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from hubbub.errors import AccessRefused

LOGIN_SECONDS: Final = 600
"""So long somebody may take at the provider."""

# Browsers keep 4,096 bytes of name, value and attributes.
_LARGEST_BYTES: Final = 3_600


@dataclass(frozen=True, slots=True)
class Begun:
    """A begun login: what its answer must match, and where it continues."""

    state: str
    nonce: str
    verifier: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A logged-in person.

    Args:
        issuer, client: of the login.
        until: seconds since 1970.
    """

    id: str
    issuer: str
    client: str
    subject: str
    name: str
    groups: tuple[str, ...]
    until: int


class Sessions:
    """Encrypts and decrypts sessions.

    Args:
        keys: the newest first; the others only decrypt.
        clock: seconds since 1970.
    """

    def __init__(self, keys: Sequence[bytes], clock: Callable[[], float]) -> None:
        self._seal = MultiFernet([Fernet(key) for key in keys or (Fernet.generate_key(),)])
        self._clock = clock

    def seal(self, session: Session) -> str:
        """The session as a cookie. Raises AccessRefused if it is too long for browsers."""
        sealed = self._sealed("session", {**_fields_of(session), "groups": list(session.groups)})
        if len(sealed) > _LARGEST_BYTES:
            raise AccessRefused(
                f"{len(session.groups)} groups are too many for one session; name fewer of them in "
                "the access file"
            )
        return sealed

    def open(self, cookie: str) -> Session | None:
        """The session, if valid and not expired; EndedSessions has those that were ended."""
        body = self._opened("session", cookie)
        if body is None:
            return None
        session = Session(**{**body, "groups": tuple(body["groups"])})
        return session if self._clock() < session.until else None

    def seal_login(self, begun: Begun) -> str:
        """A begun login, as a cookie; it continues without a query that is too long for one."""
        sealed = self._sealed("login", _fields_of(begun))
        if len(sealed) <= _LARGEST_BYTES:
            return sealed
        return self._sealed("login", _fields_of(replace(begun, to=begun.to.partition("?")[0])))

    def open_login(self, cookie: str) -> Begun | None:
        """The begun login, unless it took too long."""
        body = self._opened("login", cookie, LOGIN_SECONDS)
        return None if body is None else Begun(**body)

    def _sealed(self, kind: str, body: Mapping[str, Any]) -> str:
        text = json.dumps({"kind": kind, **body}, separators=(",", ":")).encode()
        return self._seal.encrypt_at_time(text, int(self._clock())).decode()

    def _opened(self, kind: str, cookie: str, seconds: int | None = None) -> dict[str, Any] | None:
        try:
            sealed = cookie.encode()
            now = int(self._clock())
            text = (
                self._seal.decrypt(sealed)
                if seconds is None
                else self._seal.decrypt_at_time(sealed, seconds, now)
            )
        except (InvalidToken, ValueError):
            return None
        body: dict[str, Any] = json.loads(text)  # we sealed it, so we wrote it
        return body if body.pop("kind") == kind else None


def new_id() -> str:
    """A new random name of a session."""
    return secrets.token_urlsafe(16)


def _fields_of(of: Begun | Session) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__slots__}
