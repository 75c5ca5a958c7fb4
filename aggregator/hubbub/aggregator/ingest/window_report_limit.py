"""How many reports a window may hold, so that a flood of one stream does not stop the others.

All windows of a stream together may hold twice what remains for all others, and so grow ever more
slowly; however many streams are flooded, some room is left, and one alone may take two thirds.
Source: the dynamic thresholds by which packet switches share a buffer, Choudhury and Hahne 1998.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from hubbub.aggregator.store.contract import TotalsStore
from hubbub.conservation import Window

_log: Final = logging.getLogger("hubbub.aggregator")

# Bytes of Redis for a counted report: 12 for its tag, or 15 in windows of some ten thousand, and
# its share of the batch's id.
TAG_COST: Final = 20
_TIMES_WHAT_IS_LEFT: Final = 2
# No shuffler delivers a significant amount in such a short time.
_LOOK_SECONDS: Final = 0.5


@dataclass(eq=False)
class Room:
    """Limits windows by the free memory, which it checks a few times a second at most.

    Args:
        max_reports: fixed limit per window; 0 for none.
    """

    store: TotalsStore
    max_reports: int = 0
    monotonic: Callable[[], float] = time.monotonic
    _looked: float | None = field(default=None, init=False)
    _more: float = field(default=0.0, init=False)
    _reserved: Counter[Window] = field(default_factory=Counter, init=False)
    _warned: set[Window] = field(default_factory=set, init=False)

    async def of_window(self, window: Window) -> int | None:
        """Number of reports that a window may hold; None for any. Raises StoreUnavailable."""
        now = self.monotonic()
        if self._looked is None or now - self._looked > _LOOK_SECONDS:
            free_room = await self.store.room()
            self._more = max(free_room, 0) * _TIMES_WHAT_IS_LEFT / TAG_COST
            is_limited = free_room < float("inf")
            self._reserved = Counter(await self.store.counted_by_window() if is_limited else ())
            self._looked = now
        if self._more == float("inf"):
            return self.max_reports or None
        of_stream = sum(n for other, n in self._reserved.items() if other.stream == window.stream)
        fitting = self._reserved[window] + max(int(self._more) - of_stream, 0)
        self._warn(window)
        return min(fitting, self.max_reports) if self.max_reports else fitting

    def _warn(self, window: Window) -> None:
        """Warns once if a window as large as the previous epoch's will not fit."""
        stream, epoch = window
        missing_bytes = (
            self._reserved[Window(stream, epoch - 1)] - self._reserved[window] if epoch else 0
        )
        free_room = self._more / _TIMES_WHAT_IS_LEFT
        if missing_bytes <= free_room or window in self._warned:
            return
        # By then, the room of earlier epochs' windows is free.
        free_room += sum(
            n
            for other, n in self._reserved.items()
            if other.stream == stream and other.epoch < epoch - 1
        )
        if missing_bytes <= free_room:
            return
        self._warned.add(window)
        _log.warning(
            "%s will not fit if it counts as many reports as the epoch before: its other %s need "
            "about %.1f MB of the totals' Redis, which has %.1f; raise maxmemory, or see "
            "docs/operate/redis-full.md",
            window.name,
            f"{missing_bytes:,}",
            missing_bytes * TAG_COST / 1e6,
            free_room * TAG_COST / 1e6,
        )
