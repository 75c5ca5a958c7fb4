"""Totals in files, to be asked about as those in Redis are: a TotalsReader of a place.

bundles/SERIAL.SUM.hubbub         every bundle whose reports were written, newest serial last
totals/STREAM/NAME.parquet        a file per closed window (window_file.py)
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

from hubbub.aggregator.place import Place
from hubbub.aggregator.store.contract import DUMMIES, Counted, WindowTotals
from hubbub.aggregator.store.window_file import (
    FileName,
    decode,
    definition_of,
    encode,
    folder_of,
    stream_of,
)
from hubbub.bundles import Bundle, open_bundle
from hubbub.conservation import Window
from hubbub.errors import BundleRefused, TotalsUnreadable, UnknownMetric

_log: Final = logging.getLogger("hubbub.aggregator")

_BUNDLES: Final = "bundles"
_TOTALS: Final = "totals"
_SUM_DIGITS: Final = 16
# An object store answers many calls at once, each after some 20 ms; of a folder it gains nothing.
_CALLS: Final = 16
LISTED_SECONDS: Final = 30.0
"""How long a listing is used by readers that learn from Redis which windows it has dropped or
deleted; files that Redis does not know are rare."""

Subject = TypeVar("Subject")
Result = TypeVar("Result")


def newest_bundle(place: Place) -> Bundle:
    """The bundle of the highest serial that was written beside the totals and is not damaged.

    Raises:
        BundleRefused: there is none, or every one is damaged.
        StoreUnavailable: the place cannot be read.
    """
    every = [
        (int(serial), entry.modified, entry.name)
        for entry in place.entries(_BUNDLES)
        if entry.is_file
        and (serial := entry.name.partition(".")[0]).isdecimal()
        and entry.name.endswith(".hubbub")
    ]
    refusal = BundleRefused(
        f"{place.name}: has no bundle of hubbub: name the folder that hubbub aggregator "
        "--totals writes, or give its bundle with --bundle"
    )
    for _, _, name in sorted(every, reverse=True):
        path = f"{_BUNDLES}/{name}"
        try:
            return open_bundle(place.read(path), place.shown(path))
        except BundleRefused as error:
            _log.warning("%s; an older bundle beside it is read, if there is any", error)
            refusal = error
    raise refusal


class FileTotals:
    """Every method raises StoreUnavailable where the place cannot be read.

    Args:
        place: what has the files.
        bundle: returns the bundle in use, whose definitions the files must be of.
        fresh_seconds: for how long a listing is taken for true; for readers that learn from
            elsewhere which windows there are.
    """

    def __init__(
        self,
        place: Place,
        bundle: Callable[[], Bundle],
        fresh_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.place = place
        self._bundle = bundle
        self._fresh_seconds = fresh_seconds
        self._clock = clock
        self._listed: dict[str, tuple[float, dict[Window, list[FileName]]]] = {}

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        """What every window of these streams holds, where it holds any report."""
        listed = await self.listed(streams)
        every = {window: names[-1].counted for window, names in listed.items()}
        return {window: count for window, count in every.items() if count.reports}

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """What each of these windows holds, in their order; `last` is that of `counted`.

        Raises:
            TotalsUnreadable: a file is damaged, foreign, or of another definition.
        """
        names = await self.names(windows)
        every = await self._decoded(names)
        return [
            replace(every[window], last=names[window].counted.last) if window in names else _NOTHING
            for window in windows
        ]

    async def content(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """As `read`, with `last` as it was in Redis when the file was written."""
        every = await self._decoded(await self.names(windows))
        return [every.get(window, _NOTHING) for window in windows]

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """Per window, as much of the aggregator's terms of the conservation law as files have."""
        entries = await asyncio.to_thread(self.place.entries, _TOTALS)
        counted = await self.counted(
            [
                stream
                for entry in entries
                if not entry.is_file and (stream := stream_of(entry.name)) is not None
            ]
        )
        return {
            window: {"counted": count.reports, DUMMIES: count.dummies}
            for window, count in counted.items()
        }

    async def listed(self, streams: Collection[str]) -> dict[Window, list[FileName]]:
        """The files of every window of these streams; several where a writer was interrupted."""
        now = self._clock()
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

    async def names(self, windows: Sequence[Window]) -> dict[Window, FileName]:
        """The one file of each of these windows that has any.

        Raises:
            TotalsUnreadable: a window has two.
        """
        streams = list(dict.fromkeys(window.stream for window in windows))
        listed = await self.listed(streams)
        if stale := {window.stream for window in windows if window not in listed}:
            self.forget_listing(stale)
            listed = await self.listed(streams)
        for window in windows:
            if len(names := listed.get(window, [])) > 1:
                raise TotalsUnreadable(
                    f"{self.place.shown(names[0].path)}: beside it is {names[1].name}, another "
                    f"state of {window.name}; the aggregator deletes the older one while Redis "
                    "has the window: see hubbub totals verify"
                )
        return {window: listed[window][0] for window in windows if window in listed}

    def forget_listing(self, streams: Iterable[str]) -> None:
        """List these streams anew when somebody asks next."""
        for stream in streams:
            self._listed.pop(stream, None)

    async def write(self, window: Window, totals: WindowTotals) -> bool:
        """Write a closed window: False if it was there, or a file of more reports of it.

        Such a file stays: Redis may have been restored from a backup of before the window closed.
        Files of other states go.
        """
        return await asyncio.to_thread(self._write, window, totals)

    async def write_bundle(self, bundle: Bundle) -> None:
        """Keep the bundle beside the totals of its reports."""

        def write() -> None:
            name = f"{bundle.serial}.{sha256(bundle.signed).hexdigest()[:_SUM_DIGITS]}.hubbub"
            if name not in [entry.name for entry in self.place.entries(_BUNDLES)]:
                self.place.write(f"{_BUNDLES}/{name}", bundle.signed, owner_only=True)

        await asyncio.to_thread(write)

    async def delete(self, windows: Iterable[Window]) -> None:
        """Delete the files of these windows."""
        by_stream: dict[str, set[Window]] = {}
        for window in windows:
            by_stream.setdefault(window.stream, set()).add(window)
        for stream, own in by_stream.items():
            self.forget_listing([stream])
            for window, names in (await self.listed([stream])).items():
                if window in own:
                    for name in names:
                        await asyncio.to_thread(self.place.delete, name.path)
            self.forget_listing([stream])

    def _write(self, window: Window, totals: WindowTotals) -> bool:
        name, content = encode(window, totals, self._bundle().asked_in(window.stream))
        names = self._list(window.stream).get(window, [])
        if any(other.counted.tags > name.counted.tags for other in names):
            return False
        is_new = name not in names
        if is_new:
            self.place.write(name.path, content, owner_only=True)
        for other in names:
            if other != name:
                self.place.delete(other.path)
        self.forget_listing([window.stream])
        return is_new

    def _list(self, stream: str) -> dict[Window, list[FileName]]:
        listing: dict[Window, list[FileName]] = {}
        for entry in self.place.entries(folder_of(stream)):
            if entry.is_file and (name := FileName.parse(stream, entry.name)):
                listing.setdefault(name.window, []).append(name)
        return listing

    async def _decoded(self, names: Mapping[Window, FileName]) -> dict[Window, WindowTotals]:
        streams = {window.stream for window in names}
        definitions = {stream: self._definition(stream) for stream in streams}

        def read() -> dict[Window, WindowTotals]:
            contents = self._place_calls(self._content, names.values())
            return {
                window: decode(content, own, definitions[window.stream], self.place.shown(own.path))
                for (window, own), content in zip(names.items(), contents, strict=True)
            }

        return await asyncio.to_thread(read)

    def _content(self, own: FileName) -> bytes:
        try:
            return self.place.read(own.path)
        except FileNotFoundError as error:
            raise TotalsUnreadable(
                f"{self.place.shown(own.path)}: vanished since it was listed; take it from a copy, "
                "or ask again"
            ) from error

    def _place_calls(
        self, call: Callable[[Subject], Result], subjects: Iterable[Subject]
    ) -> list[Result]:
        """Ask the place for each: a folder one after the other, an object store at once."""
        if self.place.is_local:
            return [call(subject) for subject in subjects]
        with ThreadPoolExecutor(_CALLS, "totals") as calls:
            return list(calls.map(call, subjects))

    def _definition(self, stream: str) -> str:
        try:
            return definition_of(self._bundle().asked_in(stream))
        except UnknownMetric:  # of a retired metric, which no question is about
            return ""


_NOTHING: Final = WindowTotals(cells=np.zeros(0, dtype=np.int64), counted=0, batch_reports=0, at=0)
