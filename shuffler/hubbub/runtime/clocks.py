"""Clocks: bounds on the current time, and the clock of a loop.

Nothing irreversible depends on one reading of one clock.
Three witnesses are compared: this machine's clock, that of Redis, and how both ran against a
monotonic clock. Each is kept as an offset: seconds since 1970 minus monotonic seconds. While
machine and Redis agree, their offset is remembered for an hour. If both jump together (they may be
one machine), both times are possible for that hour. If one leaves the offset, that one is wrong.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Final

from hubbub.errors import StoreUnavailable


class Clock:
    """The clock of this machine, for an endless loop.

    Where something irreversible depends on the time, `Clocks` bounds it instead.
    """

    def monotonic(self) -> float:
        """Seconds of a clock that cannot be set."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Waits for `seconds`."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Waits for an event, at most for `seconds`; returns whether it is set."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
        return event.is_set()


_log: Final = logging.getLogger("hubbub.clocks")

# A clock is trusted once it ran evenly, and like the other clock, for this long.
BELIEVED_SECONDS: Final = 3600.0
# Machines without a time service drift apart by about this much in a month.
_ALIKE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 10.0
# A process that was suspended for this long starts over.
_GAP_SECONDS: Final = 900.0

Ask = Callable[[], Awaitable[Sequence[float]]]


class Clocks:
    """Bounds the current time by several clocks.

    `clock` is this machine's, in seconds since 1970; `beside` asks others for theirs, such as every
    node of a Redis, and may raise StoreUnavailable; `monotonic` cannot be set, in seconds.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        beside: Ask | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._beside = beside
        self._monotonic = monotonic
        self._others: list[float] = []
        self._agreed: deque[tuple[float, float]] = deque()
        self._before: tuple[float, ...] = ()
        self._settled_since = monotonic()
        self._has_warned = False

    def now(self) -> float:
        """The time by this machine's clock, which may be wrong."""
        return self._clock()

    def earliest(self) -> float:
        """Lower bound of the current time, in seconds since 1970."""
        return self._monotonic() + min(self._possible_offsets())

    def latest(self) -> float:
        """Upper bound of the current time, in seconds since 1970."""
        return self._monotonic() + max(self._possible_offsets())

    @property
    def apart_seconds(self) -> float:
        """Largest difference between this machine's clock, that of Redis, and their past."""
        offsets = [self._clock() - self._monotonic(), *self._others, *self._before]
        return max(offsets) - min(offsets)

    @property
    def settled(self) -> bool:
        """Whether all clocks have agreed for an hour, at every look."""
        self._note()
        if self._monotonic() - self._settled_since < BELIEVED_SECONDS:
            return False
        return self.apart_seconds <= _ALIKE_SECONDS

    def elapsed(self) -> float:
        """Seconds of the monotonic clock."""
        return self._monotonic()

    async def look(self) -> None:
        """Asks the other clocks. Raises StoreUnavailable if they do not answer.

        Logs a warning once each time the clocks come apart.
        """
        if self._beside is not None:
            before = self._monotonic()
            times = await self._beside()
            middle = (before + self._monotonic()) / 2
            self._others = [seconds - middle for seconds in times]
        self._note()
        gap = self.apart_seconds
        if gap > _ALIKE_SECONDS and not self._has_warned:
            _log.warning(
                "the clocks are %.0f s apart (this machine's, that of Redis, and both "
                "within the last hour): nothing on which they differ is closed, expired or "
                "deleted; correct them (docs/operate/clocks.md)",
                gap,
            )
        self._has_warned = gap > _ALIKE_SECONDS

    async def run(self) -> None:
        """Looks every few seconds, until cancelled."""
        while True:
            with suppress(StoreUnavailable):  # their last times continue, as the clocks would have
                await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    def _possible_offsets(self) -> list[float]:
        offsets = self._note()
        if not self._agreed or _agree(offsets):
            return [*offsets, *self._before]
        # One clock has left the time of both; the other clock and the past outvote it.
        last = self._agreed[-1][1]
        stayed = [side for side in (offsets[:1], self._others) if side and _agree([*side, last])]
        offset_group = stayed[0] if len(stayed) == 1 else offsets
        return [*offset_group, *self._before]

    def _note(self) -> list[float]:
        """The offsets of this machine and all others now.

        Remembers one if the clocks agree, and forgets those over an hour old.
        """
        now = self._monotonic()
        offsets = [self._clock() - now, *self._others]
        if self._beside is not None and not self._others:
            return offsets  # no other clock has confirmed this machine's yet
        if self._agreed and now - self._agreed[-1][0] > _GAP_SECONDS:
            self._settled_since = now
        size = len(self._agreed)
        while self._agreed and self._agreed[0][0] < now - BELIEVED_SECONDS:
            self._agreed.popleft()
        if not _agree(offsets):
            self._settled_since = now
        else:
            last_offsets = self._agreed[-1] if self._agreed else (now - _LOOK_SECONDS, offsets[0])
            if not _agree([*offsets, last_offsets[1]]):
                self._settled_since = now
            if now - last_offsets[0] >= _LOOK_SECONDS or not _agree([*offsets, last_offsets[1]]):
                self._agreed.append((now, sorted(offsets)[len(offsets) // 2]))
                size = -1
        if size != len(self._agreed):
            # Read with every report, and changed every ten seconds.
            before = list(map(itemgetter(1), self._agreed))
            self._before = (min(before), max(before)) if before else ()
        return offsets


def _agree(offsets: Sequence[float]) -> bool:
    return max(offsets) - min(offsets) <= _ALIKE_SECONDS
