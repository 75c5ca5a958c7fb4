"""What was promised of totals, beside them in Redis: for how long each metric's are kept.

In the hash `aggregator:retention`: metric -> what `promise` was given, whatever bundle is in use.
"""

from collections.abc import Mapping
from typing import Protocol

from hubbub.runtime import RedisServer


class Promises(Protocol):
    """For how long totals are kept, by metric, also of one that no catalog has any more."""

    async def promises(self) -> Mapping[str, bytes]:
        """What `promise` was given last, by metric."""
        ...

    async def promise(self, metric: str, text: str) -> None:
        """Remember this of a metric."""
        ...


class RedisPromises:
    """In the aggregator's Redis. Both methods raise StoreUnavailable."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def promises(self) -> Mapping[str, bytes]:
        """What `promise` was given last, by metric."""
        reply = await self._server.ask("HGETALL", "aggregator:retention")
        return {name.decode(errors="replace"): text for name, text in reply.items()}

    async def promise(self, metric: str, text: str) -> None:
        """Remember this of a metric."""
        await self._server.durable([("HSET", "aggregator:retention", metric, text)])
