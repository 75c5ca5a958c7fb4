"""Redis for what is new, files for what Redis no longer has: one store of both.

Redis has the last word of every window that it knows: of a window whose cells it has dropped it
still has the terms of the law, and of one that was deleted that it was. Where the files cannot be
read, Redis alone answers.
"""

import logging
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Final, TypeVar

from hubbub.aggregator.store.contract import (
    DELETED,
    Commit,
    Counted,
    Outcome,
    TotalsStore,
    WindowTotals,
)
from hubbub.aggregator.store.files import FileTotals
from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable, TotalsUnreadable

_log: Final = logging.getLogger("hubbub.aggregator")

Result = TypeVar("Result")


class FiledStore:
    """A TotalsStore. Whatever changes, changes in Redis; a deletion also in the files."""

    def __init__(self, redis: TotalsStore, files: FileTotals) -> None:
        self._redis = redis
        self._files = files
        self._is_place_away = False

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """What each of these windows holds, in their order.

        Raises:
            TotalsUnreadable: a file that Redis counts on is missing, damaged, or of another state.
        """
        every = dict(zip(windows, await self._redis.read(windows), strict=True))
        moved = [w for w, own in every.items() if not own.cells.size and own.counted + own.dummies]
        unknown = [w for w, own in every.items() if not own.cells.size and w not in moved]
        if unknown:
            forgotten = await self._forgotten()
            unknown = [window for window in unknown if window not in forgotten]
            every |= zip(unknown, await self._files.read(unknown), strict=True)
        for window, filed in zip(moved, await self._files.content(moved), strict=True):
            if _state(filed) != _state(every[window]):
                what = "another state of them" if filed.counted else "no file of them"
                raise TotalsUnreadable(
                    f"the totals of {window.name} were moved from Redis to "
                    f"{self._files.place.name}, which has {what}; put the file back from a copy"
                )
            every[window] = filed
        return [every[window] for window in windows]

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        """What every window of these streams holds, where it holds any report."""
        own = await self._redis.counted(streams)
        filed = await self._unless_away(self._files.counted(streams), {})
        return {**await self._only_filed(own, filed), **own}

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """Per window, the aggregator's terms of the conservation law."""
        own = await self._redis.report_counts()
        counts = await self._unless_away(self._files.report_counts(), {})
        return {**{w: terms for w, terms in counts.items() if not own.get(w)}, **own}

    async def delete(self, window: Window, filed: int = 0) -> int:
        """Delete a closed window's totals in Redis, which hides them at once, and in files.

        Files that cannot be reached now are deleted by the next look of a TotalsWriter.
        """
        counts = await self._unless_away(self._files.counted([window.stream]), {})
        filed += counts[window].tags if window in counts else 0
        number = await self._redis.delete(window, filed)
        await self._unless_away(self._files.delete([window]), None)
        return number

    async def shards(self, window: Window) -> int:
        """How many shards a window has."""
        return await self._redis.shards(window)

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        """Apply a commit whole or not at all."""
        return await self._redis.add(window, commit)

    async def remembered(self) -> Mapping[Window, int]:
        """Every window whose tags are held, and until when they are needed."""
        return await self._redis.remembered()

    async def forget(self, window: Window) -> None:
        """Forget a window's tags."""
        await self._redis.forget(window)

    async def drop_cells(self, window: Window) -> None:
        """Drop the cells of a window that a file has."""
        await self._redis.drop_cells(window)

    async def counted_by_window(self) -> Mapping[Window, int]:
        """How many tags every window holds that holds any."""
        return await self._redis.counted_by_window()

    async def room(self) -> float:
        """How many bytes more there is room for."""
        return await self._redis.room()

    async def _unless_away(self, call: Awaitable[Result], otherwise: Result) -> Result:
        """What the files answer, or something else where they cannot be reached: warned of once."""
        try:
            result = await call
        except StoreUnavailable as error:
            if not self._is_place_away:
                _log.warning(
                    "%s; meanwhile answers have the totals of Redis alone, and the files of "
                    "deleted totals stay: an aggregator with --totals, or hubbub totals write, "
                    "deletes them",
                    error,
                )
            self._is_place_away = True
            return otherwise
        self._is_place_away = False
        return result

    async def _only_filed(
        self, own: Mapping[Window, Counted], filed: Mapping[Window, Counted]
    ) -> dict[Window, Counted]:
        """Of the files, the windows that Redis does not know, or lost."""
        only = {window: count for window, count in filed.items() if window not in own}
        forgotten = await self._forgotten() if only else frozenset()
        return {window: count for window, count in only.items() if window not in forgotten}

    async def _forgotten(self) -> frozenset[Window]:
        """The windows whose totals were deleted, whatever files there are still."""
        laws = await self._redis.report_counts()
        return frozenset(window for window, terms in laws.items() if terms.get(DELETED))


def _state(totals: WindowTotals) -> tuple[int, int, bytes]:
    return totals.counted, totals.dummies, totals.last
