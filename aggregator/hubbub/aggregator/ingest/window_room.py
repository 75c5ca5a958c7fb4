"""Room: how many reports a window may hold, so that no flood of one stops the counting of others.

What a stream's windows hold together may be twice what they leave to all others, and grows ever
slower; so however many streams are flooded, there is some left, and one alone may have two thirds.
Source: the dynamic thresholds by which packet switches share a buffer, Choudhury and Hahne 1998.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from hubbub.aggregator.store.contract import TotalsStore
from hubbub.conservation import Window

_log: Final = logging.getLogger("hubbub.aggregator")

# Bytes of Redis that a counted report takes: 12 for its tag, 15 in windows of some ten thousand,
# and the share of its batch's id.
TAG_COST: Final = 20
_TIMES_WHAT_IS_LEFT: Final = 2
# In so short a time no shuffler delivers what would make a difference.
_LOOK_SECONDS: Final = 0.5


class Room:
    """Looks at what is left, a few times a second at most.

    max_reports: that a window may hold however much is left; 0 for any number.
    """

    def __init__(
        self,
        store: TotalsStore,
        max_reports: int = 0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._most = max_reports
        self._monotonic = monotonic
        self._looked: float | None = None
        self._more: float = 0
        self._held: Counter[Window] = Counter()
        self._warned: set[Window] = set()

    def allow(self, max_reports: int) -> None:
        """Change how many reports a window may hold."""
        self._most = max_reports

    async def of_window(self, window: Window) -> int | None:
        """How many reports a window may hold; None for any number. Raises StoreUnavailable."""
        now = self._monotonic()
        if self._looked is None or now - self._looked > _LOOK_SECONDS:
            free_room = await self._store.room()
            self._more = max(free_room, 0) * _TIMES_WHAT_IS_LEFT / TAG_COST
            self._held = (
                Counter(await self._store.counted_by_window())
                if free_room < float("inf")
                else Counter()
            )
            self._looked = now
        if self._more == float("inf"):
            return self._most or None
        of_stream = sum(n for other, n in self._held.items() if other.stream == window.stream)
        fitting = self._held[window] + max(int(self._more) - of_stream, 0)
        self._warn(window)
        return min(fitting, self._most) if self._most else fitting

    def _warn(self, window: Window) -> None:
        """Say once that a window as large as the one before will not fit.

        What epochs before that one hold is free by then.
        """
        stream, epoch = window
        needed = self._held[Window(stream, epoch - 1)] - self._held[window] if epoch else 0
        free_room = self._more / _TIMES_WHAT_IS_LEFT
        if needed <= free_room or window in self._warned:
            return
        free_room += sum(
            n
            for other, n in self._held.items()
            if other.stream == stream and other.epoch < epoch - 1
        )
        if needed <= free_room:
            return
        self._warned.add(window)
        _log.warning(
            "%s will not fit if it counts as many reports as the epoch before: its other %s need "
            "about %.1f MB of the totals' Redis, which has %.1f; raise maxmemory, or see "
            "docs/operate/redis-full.md",
            window.name,
            f"{needed:,}",
            needed * TAG_COST / 1e6,
            free_room * TAG_COST / 1e6,
        )
