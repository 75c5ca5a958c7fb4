"""Sessions: a browser's encrypted cookie about who logged in, which it can neither read nor change.

There is no table of sessions, except of those ended early: any aggregator with the same keys
accepts a session of another, and no data about people is stored beside devices' data. An ended one
is a Redis key, `aggregator:ended:HASH`, until it would have expired, with the hash of a random
name: it does not show whose session it was.
Fernet (AES-128-CBC and HMAC-SHA256; Fernet specification, 2013) encrypts; its keys are those of the
access file.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from hubbub.errors import AccessRefused
from hubbub.runtime.redis.command_sender import Hashes

LOGIN_SECONDS: Final = 600
"""So long somebody may take at the provider."""

# Browsers keep 4,096 bytes of name, value and attributes.
_LARGEST_BYTES: Final = 3_600
# Clocks of machines differ; the record of an ended session is deleted when all count it as expired.
_APART_SECONDS: Final = 3600


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
        id: a random name.
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
        sealed = self._encrypt("session", session)
        if len(sealed) > _LARGEST_BYTES:
            raise AccessRefused(
                f"{len(session.groups)} groups are too many for one session; name fewer of them in "
                "the access file"
            )
        return sealed

    def read_session(self, cookie: str) -> Session | None:
        """The session, if valid and not expired; EndedSessions has those that were ended."""
        body = self._decrypt("session", cookie)
        if body is None:
            return None
        session = Session(**{**body, "groups": tuple(body["groups"])})
        return session if self._clock() < session.until else None

    def seal_login(self, begun: Begun) -> str:
        """A begun login, as a cookie; it continues without a query that is too long for one."""
        sealed = self._encrypt("login", begun)
        if len(sealed) <= _LARGEST_BYTES:
            return sealed
        return self._encrypt("login", replace(begun, to=begun.to.partition("?")[0]))

    def open_login(self, cookie: str) -> Begun | None:
        """The begun login, unless it took too long."""
        body = self._decrypt("login", cookie, LOGIN_SECONDS)
        return None if body is None else Begun(**body)

    def _encrypt(self, kind: str, body: Begun | Session) -> str:
        encoded = json.dumps({"kind": kind, **asdict(body)}, separators=(",", ":")).encode()
        return self._seal.encrypt_at_time(encoded, int(self._clock())).decode()

    def _decrypt(self, kind: str, cookie: str, seconds: int | None = None) -> dict[str, Any] | None:
        try:
            sealed, now = cookie.encode(), int(self._clock())
            decrypted = (
                self._seal.decrypt(sealed)
                if seconds is None
                else self._seal.decrypt_at_time(sealed, seconds, now)
            )
        except (InvalidToken, ValueError):
            return None
        body: dict[str, Any] = json.loads(decrypted)  # we sealed it, so we wrote it
        return body if body.pop("kind") == kind else None


class EndedSessions:
    """Sessions ended in any aggregator of a Redis; methods raise StoreUnavailable without it."""

    def __init__(self, server: Hashes, clock: Callable[[], float] = time.time) -> None:
        self._server = server
        self._clock = clock

    async def end(self, session: str, until: int) -> None:
        """Ends a session; `until` is when it would expire, in seconds since 1970."""
        key, seconds = _ended_key(session), max(0, until - int(self._clock())) + _APART_SECONDS
        # Uses only commands that users.acl of every version grants.
        await self._server.durable([("HSET", key, "until", until), ("EXPIRE", key, seconds)])

    async def has(self, session: str) -> bool:
        """Whether the session was ended."""
        return bool(await self._server.ask("EXISTS", _ended_key(session)))


def _ended_key(session: str) -> str:
    return f"aggregator:ended:{hashlib.sha256(session.encode()).hexdigest()[:32]}"
