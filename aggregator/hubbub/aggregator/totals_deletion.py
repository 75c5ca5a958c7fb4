"""Retention: deletes totals when the catalog's `keep` is over, or on an operator's command.

It deletes whole closed epochs only. Their reports stay in the law, as counted:deleted; releases and
exports stay, and cannot be taken back. The promise made while an epoch's reports came in remains
valid whatever the catalog says later, so the store remembers it (decision 0224): the hash
`aggregator:retention` maps each metric to its promise, whatever bundle is in use.
"""

import asyncio
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Self

from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.store.contract import Counted, DeletableTotals
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, Metric, closing_time, epoch_at, epoch_start
from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable
from hubbub.fields.rules import is_whole, metric_name_of
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.logs import facts
from hubbub.runtime.redis.command_sender import Hashes

_log: Final = logging.getLogger("hubbub.aggregator")

_LOOK_SECONDS: Final = 3600.0
_KEY: Final = "aggregator:retention"
_DAY: Final = 86_400


def days_of(keep: str) -> int:
    """Number of days in "400d" or "57w"; 0 for totals that are kept for ever."""
    return int(keep[:-1]) * (7 if keep.endswith("w") else 1) if keep else 0


@dataclass(frozen=True, slots=True)
class Promised:
    """A metric's promised retention, which outlives its removal from the catalog.

    Args:
        days: for every epoch length that the metric has had, the current one last: each value of
            `keep`, in days -> the last epoch of this length to which it applies; None while it is
            in the catalog.
    """

    days: Mapping[str, Mapping[int, int | None]]

    @classmethod
    def load(cls, raw: bytes) -> Self:
        """Reads a stored promise. Raises ValueError if it is invalid."""
        match json.loads(raw):
            case {"epoch": str(epoch), "days": dict(days), **more}:
                # Former versions wrote records of a single length.
                match more.get("former", {}):
                    case dict(former):
                        rows = {**former, epoch: days}.items()
                        return cls({length: _days(length, value) for length, value in rows})
        raise ValueError("no promise")

    def data(self) -> str:
        """The promise as stored."""
        *former, epoch = self.days
        others = {"former": {name: self.days[name] for name in former}} if former else {}
        return json.dumps({"epoch": epoch, "days": self.days[epoch], **others})

    def with_keep(self, metric: Metric) -> Self:
        """The promise, extended by the catalog's current `keep`, for epochs of every length."""
        number = days_of(metric.keep)
        current_keep: dict[int, int | None] = {number: None} if number else {}
        lengths = [*(length for length in self.days if length != metric.epoch), metric.epoch]
        return replace(
            self, days={length: {**self.days.get(length, {}), **current_keep} for length in lengths}
        )

    def at_moment(self, moment: float, metric: Metric) -> Self:
        """The promise, with former values of `keep` applied only to epochs begun by this moment."""
        current = days_of(metric.keep)
        ended = {
            length: {
                number: epoch_at(moment, length)
                if last_epoch is None and number != current
                else last_epoch
                for number, last_epoch in days.items()
            }
            for length, days in self.days.items()
        }
        return replace(self, days=ended)

    def is_over(self, epoch: int, now: float) -> bool:
        """Whether the shortest promise for this epoch's totals is over."""
        length = length_of(epoch, self.days, now)
        day_counts = [
            n
            for n, last_epoch in self.days[length].items()
            if last_epoch is None or epoch <= last_epoch
        ]
        return bool(day_counts) and epoch_start(epoch + 1, length) <= now - min(day_counts) * _DAY


def _days(length: str, value: object) -> dict[int, int | None]:
    """The stored numbers of days of one length. Raises ValueError."""
    match value:
        case dict(days) if length in EPOCH_SECONDS and all(
            last_epoch is None or is_whole(last_epoch) for last_epoch in days.values()
        ):
            return {int(number): last_epoch for number, last_epoch in days.items()}
    raise ValueError("no promise")


def length_of(epoch: int, lengths: Collection[str], now: float) -> str:
    """Length of the epoch with this number, if the metric's epochs have had several lengths.

    The numbers of hours, days and weeks at the same time are far apart, and no epoch counts long
    before it begins. If a number fits two lengths, as of a month and of 28 days years earlier, the
    later one is assumed, so that nothing is deleted too early.
    """
    # The next epoch, too: a device's clock may be ahead.
    begun = [length for length in lengths if epoch_start(epoch - 1, length) <= now]
    return max(begun or lengths, key=lambda length: epoch_start(epoch, length))


