"""Turns: expensive questions are answered one at a time, and few of them may wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from hubbub.errors import ServiceUnavailable

# Each keeps its candidates in memory.
_MAX_WAITING: Final = 4


class Turns:
    """One for all callers of a process."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until no other expensive question is being answered.

        Raises:
            ServiceUnavailable: too many wait already.
        """
        if self._waiting >= _MAX_WAITING:
            raise ServiceUnavailable(
                f"{_MAX_WAITING} expensive questions wait already; ask again in ten seconds, or "
                "for fewer strings"
            )
        self._waiting += 1
        try:
            await self._lock.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._lock.release()
