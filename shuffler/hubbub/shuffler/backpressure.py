"""Backpressure: refuses reports for a while when there is no room, so that Redis never fills up.

A stream may hold four times what it leaves free to all others, in reports and in memory: so one
that piles up, because the aggregator refuses it or somebody floods it, stops no other. Source: the
dynamic thresholds of shared buffers in packet switches, Choudhury and Hahne 1998.
"""

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import Final

from hubbub.errors import StoreUnavailable
from hubbub.runtime.clocks import Clock
from hubbub.shuffler.pool import Pool

_log: Final = logging.getLogger("hubbub.shuffler")

_LOOK_SECONDS: Final = 0.25
# Devices retry after this time, which grows with the time without room.
_FIRST_WAIT_SECONDS: Final = 1.0
_LONGEST_WAIT_SECONDS: Final = 60.0
_TIMES_WHAT_IS_LEFT: Final = 4
# Bytes of Redis for a waiting report, besides its own (docs/operate/size.md).
_REPORT_COST: Final = 71
_REPORT_BYTES: Final = 49


class Backpressure:
    """Checks how full the pool is, several times a second.

    `max_reports` limits the reports in Redis, pooled and in flight; `max_memory` is the usable part
    of Redis' maxmemory, in (0, 1]; `sizes` maps streams to the bytes of a report.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        max_reports: int,
        max_memory: float,
        sizes: Mapping[str, int] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._pool = pool
        self._sizes = sizes or {}
        self._clock = clock or Clock()
        self._held_batches: Counter[str] = Counter()
        self._room_left = inf
        self.max_reports = max_reports
        self._max_memory = max_memory
        self._looks = 0
        self.reports = 0
        self.memory = 0.0

    def use(self, max_reports: int, max_memory: float, sizes: Mapping[str, int]) -> None:
        """Replaces the limits from the next look on."""
        self.max_reports, self._max_memory, self._sizes = max_reports, max_memory, sizes

    @property
    def wait_seconds(self) -> float:
        """How long devices should wait before they send again; 0 if there is room."""
        if not self._looks:
            return 0.0
        return min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS + self._looks * _LOOK_SECONDS / 2)

    def is_crowded(self, stream: str) -> bool:
        """Whether a stream holds so much that more would crowd out others."""
        if not self._held_batches[stream]:
            return False
        free_room = self.max_reports - self.reports
        report_bytes = self._sizes.get(stream, _REPORT_BYTES) + _REPORT_COST
        return (
            self._held_batches[stream] > _TIMES_WHAT_IS_LEFT * free_room
            or self._held_batches[stream] * report_bytes > _TIMES_WHAT_IS_LEFT * self._room_left
        )

    def took(self, stream: str, reports: int) -> None:
        """Counts reports that went into the pool since the last look."""
        self._held_batches[stream] += reports
        self.reports += reports
        self._room_left -= reports * (self._sizes.get(stream, _REPORT_BYTES) + _REPORT_COST)

    def note_full(self) -> None:
        """Notes that Redis itself refused a write for lack of memory."""
        self._looks = max(self._looks, 1)

    async def run(self) -> None:
        """Looks several times a second, until cancelled."""
        while True:
            with suppress(StoreUnavailable):  # then submissions fail by themselves
                await self.look()
            await self._clock.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Checks how full the pool is. Raises StoreUnavailable if Redis cannot be asked."""
        counts = Counter(await self._pool.held_of_streams())
        memory, self._room_left = await self._pool.server.room(self._max_memory)
        self._held_batches, self.reports, self.memory = counts, counts.total(), memory
        if self.reports < self.max_reports and self.memory < self._max_memory:
            if self._looks:
                _log.info("the pool has room again and accepts reports")
            self._looks = 0
            return
        if not self._looks:
            _log.warning(
                "no room: %d reports wait (at most %d), %.0f%% of Redis' memory is used; "
                "devices are asked to retry later",
                self.reports,
                self.max_reports,
                100 * self.memory,
            )
        self._looks += 1