async def read_promises(server: Hashes) -> dict[str, Promised]:
    """The promises of all metrics that were ever served, by name."""
    result = {}
    for raw_name, text in (await server.ask("HGETALL", _KEY)).items():
        name = raw_name.decode(errors="replace")
        try:
            result[name] = Promised.load(text)
        except (ValueError, TypeError, RecursionError):
            _log.warning("the retention time of the totals of %s cannot be read in Redis", name)
    return result


def windows_of(name: str, counts: Mapping[Window, Mapping[str, int]]) -> dict[Window, int]:
    """Windows with totals of a metric, cell or tier, with their numbers of reports.

    For a metric this includes removed tiers. `counts` are the store's terms of the law.
    """
    return {
        window: count
        for window, terms in counts.items()
        if name in _names_of(window.stream) and (count := Counted.of(terms).tags)
    }


def _names_of(stream: str) -> set[str]:
    """Names that include a stream: itself, its metric, a cell of all tiers, a tier of all cells."""
    cell, slash, tier = stream.partition("/")
    metric = metric_name_of(stream)
    return {stream, metric, cell, f"{metric}{slash}{tier}"}


def closed_before(
    windows: Collection[Window], lengths: Collection[str], before: float, *, now: float
) -> list[Window]:
    """The windows whose epochs ended before this time and are closed now.

    `lengths` are all lengths that the metric's epochs have had.
    """
    with_lengths = ((window, length_of(window.epoch, lengths, now)) for window in windows)
    return sorted(
        window
        for window, length in with_lengths
        if epoch_start(window.epoch + 1, length) <= before
        and closing_time(window.epoch, length) <= now
    )


async def delete_totals(
    windows: Sequence[Window], store: DeletableTotals, answer_store: AnswerStore
) -> int:
    """Deletes these totals, with stored answers about them; returns the number of reports."""
    windows_with_tags, reports = await store.tag_ends(), 0
    for window in windows:
        if window in windows_with_tags:
            await store.forget(window)  # its tags: without totals no report can count twice
        reports += await store.delete(window)
    for name in sorted({name for window in windows for name in _names_of(window.stream)}):
        await answer_store.drop(name)
    return reports


class Retention:
    """Deletes expired totals every hour.

    Args:
        server: Redis of the promises, and of stored answers.
        changed: set to which it adds metrics whose answers must be updated.
    """

    def __init__(
        self,
        bundle: Bundle,
        store: DeletableTotals,
        server: Hashes,
        clocks: Clocks,
        *,
        changed: set[str],
    ) -> None:
        self._changed = changed
        self._bundle = bundle
        self._store = store
        self._server = server
        self._clocks = clocks
        self._other = asyncio.Event()

    def use(self, bundle: Bundle) -> None:
        """Uses this bundle from now on."""
        self._bundle = bundle
        self._other.set()

    async def run(self) -> None:
        """Runs `look` repeatedly, until cancelled."""
        while True:
            self._other.clear()
            try:
                await self.look()
            except StoreUnavailable as error:
                _log.warning("no totals are deleted until Redis answers: %s", error)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._other.wait(), _LOOK_SECONDS)

    async def look(self) -> None:
        """Stores the promises, and deletes expired totals if the time is certain."""
        settled = self._clocks.settled
        now = self._clocks.earliest()
        promises = await self._stored_promises(self._clocks.latest() if settled else None)
        if not settled:
            return
        any_promise = any(any(promise.days.values()) for promise in promises.values())
        counts = await self._store.report_counts() if any_promise else {}
        for name, promise in promises.items():
            windows = [
                window
                for window in closed_before(windows_of(name, counts), promise.days, now, now=now)
                if promise.is_over(window.epoch, now)
            ]
            if windows:
                number = await delete_totals(windows, self._store, AnswerStore(self._server))
                if name in self._bundle.metrics:
                    self._changed.add(name)
                _log.info(
                    "totals deleted",
                    extra=facts(metric=name, epochs=len(windows), reports=number),
                )

    async def _stored_promises(self, latest: float | None) -> dict[str, Promised]:
        """Promises of all metrics, after storing what the bundle adds by `latest`, if known."""
        promises = await read_promises(self._server)
        for name, metric in self._bundle.metrics.items():
            before = promises.get(name)
            now = (before or Promised({})).with_keep(metric)
            if latest is not None:  # otherwise former promises apply to every epoch
                now = now.at_moment(latest, metric)
            if now != before:
                await self._server.durable([("HSET", _KEY, name, now.data())])
                promises[name] = now
        return promises
