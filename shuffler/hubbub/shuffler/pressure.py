"""Pressure: whether there is room for more reports, so that Redis never fills up."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from hubbub.errors import StoreUnavailable
from hubbub.shuffler.pool import Pool

__all__ = ["Pressure"]

_log: Final = logging.getLogger("hubbub.shuffler")

_LOOK_SECONDS: Final = 0.25
# Devices come back after this long, and somewhat more for every second that there was no room.
_FIRST_WAIT_SECONDS: Final = 1.0
_LONGEST_WAIT_SECONDS: Final = 60.0


class Pressure:
    """Looks at the pool a few times a second.

    most_reports: that Redis may hold for us, pooled and in flight, before more are refused.
    most_memory: the part of Redis' own maxmemory that may be used before more are refused.
    """

    def __init__(self, pool: Pool, *, most_reports: int, most_memory: float) -> None:
        self._pool = pool
        self._most_reports = most_reports
        self._most_memory = most_memory
        self._looks = 0
        self.reports = 0
        self.memory = 0.0

    @property
    def wait_seconds(self) -> float:
        """How long devices should wait before they send again; 0 if there is room."""
        if not self._looks:
            return 0.0
        return min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS + self._looks * _LOOK_SECONDS / 2)

    def full(self) -> None:
        """Redis itself refused a write for want of memory."""
        self._looks = max(self._looks, 1)

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            with suppress(StoreUnavailable):  # then submissions fail by themselves
                await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """See how full it is. Raises StoreUnavailable if Redis cannot be asked."""
        self.reports, self.memory = await self._pool.held(), await self._pool.memory()
        if self.reports < self._most_reports and self.memory < self._most_memory:
            if self._looks:
                _log.info("there is room again: reports are taken")
            self._looks = 0
            return
        if not self._looks:
            _log.warning(
                "no room: %d reports wait (at most %d), %.0f%% of Redis' memory is used; "
                "devices are told to come back later",
                self.reports,
                self._most_reports,
                100 * self.memory,
            )
        self._looks += 1
