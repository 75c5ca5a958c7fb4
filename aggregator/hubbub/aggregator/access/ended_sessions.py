"""Sessions that were ended before their time: known to every aggregator, until they would end.

In Redis they are keys of their own, `aggregator:ended:HASH`, of a random name's hash: nothing in
them says whose session it was.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from hubbub.runtime import Hashes

_KEY: Final = "aggregator:ended:"
# Clocks of several machines are apart; a session is forgotten as ended once it is over for each.
_APART_SECONDS: Final = 3600


class EndedSessions:
    """Those that were ended in any aggregator of a Redis; StoreUnavailable where it is away."""

    def __init__(self, server: Hashes, clock: Callable[[], float]) -> None:
        self._server = server
        self._clock = clock

    async def end(self, session: str, until: int) -> None:
        """Nobody asks by it any more. until: when it would end by itself, seconds since 1970."""
        key, seconds = _key(session), max(0, until - int(self._clock())) + _APART_SECONDS
        # Of the commands that users.acl of every version grants.
        await self._server.durable([("HSET", key, "until", until), ("EXPIRE", key, seconds)])

    async def has(self, session: str) -> bool:
        """Whether it was ended."""
        return bool(await self._server.ask("EXISTS", _key(session)))


def _key(session: str) -> str:
    return _KEY + hashlib.sha256(session.encode()).hexdigest()[:32]
