"""Totals in files of a place: a TotalsReader, as Redis is.

bundles/SERIAL.SUM.hubbub         every bundle whose reports were written, newest serial last
totals/STREAM/NAME.parquet        a file per closed window (window_file.py)
index/SUM.json                    which windows have a file (window_file.py)
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from typing import Final, TypeVar

import numpy as np

from hubbub.aggregator.exported_files import Place
from hubbub.aggregator.store.contract import DUMMIES, Counted, WindowTotals
from hubbub.aggregator.store.window_file import (
    Entries,
    FileIndex,
    FileName,
    decode,
    definition_of,
    encode,
    folder_of,
    stream_of,
)
from hubbub.bundles import Bundle, open_bundle
from hubbub.catalog import EPOCH_SECONDS
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.errors import BundleRefused, TotalsUnreadable, UnknownMetric
from hubbub.fields.rules import metric_name_of

_log: Final = logging.getLogger("hubbub.aggregator")

_BUNDLES: Final = "bundles"
_TOTALS: Final = "totals"
_SUM_DIGITS: Final = 16
# An object store answers many parallel calls, each after about 20 ms; a folder gains nothing.
_CALLS: Final = 16
LISTED_SECONDS: Final = 30.0
"""How long a listing is used by readers that learn from Redis which windows it has dropped or
deleted; files that Redis does not know are rare."""

Subject = TypeVar("Subject")
Result = TypeVar("Result")


def newest_bundle(place: Place) -> Bundle:
    """The undamaged bundle of the highest serial beside the totals.

    Raises:
        BundleRefused: there is none, or every one is damaged.
        StoreUnavailable: the place cannot be read.
    """
    candidates = [
        (int(serial), entry.modified, entry.name)
        for entry in place.entries(_BUNDLES)
        if entry.is_file
        and (serial := entry.name.partition(".")[0]).isdecimal()
        and entry.name.endswith(".hubbub")
    ]
    refusal = BundleRefused(
        f"{place.name}: has no bundle: name the folder that hubbub aggregator --totals "
        "writes, or give its bundle with --bundle"
    )
    for _, _, name in sorted(candidates, reverse=True):
        path = f"{_BUNDLES}/{name}"
        try:
            return open_bundle(place.read(path), place.display(path))
        except BundleRefused as error:
            _log.warning("%s; an older bundle beside it is used, if there is one", error)
            refusal = error
    raise refusal


class FileTotals:
    """Totals in files. Every method raises StoreUnavailable if the place cannot be read.

    The files must belong to the definitions of the `bundle` in use. A listing is used for
    `fresh_seconds`, by readers that know the windows from elsewhere. `left_out` has epochs, by
    metric, that are not answered; `read` adds those whose files it cannot read; None for none.
    """

    def __init__(
        self,
        place: Place,
        bundle: Callable[[], Bundle],
        fresh_seconds: float = 0.0,
        left_out: set[tuple[str, int]] | None = None,
    ) -> None:
        self.place = place
        self.left_out = left_out
        self._index = FileIndex(place)
        self._indexed: tuple[float, Entries] = (-float("inf"), {})
        self._bundle = bundle
        self._fresh_seconds = fresh_seconds
        self._listed: dict[str, tuple[float, dict[Window, list[FileName]]]] = {}

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        """Counts of all windows with a report, even of a missing file, which `read` refuses."""
        return {
            window: count
            for window, count in (await self.windows(streams)).items()
            if count.reports and _epoch_of(window) not in (self.left_out or ())
        }

    async def windows(self, streams: Collection[str]) -> dict[Window, Counted]:
        """Counts of all windows of these streams that have a file, or should have one."""
        files_by_window, requested_streams = await self.listed(streams), set(streams)
        counts = {window: names[-1].counted for window, names in files_by_window.items()}
        for window, count in (await self._entries()).items():
            if count and window.stream in requested_streams:
                counts.setdefault(window, count)
        return counts

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """Totals of these windows, in their order; `last` is that of `counted`.

        Raises TotalsUnreadable for a missing, damaged or foreign file, or of another definition.
        """
        files_by_window = await self._listed_or_new(windows)
        absent = [window for window in windows if window not in files_by_window]
        entries = await self._entries() if absent else {}
        decoded = await self._decode_windows(
            windows, files_by_window, {w for w in absent if entries.get(w)}
        )
        return [
            replace(totals, last=files_by_window[window][0].counted.last)
            if window in files_by_window
            else totals
            for window, totals in zip(windows, decoded, strict=True)
        ]

    async def content(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """As `read`, with `last` as in Redis at the time; a window without a file is empty."""
        return await self._decode_windows(windows, await self._listed_or_new(windows))

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """The aggregator's terms of the conservation law per window, as far as files have them."""
        folders = await asyncio.to_thread(self.place.entries, _TOTALS)
        streams = {window.stream for window in await self._entries()}
        for folder in folders:
            if not folder.is_file and (stream := stream_of(folder.name)) is not None:
                streams.add(stream)
        counted = await self.counted(streams)
        return {
            window: {"counted": count.reports, DUMMIES: count.dummies}
            for window, count in counted.items()
        }

    async def listed(self, streams: Collection[str]) -> dict[Window, list[FileName]]:
        """Files of every window of these streams; several if a writer was interrupted."""
        now = time.monotonic()
        fresh = {
            stream: listing
            for stream in streams
            if (listing := self._listed.get(stream)) and now < listing[0] + self._fresh_seconds
        }
        due = [stream for stream in streams if stream not in fresh]
        listings = await asyncio.to_thread(self._place_calls, self._list, due)
        renewed = {stream: (now, own) for stream, own in zip(due, listings, strict=True)}
        self._listed |= renewed
        return {
            window: names
            for _, listing in (fresh | renewed).values()
            for window, names in listing.items()
        }

    async def _listed_or_new(self, windows: Sequence[Window]) -> dict[Window, list[FileName]]:
        """As `listed`, with a new listing if a window is not in the former one."""
        streams = list(dict.fromkeys(window.stream for window in windows))
        files_by_window = await self.listed(streams)
        if stale := {window.stream for window in windows if window not in files_by_window}:
            self.forget_listing(stale)
            files_by_window = await self.listed(streams)
        return files_by_window

    async def _entries(self) -> Entries:
        now = time.monotonic()
        if now >= self._indexed[0] + self._fresh_seconds:
            self._indexed = (now, await asyncio.to_thread(self._index.entries))
        return self._indexed[1]

    def forget_listing(self, streams: Iterable[str]) -> None:
        """Discards the listings of these streams."""
        for stream in streams:
            self._listed.pop(stream, None)

    async def write(self, window: Window, totals: WindowTotals) -> bool:
        """Writes a closed window; False if the file, or one with more reports, already exists.

        A larger file stays: Redis may have been restored from a backup made before the window
        closed. Files of other states are deleted.
        """

        def write() -> bool:
            name, content = encode(window, totals, self._bundle().metric_of(window.stream))
            names = self._list(window.stream).get(window, [])
            if any(other.counted.tags > name.counted.tags for other in names):
                return False
            if name not in names:
                self.place.write(name.path, content, owner_only=True)
            for other in names:
                if other != name:
                    self.place.delete(other.path)
            self.forget_listing([window.stream])
            return name not in names

        return await asyncio.to_thread(write)

    async def write_bundle(self, bundle: Bundle) -> None:
        """Writes the bundle beside the totals of its reports."""

        def write() -> None:
            name = f"{bundle.serial}.{sha256(bundle.signed).hexdigest()[:_SUM_DIGITS]}.hubbub"
            if name not in [entry.name for entry in self.place.entries(_BUNDLES)]:
                self.place.write(f"{_BUNDLES}/{name}", bundle.signed, owner_only=True)

        await asyncio.to_thread(write)

    async def index(self, streams: Collection[str]) -> None:
        """Enters all files of these streams in the index."""
        files_by_window = await self.listed(streams)
        await self._update({window: names[-1].counted for window, names in files_by_window.items()})

    async def delete(self, windows: Collection[Window]) -> None:
        """Deletes the files of these windows, after recording that in the index."""
        entries = await self._entries()
        await self._update({window: None for window in windows if entries.get(window)})
        for stream in {window.stream for window in windows}:
            self.forget_listing([stream])
            for window, names in (await self.listed([stream])).items():
                for name in names if window in windows else ():
                    await asyncio.to_thread(self.place.delete, name.path)
            self.forget_listing([stream])

    async def _update(self, changes: Entries) -> None:
        if changes:
            await asyncio.to_thread(self._index.update, changes)
            self._indexed = (-float("inf"), {})

    def _list(self, stream: str) -> dict[Window, list[FileName]]:
        listing: dict[Window, list[FileName]] = {}
        for entry in self.place.entries(folder_of(stream)):
            if entry.is_file and (name := FileName.parse(stream, entry.name)):
                listing.setdefault(name.window, []).append(name)
        return listing

    async def _decode_windows(
        self,
        windows: Sequence[Window],
        files_by_window: Mapping[Window, list[FileName]],
        absent: Collection[Window] = (),
    ) -> list[WindowTotals]:
        """Content of the files of these windows; `absent` are windows whose files are missing."""
        definitions = {window.stream: self._definition(window.stream) for window in windows}
        refusals: dict[Window, TotalsUnreadable] = {}

        def load(window: Window) -> WindowTotals:
            names = files_by_window.get(window, ())
            try:
                if window in absent:
                    raise self._missing_file_error(window)
                return self._load(window, names, definitions[window.stream]) if names else _NOTHING
            except TotalsUnreadable as error:
                refusals[window] = error
                return _NOTHING

        totals = await asyncio.to_thread(self._place_calls, load, windows)
        if refusals:
            if self.left_out is not None:
                self.left_out.update(map(_epoch_of, refusals))
            first, others = min(refusals.items())[1], len(refusals) - 1
            raise TotalsUnreadable(f"{first} (and so {others:,} more)") if others else first
        return totals

    def _definition(self, stream: str) -> str:
        try:
            return definition_of(self._bundle().metric_of(stream))
        except UnknownMetric:  # of a retired metric, which no query concerns
            return ""

    def _missing_file_error(self, window: Window) -> TotalsUnreadable:
        metric = self._bundle().streams.get(window.stream)
        date = epoch_date(window.epoch, EPOCH_SECONDS[metric.epoch]) if metric else window.name
        return TotalsUnreadable(
            f"{self.place.display(folder_of(window.stream))}: the file of {date} is missing, which "
            "the index has; put it back from a copy, or run hubbub totals write, if Redis still "
            "has the epoch"
        )

    def _load(self, window: Window, names: Sequence[FileName], definition: str) -> WindowTotals:
        place = self.place.display(names[0].path)
        if len(names) > 1:
            raise TotalsUnreadable(
                f"{place}: this file and {names[1].name} are both of {window.name}; while Redis "
                "has that window, the aggregator deletes the older file: see hubbub totals verify"
            )
        try:
            content = self.place.read(names[0].path)
        except FileNotFoundError as error:
            raise TotalsUnreadable(
                f"{place}: disappeared since it was listed; restore it from a copy, or try again"
            ) from error
        return decode(content, names[0], definition, place)

    def _place_calls(
        self, call: Callable[[Subject], Result], subjects: Iterable[Subject]
    ) -> list[Result]:
        """Calls for each subject: a folder sequentially, an object store in parallel."""
        if self.place.is_local:
            return [call(subject) for subject in subjects]
        with ThreadPoolExecutor(_CALLS, "totals") as calls:
            return list(calls.map(call, subjects))


_NOTHING: Final = WindowTotals(cells=np.zeros(0, dtype=np.int64), counted=0, batch_reports=0, at=0)


def _epoch_of(window: Window) -> tuple[str, int]:
    return metric_name_of(window.stream), window.epoch
