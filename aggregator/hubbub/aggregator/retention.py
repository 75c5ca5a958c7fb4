"""Retention: totals are deleted when the catalog's `keep` is over, or an operator says so.

Whole epochs, closed ones alone. What they counted stays in the law, as counted:deleted; what was
released or exported of them stays, and is not ours to take back. What was promised while an epoch's
reports came in holds whatever the catalog says later, so the store remembers it (decision 0085).
"""

import asyncio
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, Self

from hubbub.aggregator.store.contract import Counted, TotalsStore
from hubbub.aggregator.store.promises import Promises
from hubbub.catalog import EPOCH_SECONDS, Bundle, Metric, closing_time, epoch_at, epoch_start
from hubbub.catalog.fields.rules import is_whole, metric_name_of
from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable
from hubbub.runtime import Clocks, facts

_log: Final = logging.getLogger("hubbub.aggregator")

_LOOK_SECONDS: Final = 3600.0
_DAY: Final = 86_400


def days_of(keep: str) -> int:
    """How many days "400d" or "57w" is; 0 for what is kept for ever."""
    return int(keep[:-1]) * (7 if keep.endswith("w") else 1) if keep else 0


class DropsEstimates(Protocol):
    """Where finished estimates are kept."""

    async def drop(self, metric: str) -> None:
        """Keep none of a metric."""
        ...


@dataclass(frozen=True, slots=True)
class Promised:
    """What a metric's totals were said to be kept for, also once it is in no catalog any more.

    epoch: the length of its epochs. days: every number of days that `keep` ever was -> the last
    epoch that it holds for; None while the catalog says it.
    """

    epoch: str
    days: Mapping[int, int | None]

    @classmethod
    def load(cls, said: bytes) -> Self:
        """From what the store holds. Raises ValueError for anything else."""
        match json.loads(said):
            case {"epoch": str(epoch), "days": dict(days)} if epoch in EPOCH_SECONDS and all(
                last is None or is_whole(last) for last in days.values()
            ):
                return cls(epoch, {int(number): last for number, last in days.items()})
        raise ValueError("no promise")

    def data(self) -> str:
        """As the store holds it."""
        return json.dumps({"epoch": self.epoch, "days": self.days})

    def with_keep(self, metric: Metric) -> Self:
        """With what the catalog says now."""
        own = days_of(metric.keep)
        return replace(self, epoch=metric.epoch, days={**self.days, **({own: None} if own else {})})

    def until(self, epoch: int, metric: Metric) -> Self:
        """Where what the catalog says no more holds for the epochs up to this one alone."""
        own = days_of(metric.keep)
        ended = {
            number: epoch if last is None and number != own else last
            for number, last in self.days.items()
        }
        return replace(self, days=ended)

    def is_over(self, epoch: int, now: float) -> bool:
        """Whether this epoch's totals were kept for as long as they were said to be, at most."""
        held = [n for n, last in self.days.items() if last is None or epoch <= last]
        return bool(held) and epoch_start(epoch + 1, self.epoch) <= now - min(held) * _DAY


async def promised(promises: Promises) -> dict[str, Promised]:
    """What is remembered of every metric that was ever served, by name."""
    found = {}
    for name, said in (await promises.promises()).items():
        try:
            found[name] = Promised.load(said)
        except (ValueError, TypeError, RecursionError):
            _log.warning("for how long the totals of %s are kept cannot be read in Redis", name)
    return found


def windows_of(name: str, counts: Mapping[Window, Mapping[str, int]]) -> dict[Window, int]:
    """The windows that hold totals of a metric, or of a cell or tier of one: of how many reports.

    Of a metric those, too, of tiers that it has no more. counts: of the store.
    """
    return {
        window: sum(held)
        for window, terms in counts.items()
        if name in _names_of(window.stream) and any(held := Counted.of(terms))
    }


def _names_of(stream: str) -> set[str]:
    """What a stream can be asked by: itself, its metric, cell of all tiers, tier of all cells."""
    cell, slash, tier = stream.partition("/")
    metric = metric_name_of(stream)
    return {stream, metric, cell, f"{metric}{slash}{tier}"}


def ended_before(
    windows: Collection[Window], length: str, before: float, *, now: float
) -> list[Window]:
    """Those of these windows whose epochs, of this length, were over by then and are closed now."""
    return sorted(
        window
        for window in windows
        if epoch_start(window.epoch + 1, length) <= before
        and closing_time(window.epoch, length) <= now
    )


async def delete_totals(windows: Sequence[Window], store: TotalsStore, kept: DropsEstimates) -> int:
    """Delete these totals, and the estimates that were kept of them: of how many reports."""
    remembered = await store.remembered()
    number = 0
    for window in windows:
        if window in remembered:
            await store.forget(window)  # its tags: no totals, nothing to count twice
        number += await store.delete(window)
    for name in sorted({name for window in windows for name in _names_of(window.stream)}):
        await kept.drop(name)
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
        kept: DropsEstimates,
        clocks: Clocks,
        *,
        changed: set[str],
    ) -> None:
        self._changed = changed
        self._bundle = bundle
        self._store = store
        self._promises = promises
        self._kept = kept
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
                _log.debug("retention waits: %s", error)
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
        counts = await self._store.report_counts() if any(p.days for p in every.values()) else {}
        for name, promise in every.items():
            windows = [
                window
                for window in ended_before(windows_of(name, counts), promise.epoch, now, now=now)
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
            now = (before or Promised(metric.epoch, {})).with_keep(metric)
            if latest is not None:
                now = now.until(epoch_at(latest, metric.epoch), metric)
            if now != before:
                await self._promises.promise(name, now.data())
                every[name] = now
        return every
