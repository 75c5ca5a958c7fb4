"""Memory: how full a service's Redis is, for whoever watches it."""

import asyncio
from contextlib import suppress
from typing import Final

from hubbub.errors import StoreUnavailable
from hubbub.runtime.redis.server import RedisServer

_LOOK_SECONDS: Final = 5.0


class Memory:
    """Looks every few seconds. ratio: the part in use of what it may use; 0 without a limit."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self.ratio = 0.0

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            with suppress(StoreUnavailable):  # hubbub_store_up says that
                await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """See how full it is. Raises StoreUnavailable if Redis cannot be asked."""
        self.ratio, _ = await self._server.room()
