"""Caches unchanged totals, and answers computed from them.

Every change of a window's totals is named by its batch, so a window with the same last change has
the same totals: nothing cached is ever out of date, and nothing expires.
"""

import asyncio
from collections import OrderedDict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Hashable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import count
from math import floor
from typing import Any, Final, Generic, TypeVar

import numpy as np

from hubbub.aggregator.store.contract import Counted, Integers, TotalsReader, WindowTotals
from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import pmf
from hubbub.authoring.crowds.accountant import reports_variance
from hubbub.conservation import Window
from hubbub.errors import BadParameter, ServiceUnavailable, TotalsUnreadable
from hubbub.mechanisms import Totals
from hubbub.privacy.noise_dummies_account import law_of
from hubbub.sealing.dummy_laws import CountNoise, ValueNoise

# 365 epochs of 100,000 values, or a few thousand of small metrics.
_MAX_BYTES: Final = 256 << 20
_SMALLEST_BYTES: Final = 512
# Memory of an answer besides its values, and of each of its windows with its number of reports, as
# a number of values.
_OWN_SIZE: Final = 10
_SIZE_OF_PART: Final = 2
# Sums past this could pass 64 bits; no honest totals come near.
_LARGEST_SUM: Final = 1 << 62
# Holds a window's place among others until the store has answered.
_UNREAD: Final = WindowTotals(cells=np.zeros(0, dtype=np.int64), counted=0, batch_reports=0, at=0)

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """The most recently used entries, up to a total size; each entry has its own size."""

    def __init__(self, max_entries: int) -> None:
        self._most = max_entries
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.size = 0

    def get(self, key: Key) -> Value | None:
        """The entry of a key, which becomes the most recent; None if absent."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def keep(self, key: Key, value: Value, size: int) -> None:
        """Stores an entry, evicting the least recent ones; does nothing if it is too large."""
        _, old = self._entries.pop(key, (None, 0))
        self.size -= old
        if size > self._most:
            return
        self._entries[key] = (value, size)
        self.size += size
        while self.size > self._most:
            _, (_, gone) = self._entries.popitem(last=False)
            self.size -= gone


@dataclass(frozen=True, slots=True)
class _Result(Generic[Value]):
    """A result, the version of its inputs, and its number in the order of starts."""

    begun: int
    version: tuple[Hashable, ...]
    value: Value


class SingleFlightCache(Generic[Value]):
    """The latest result of each question, computed once.

    Callers that request a result in progress wait for it; a caller that leaves does not cancel it
    for the others. A result of former totals is replaced by a newer one, and is not stored if the
    newer one was ready first.
    """

    def __init__(self, max_entries: int) -> None:
        self._recent: LruCache[Hashable, _Result[Value]] = LruCache(max_entries)
        self._working: dict[Hashable, asyncio.Task[Value]] = {}
        self._begun = count()

    async def get(
        self,
        question: Hashable,
        version: tuple[Hashable, ...],
        make: Callable[[], Awaitable[Value]],
        size_of: Callable[[Value], int],
    ) -> Value:
        """The cached result of this version, or that of `make`, with its size by `size_of`.

        `version` describes everything that the result is computed from, part by part.
        """
        entry = self._recent.get(question)
        if entry is not None and entry.version == version:
            return entry.value
        key = (question, version)

        async def work() -> Value:
            begun = next(self._begun)
            try:
                value = await make()
                entry = self._recent.get(question)
                if entry is None or entry.begun < begun:
                    size = size_of(value) + _OWN_SIZE + _SIZE_OF_PART * len(version)
                    self._recent.keep(question, _Result(begun, version, value), size)
                return value
            finally:
                del self._working[key]

        if key not in self._working:
            self._working[key] = _start_task(work())
        return await asyncio.shield(self._working[key])


@dataclass(eq=False, slots=True)
class CoalescedRead(Generic[Value]):
    """One read for all callers who wait, begun after each of their calls: never out of date."""

    fetch: Callable[[], Awaitable[Value]]
    _under_way: "asyncio.Task[Value] | None" = field(default=None, init=False)
    _next: "asyncio.Task[Value] | None" = field(default=None, init=False)

    async def get(self) -> Value:
        """The result of the next read, after the current one."""

        async def read(before: "asyncio.Task[Value] | None") -> Value:
            if before:
                await asyncio.wait([before])
            self._under_way, self._next = self._next, None
            return await self.fetch()

        if self._next is None:
            self._next = _start_task(read(self._under_way))
        return await asyncio.shield(self._next)


def _start_task(work: Coroutine[Any, Any, Value]) -> "asyncio.Task[Value]":
    """A task whose failure reaches only its waiters, and is not logged if all have left."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


