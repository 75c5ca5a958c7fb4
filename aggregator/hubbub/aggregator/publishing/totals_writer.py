"""Writes the totals of every closed window to files, and later drops them from Redis.

A window is written once its totals are final. If they grow nevertheless, the file is updated; a
file with more reports than Redis stays, since Redis may have been restored from an old backup.
Several aggregators write the same bytes to the same name. After a deletion in Redis, the file is
deleted.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from hubbub.aggregator.query.totals import TotalsByEpoch
from hubbub.aggregator.store.contract import DELETED, Counted, TotalsStore, WindowTotals
from hubbub.aggregator.store.files import FileTotals
from hubbub.catalog import EPOCH_SECONDS, closing_time, epoch_start
from hubbub.conservation import Window
from hubbub.epochs import epoch_dates, minute
from hubbub.errors import HubbubError, TotalsUnreadable
from hubbub.runtime.monitoring.logs import facts

_log: Final = logging.getLogger("hubbub.aggregator")
_LOOK_SECONDS: Final = 60.0
_DAY: Final = 86_400


class Comparison(NamedTuple):
    """Result of comparing files with Redis.

    Args:
        windows: number of closed windows in Redis.
        whole: number of readable files.
        differences: a sentence for each, with the remedy.
    """

    windows: int
    whole: int
    differences: list[str]


@dataclass(eq=False)
class TotalsWriter:
    """Writes closed windows every minute.

    Args:
        collected: contains the bundle in use, and decides which epochs are closed.
        store: the totals in Redis alone.
        files: destination.
        redis_days: days after its epoch for which Redis keeps a window's cells; 0 for ever.
    """

    collected: TotalsByEpoch
    store: TotalsStore
    files: FileTotals
    redis_days: int = 0
    _counts_by_window: dict[Window, Counted] = field(default_factory=dict, init=False)
    _written_bundle: bytes = field(default=b"", init=False)
    _dropped: set[Window] = field(default_factory=set, init=False)

    async def run(self) -> None:
        """Runs `look` repeatedly, until cancelled. What cannot be written now is written later."""
        while True:
            try:
                await self.look()
            except HubbubError as error:
                _log.warning("closed totals wait for their files: %s", error)
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> int:
        """Writes due windows, deletes files of deleted ones, and returns the number written."""
        number = 0
        self._written_bundle = b""
        files_by_window = await self.files.listed(self.collected.bundle.streams)
        async for window, count in self.closed_windows():
            try:
                # Somebody may have deleted the file of a window whose cells Redis still has.
                is_missing = window not in files_by_window and window not in self._dropped
                if is_missing or self._counts_by_window.get(window) != count:
                    number += await self._write(window, count)
                if window not in self._dropped and self._is_over(window):
                    await self._drop(window)
            except TotalsUnreadable as error:
                _log.warning("closed totals are not written: %s", error)
        await self.files.index(self.collected.bundle.streams)
        # Afterwards, so that windows deleted meanwhile are removed, too. Even if deleted before:
        # another writer may still have had them.
        laws = await self.store.report_counts()
        gone = {window for window, terms in laws.items() if terms.get(DELETED)}
        in_file = await self.files.windows({window.stream for window in gone})
        await self.files.delete(gone & in_file.keys())
        if number:
            _log.info("totals written", extra=facts(windows=number, to=self.files.place.name))
        return number

    async def closed_windows(self) -> AsyncIterator[tuple[Window, Counted]]:
        """Yields every closed window of the bundle in Redis, with its count."""
        bundle = self.collected.bundle
        for window, count in sorted((await self.store.counted(bundle.streams)).items()):
            if self.collected.is_closed(bundle.metric_of(window.stream), window.epoch):
                yield window, count

    async def first_closing(self) -> str:
        """Sentence about the epoch that closes first, for when none is closed."""
        streams = self.collected.bundle.streams
        moments = [
            (closing_time(window.epoch, streams[window.stream].epoch), window)
            for window in await self.store.counted(streams)
        ]
        if not moments:
            return "Redis has no closed epoch yet, and no report"
        closes, first = min(moments)
        return (
            f"Redis has no closed epoch yet; the first, {self._name_of(first)}, closes at "
            f"{minute(closes)}"
        )

    async def compare(self) -> Comparison:
        """Compares every file with Redis; reads every file."""
        sentences, readable = [], 0
        absent: dict[tuple[str, str], list[int]] = {}
        counted = dict([item async for item in self.closed_windows()])
        for window in sorted({*counted, *await self.files.report_counts()}):
            try:
                [in_file] = await self.files.content([window])
                [live] = await self.store.read([window])
            except TotalsUnreadable as error:
                sentences.append(str(error))
                continue
            readable += bool(in_file.counted)
            if not in_file.counted:
                remedy = "hubbub totals write creates it" if live.cells.size else "put back a copy"
                absent.setdefault((window.stream, remedy), []).append(window.epoch)
            elif window in counted and not _agree(live, in_file):
                remedy = (
                    "delete the file if Redis is right"
                    if in_file.counted > live.counted
                    else "hubbub totals write creates it again"
                )
                sentences.append(
                    f"{self.files.place.name}: the file of {self._name_of(window)} has another "
                    f"state ({in_file.counted:,} reports) than Redis ({live.counted:,}); {remedy}"
                )
        for (stream, remedy), epochs in absent.items():
            seconds = EPOCH_SECONDS[self.collected.bundle.streams[stream].epoch]
            sentences.append(
                f"{self.files.place.name}: has no file of {stream}, "
                f"{epoch_dates(epochs, seconds)}; {remedy}"
            )
        return Comparison(len(counted), readable, sentences)

    def _name_of(self, window: Window) -> str:
        return f"{window.stream} of {self.collected.date_of(window)}"

    async def _write(self, window: Window, count: Counted) -> bool:
        [totals] = await self.store.read([window])
        is_new = False
        if totals.cells.size:
            bundle = self.collected.bundle
            if bundle.signed != self._written_bundle:
                await self.files.write_bundle(bundle)
                self._written_bundle = bundle.signed
            is_new = await self.files.write(window, totals)
        else:
            self._dropped.add(window)
        self._counts_by_window[window] = count
        return is_new

    def _is_over(self, window: Window) -> bool:
        """Whether Redis may drop the cells, with certainty about the time."""
        clocks, metric = self.collected.clocks, self.collected.bundle.metric_of(window.stream)
        until = epoch_start(window.epoch + 1, metric.epoch) + self.redis_days * _DAY
        return bool(self.redis_days) and clocks.settled and until <= clocks.earliest()

    async def _drop(self, window: Window) -> None:
        """Drops the cells from Redis, after reading the file back and once its tags are deleted."""
        if window in await self.store.tag_ends():
            return
        [totals], [in_file] = await self.store.read([window]), await self.files.content([window])
        if not _agree(totals, in_file):
            self._counts_by_window.pop(window, None)  # the next look writes it again
            return
        await self.store.drop_cells(window)
        self._dropped.add(window)


def _agree(live: WindowTotals, in_file: WindowTotals) -> bool:
    """Whether a file agrees with everything that Redis still has."""
    same_cells = not live.cells.size or live.cells.tolist() == in_file.cells.tolist()
    return live.state == in_file.state and same_cells
