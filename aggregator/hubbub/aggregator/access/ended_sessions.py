"""Sessions that were ended early, known to every aggregator until they would have expired.

Each is a Redis key, `aggregator:ended:HASH`, with the hash of a random name: it does not show whose
session it was.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from hubbub.runtime.redis.server import Hashes

_KEY: Final = "aggregator:ended:"
# Clocks of machines differ; the record of an ended session is deleted when all count it as expired.
_APART_SECONDS: Final = 3600


class EndedSessions:
    """Sessions ended in any aggregator of a Redis; methods raise StoreUnavailable without it."""

    def __init__(self, server: Hashes, clock: Callable[[], float]) -> None:
        self._server = server
        self._clock = clock

    async def end(self, session: str, until: int) -> None:
        """Ends a session; `until` is when it would expire, in seconds since 1970."""
        key, seconds = _key(session), max(0, until - int(self._clock())) + _APART_SECONDS
        # Uses only commands that users.acl of every version grants.
        await self._server.durable([("HSET", key, "until", until), ("EXPIRE", key, seconds)])

    async def has(self, session: str) -> bool:
        """Whether the session was ended."""
        return bool(await self._server.ask("EXISTS", _key(session)))


def _key(session: str) -> str:
    return _KEY + hashlib.sha256(session.encode()).hexdigest()[:32]