class TotalsCache:
    """Reads windows of a store. Every method raises StoreUnavailable without Redis.

    Attributes:
        dummies_each: average number of dummies per device, by stream, where devices add dummies.
    """

    def __init__(self, store: TotalsReader) -> None:
        self._store = store
        self.dummies_each: Mapping[str, float] = {}
        self._recent: LruCache[Window, WindowTotals] = LruCache(_MAX_BYTES)
        self._counting: dict[frozenset[str], CoalescedRead[Mapping[Window, Counted]]] = {}

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        """Count of every window of these streams that has a report."""
        key = frozenset(streams)
        if key not in self._counting:
            self._counting[key] = CoalescedRead(partial(self._store.counted, key))
        counts = await self._counting[key].get()
        if not self.dummies_each:
            return counts
        return {window: self._without_dummies(window, count) for window, count in counts.items()}

    def _without_dummies(self, window: Window, count: Counted) -> Counted:
        """The estimated split into reports and dummies, if devices add dummies."""
        dummies_each = self.dummies_each.get(window.stream, 0.0)
        reports = round(count.reports / (1 + dummies_each))
        return Counted(reports, count.tags - reports, count.last) if dummies_each else count

    async def read(self, counted: Mapping[Window, Counted]) -> dict[Window, WindowTotals]:
        """Totals of these windows, in their order; `counted` is fresh, from `counted()`."""
        totals: dict[Window, WindowTotals] = {}
        missing = []
        for window, current in counted.items():
            recent = self._recent.get(window)
            if recent and Counted(recent.counted, recent.dummies, recent.last) == current:
                totals[window] = recent
            else:
                totals[window] = _UNREAD
                missing.append(window)
        for window, raw in zip(missing, await self._store.read(missing), strict=True):
            totals[window] = raw
            if self.dummies_each:
                split = self._without_dummies(window, Counted(raw.counted, raw.dummies, raw.last))
                totals[window] = replace(raw, counted=split.reports, dummies=split.dummies)
            self._recent.keep(window, totals[window], raw.cells.nbytes + _SMALLEST_BYTES)
        return totals


def sum_totals(
    parts: Sequence[WindowTotals],
    size: int,
    *,
    dummies: int = 0,
    dummies_each: float = 0.0,
    hidden: float = 0.0,
    noise: ValueNoise | None = None,
) -> Totals:
    """The totals of several windows of one definition, which are added up.

    `dummies` is their number in a crowd, of which a part may have arrived; `dummies_each` is the
    average number per device; `hidden` is the variance of the dummies that hide the number of
    reports; `noise` is the law of the numbers of dummies of all values in an epoch.

    Raises:
        BadParameter: sums beyond 64 bits.
        TotalsUnreadable: they are of another shape.
    """
    cells: Integers = np.zeros(size, dtype=np.int64)
    counted = all_dummies = 0
    for part in parts:
        counted, all_dummies = counted + part.counted, all_dummies + part.dummies
        if part.counted or part.dummies:
            if len(part.cells) != size:
                raise TotalsUnreadable(
                    "the totals of these epochs do not fit their metric; select other epochs, or "
                    "restore them from a backup (docs/operate/restore.md)"
                )
            cells += part.cells
        if np.abs(cells).max(initial=0) >= _LARGEST_SUM:
            raise BadParameter("the sums of these epochs exceed 64 bits; select fewer epochs")
    totals = Totals(cells=cells.tolist(), reports=counted, dummies=all_dummies)
    if dummies_each:
        return replace(totals, beside_variance=reports_variance(totals.reports, dummies_each))
    if not dummies:
        return totals
    # s of m are expected: without replacement the variance is below that of coins, s (1 - s/m).
    drawn = sum((remainder := part.dummies % dummies) * (1 - remainder / dummies) for part in parts)
    law: Floats = np.ones(1)
    at_ends, sums, sum_variance = 0, 0, 0.0
    if noise:
        # Rounded down: the balance must not contain more dummies than have arrived.
        shares = [floor(100 * min(part.dummies / dummies, 1.0)) / 100 for part in parts]
        law = epochs_law(noise.each, tuple(shares))
        if noise.of_sum:
            at_ends, sums = round(2 * noise.ends * sum(shares)), max(shares.count(1), 1)
            sum_variance = sum(share**2 for share in shares) * noise.of_sum.variance
        else:
            drawn *= 1 - noise.expected / dummies
            hidden += size * float(np.cov(np.arange(len(law)), aweights=law, ddof=0))
    return replace(
        totals,
        dummies_variance=drawn,
        beside_variance=hidden,
        value_law=law.tolist() if noise else (),
        sum_variance=sum_variance,
        sums=sums,
        at_ends=at_ends,
    )


@lru_cache(maxsize=64)
def epochs_law(noise: CountNoise, shares: tuple[float, ...]) -> Floats:
    """The law of the number of dummies per value in these epochs, of which `shares` arrived."""
    chances = law_of(noise)
    numbers, law = np.arange(len(chances)), np.ones(1)
    for share in shares:
        thinned = chances if share == 1 else chances @ pmf(numbers, numbers[:, None], share)
        law = np.convolve(law, thinned)
    return law


# Each keeps its candidates in memory.
_MAX_WAITING: Final = 4


class Turns:
    """A queue for expensive questions, shared by all callers of a process."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits until no other is being answered. Raises ServiceUnavailable if too many wait."""
        if self._waiting >= _MAX_WAITING:
            raise ServiceUnavailable(
                f"{_MAX_WAITING} expensive questions wait already; try again in ten seconds, or "
                "select fewer strings"
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
