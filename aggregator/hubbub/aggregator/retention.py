"""Retention: totals are deleted when the catalog's `keep` is over, or an operator says so.

Whole epochs, closed ones alone. What they counted stays in the law, as counted:deleted; what was
released or exported of them stays, and is not ours to take back. What was promised while an epoch's
reports came in holds whatever the catalog says later, so the store remembers it (decision 0224).

In the hash `aggregator:retention`: metric -> what `promise` was given, whatever bundle is in use.
"""

import asyncio
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.store.contract import Counted, TotalsStore
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, Metric, closing_time, epoch_at, epoch_start
from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable
from hubbub.fields.rules import is_whole, metric_name_of
from hubbub.runtime import Clocks, Hashes, facts


class Promises:
    """For how long totals are kept, by metric, also of one that no catalog has any more.

    Both methods raise StoreUnavailable without Redis.
    """

    def __init__(self, server: Hashes) -> None:
        self._server = server

    async def promises(self) -> Mapping[str, bytes]:
        """What `promise` was given last, by metric."""
        reply = await self._server.ask("HGETALL", "aggregator:retention")
        return {name.decode(errors="replace"): text for name, text in reply.items()}

    async def promise(self, metric: str, text: str) -> None:
        """Remember this of a metric."""
        await self._server.durable([("HSET", "aggregator:retention", metric, text)])


_log: Final = logging.getLogger("hubbub.aggregator")

_LOOK_SECONDS: Final = 3600.0
_DAY: Final = 86_400


def days_of(keep: str) -> int:
    """How many days "400d" or "57w" is; 0 for what is kept for ever."""
    return int(keep[:-1]) * (7 if keep.endswith("w") else 1) if keep else 0


@dataclass(frozen=True, slots=True)
class Promised:
    """What a metric's totals were said to be kept for, also once it is in no catalog any more.

    days: every length that its epochs ever had, the one that was served last at the end -> every
    number of days that `keep` was -> the last epoch of this length that it holds for; None while
    the catalog says it.
    """

    days: Mapping[str, Mapping[int, int | None]]

    @classmethod
    def load(cls, raw: bytes) -> Self:
        """From what the store holds. Raises ValueError for anything else."""
        match json.loads(raw):
            case {"epoch": str(epoch), "days": dict(days), **more}:
                # A record of one length is as versions wrote it that knew of no other.
                match more.get("former", {}):
                    case dict(former):
                        every = {**former, epoch: days}.items()
                        return cls({length: _days(length, value) for length, value in every})
        raise ValueError("no promise")

    def data(self) -> str:
        """As the store holds it."""
        *former, epoch = self.days
        others = {"former": {name: self.days[name] for name in former}} if former else {}
        return json.dumps({"epoch": epoch, "days": self.days[epoch], **others})

    def with_keep(self, metric: Metric) -> Self:
        """With what the catalog says now, of epochs of every length."""
        number = days_of(metric.keep)
        own: dict[int, int | None] = {number: None} if number else {}
        lengths = [*(length for length in self.days if length != metric.epoch), metric.epoch]
        return replace(
            self, days={length: {**self.days.get(length, {}), **own} for length in lengths}
        )

    def until(self, moment: float, metric: Metric) -> Self:
        """Where what the catalog says no more holds for the epochs begun by this moment alone."""
        own = days_of(metric.keep)
        ended = {
            length: {
                number: epoch_at(moment, length) if last is None and number != own else last
                for number, last in days.items()
            }
            for length, days in self.days.items()
        }
        return replace(self, days=ended)

    def is_over(self, epoch: int, now: float) -> bool:
        """Whether this epoch's totals were kept for as long as they were said to be, at most."""
        length = length_of(epoch, self.days, now)
        day_counts = [n for n, last in self.days[length].items() if last is None or epoch <= last]
        return bool(day_counts) and epoch_start(epoch + 1, length) <= now - min(day_counts) * _DAY


def _days(length: str, value: object) -> dict[int, int | None]:
    """The numbers of days of one length, as the store holds them. Raises ValueError."""
    match value:
        case dict(days) if length in EPOCH_SECONDS and all(
            last is None or is_whole(last) for last in days.values()
        ):
            return {int(number): last for number, last in days.items()}
    raise ValueError("no promise")


def length_of(epoch: int, lengths: Collection[str], now: float) -> str:
    """The length of an epoch of this number, of a name whose epochs had one of these lengths.

    The numbers of hours, days and weeks of one time are far apart, and no epoch counts long before
    it begins. Where a number could be of two lengths, as of a month and of 28 days years before, it
    is taken for the later one, so that nothing is deleted too early.
    """
    # The next epoch, too: a device's clock may be ahead.
    begun = [length for length in lengths if epoch_start(epoch - 1, length) <= now]
    return max(begun or lengths, key=lambda length: epoch_start(epoch, length))


