"""One store from Redis for new totals, and files for totals that Redis no longer has.

Redis decides about every window that it knows: it still has the terms of the law after dropping a
window's cells, and remembers a deletion. If the files cannot be read, Redis alone answers.
"""

import logging
from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Final, TypeVar

from hubbub.aggregator.store.contract import DELETED, Counted, TotalsStore, WindowTotals
from hubbub.aggregator.store.files import FileTotals
from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable, TotalsUnreadable

_log: Final = logging.getLogger("hubbub.aggregator")

Result = TypeVar("Result")


class FiledStore:
    """DeletableTotals; they are deleted in Redis, and in the files."""

    def __init__(self, redis: TotalsStore, files: FileTotals) -> None:
        self._redis = redis
        self._files = files
        self._is_place_away = False

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """Totals of these windows, in their order.

        Raises TotalsUnreadable if a file that Redis relies on is missing, damaged or another.
        """
        totals = dict(zip(windows, await self._redis.read(windows), strict=True))
        empty = [w for w, stored in totals.items() if not stored.cells.size]
        windows_in_files = [w for w in empty if totals[w].counted + totals[w].dummies]
        unknown = [w for w in empty if w not in windows_in_files]
        if unknown:
            forgotten = await self._deleted_windows()
            unknown = [window for window in unknown if window not in forgotten]
            totals |= zip(unknown, await self._files.read(unknown), strict=True)
        for window, content in zip(
            windows_in_files, await self._files.content(windows_in_files), strict=True
        ):
            if content.state != totals[window].state:
                problem = "another state of them" if content.counted else "no file of them"
                raise TotalsUnreadable(
                    f"the totals of {window.name} were moved from Redis to "
                    f"{self._files.place.name}, which has {problem}; put the file back from a copy"
                )
            totals[window] = content
        return [totals[window] for window in windows]

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        in_redis = await self._redis.counted(streams)
        in_files = await self._unless_away(self._files.counted(streams), {})
        # Redis does not know these windows, has lost them, or their totals were deleted.
        only = {w: counted for w, counted in in_files.items() if w not in in_redis}
        forgotten = await self._deleted_windows() if only else frozenset()
        return {**{w: counted for w, counted in only.items() if w not in forgotten}, **in_redis}

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        in_redis = await self._redis.report_counts()
        counts = await self._unless_away(self._files.report_counts(), {})
        return {**{w: terms for w, terms in counts.items() if not in_redis.get(w)}, **in_redis}

    async def delete(self, window: Window, reports_in_file: int = 0) -> int:
        """Deletes a closed window's totals in Redis, which hides them at once, and in files.

        A TotalsWriter later deletes files that cannot be reached now.
        """
        counts = await self._unless_away(self._files.counted([window.stream]), {})
        reports_in_file += counts[window].tags if window in counts else 0
        number = await self._redis.delete(window, reports_in_file)
        await self._unless_away(self._files.delete([window]), None)
        return number

    async def tag_ends(self) -> Mapping[Window, int]:
        return await self._redis.tag_ends()

    async def forget(self, window: Window) -> None:
        await self._redis.forget(window)

    async def _unless_away(self, call: Awaitable[Result], default: Result) -> Result:
        """Result of a call of the files, or `default` if they are unreachable; warns once."""
        try:
            result = await call
        except StoreUnavailable as error:
            if not self._is_place_away:
                _log.warning(
                    "%s; meanwhile answers use only the totals in Redis, and files of "
                    "deleted totals stay: an aggregator with --totals, or hubbub totals "
                    "write, deletes them",
                    error,
                )
            self._is_place_away = True
            return default
        self._is_place_away = False
        return result

    async def _deleted_windows(self) -> frozenset[Window]:
        """Windows whose totals were deleted, even if files still exist."""
        laws = await self._redis.report_counts()
        return frozenset(window for window, terms in laws.items() if terms.get(DELETED))