async def promised(promises: Promises) -> dict[str, Promised]:
    """What is remembered of every metric that was ever served, by name."""
    result = {}
    for name, text in (await promises.promises()).items():
        try:
            result[name] = Promised.load(text)
        except (ValueError, TypeError, RecursionError):
            _log.warning("for how long the totals of %s are kept cannot be read in Redis", name)
    return result


def windows_of(name: str, counts: Mapping[Window, Mapping[str, int]]) -> dict[Window, int]:
    """The windows that hold totals of a metric, or of a cell or tier of one: of how many reports.

    Of a metric those, too, of tiers that it has no more. counts: of the store.
    """
    return {
        window: count
        for window, terms in counts.items()
        if name in _names_of(window.stream) and (count := Counted.of(terms).tags)
    }


def _names_of(stream: str) -> set[str]:
    """What a stream can be asked by: itself, its metric, cell of all tiers, tier of all cells."""
    cell, slash, tier = stream.partition("/")
    metric = metric_name_of(stream)
    return {stream, metric, cell, f"{metric}{slash}{tier}"}


def ended_before(
    windows: Collection[Window], lengths: Collection[str], before: float, *, now: float
) -> list[Window]:
    """Those of these windows whose epochs were over by then and are closed now.

    lengths: one that every epoch has, or of a name that had several, all of them.
    """

    def ended(epoch: int) -> bool:
        length = length_of(epoch, lengths, now)
        return epoch_start(epoch + 1, length) <= before and closing_time(epoch, length) <= now

    return sorted(window for window in windows if ended(window.epoch))


async def delete_totals(
    windows: Sequence[Window], store: TotalsStore, answer_store: AnswerStore
) -> int:
    """Delete these totals, and the estimates that were kept of them: of how many reports."""
    remembered = await store.remembered()
    number = 0
    for window in windows:
        if window in remembered:
            await store.forget(window)  # its tags: no totals, nothing to count twice
        number += await store.delete(window)
    for name in sorted({name for window in windows for name in _names_of(window.stream)}):
        await answer_store.drop(name)
    return number


class Retention:
    """Looks every hour which totals need not be kept any longer.

    changed: is told the metrics whose answers are to be kept anew.
    """

    def __init__(
        self,
        bundle: Bundle,
        store: TotalsStore,
        promises: Promises,
        answer_store: AnswerStore,
        clocks: Clocks,
        *,
        changed: set[str],
    ) -> None:
        self._changed = changed
        self._bundle = bundle
        self._store = store
        self._promises = promises
        self._kept = answer_store
        self._clocks = clocks
        self._other = asyncio.Event()

    def use(self, bundle: Bundle) -> None:
        """From now on this one is in use."""
        self._bundle = bundle
        self._other.set()

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            self._other.clear()
            try:
                await self.look()
            except StoreUnavailable as error:
                _log.warning("no totals are deleted until Redis answers: %s", error)
            try:
                await asyncio.wait_for(self._other.wait(), _LOOK_SECONDS)
            except TimeoutError:
                continue

    async def look(self) -> None:
        """Remember what is promised; delete what is over, if the clocks are sure of the time."""
        settled = self._clocks.settled
        now = self._clocks.earliest()
        every = await self._remembered(self._clocks.latest() if settled else None)
        if not settled:
            return
        some = any(any(promise.days.values()) for promise in every.values())
        counts = await self._store.report_counts() if some else {}
        for name, promise in every.items():
            windows = [
                window
                for window in ended_before(windows_of(name, counts), promise.days, now, now=now)
                if promise.is_over(window.epoch, now)
            ]
            if windows:
                number = await delete_totals(windows, self._store, self._kept)
                if name in self._bundle.metrics:
                    self._changed.add(name)
                _log.info(
                    "totals deleted",
                    extra=facts(metric=name, epochs=len(windows), reports=number),
                )

    async def _remembered(self, latest: float | None) -> dict[str, Promised]:
        """What is promised of every metric, once the store knows what the bundle says.

        latest: the time, at most. Until it is known, what was said before holds for every epoch.
        """
        every = await promised(self._promises)
        for name, metric in self._bundle.metrics.items():
            before = every.get(name)
            now = (before or Promised({})).with_keep(metric)
            if latest is not None:
                now = now.until(latest, metric)
            if now != before:
                await self._promises.promise(name, now.data())
                every[name] = now
        return every
