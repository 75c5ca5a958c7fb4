"""What is held of a metric, and its totals by epoch. Too few reports together are refused."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from hubbub.accounting import Window
from hubbub.aggregator.query.cache import TotalsCache, sum_totals
from hubbub.aggregator.query.epoch_range import select_epochs
from hubbub.aggregator.store.contract import TotalsReader, WindowTotals
from hubbub.catalog import Bundle, Metric, closing_time
from hubbub.errors import BadParameter, BatchTooSmall, TotalsUnreadable
from hubbub.mechanisms import AnyMechanism, Totals
from hubbub.runtime import Clocks

__all__ = ["NEWEST", "EpochRange", "EpochSelection", "TotalsByEpoch"]


@dataclass(frozen=True, slots=True)
class EpochRange:
    """Which epochs are meant, as epoch_range.py reads it; neither: the newest with a report."""

    last: str = ""
    epochs: str = ""


NEWEST: Final = EpochRange()


@dataclass(frozen=True, slots=True)
class EpochSelection:
    """A metric, some of its epochs, and how many reports each of their windows has counted."""

    metric: Metric
    epochs: tuple[int, ...]
    counted: Mapping[Window, int]

    @property
    def reports(self) -> int:
        """How many in all."""
        return sum(self.counted.values())

    def by_epoch(self) -> Mapping[int, int]:
        """How many in each epoch; 0 in any other."""
        reports: Counter[int] = Counter()
        for window, number in self.counted.items():
            reports[window.epoch] += number
        return reports

    def only(self, epochs: Sequence[int]) -> "EpochSelection":
        """The part of it in some epochs."""
        wanted = set(epochs)
        own = {window: number for window, number in self.counted.items() if window.epoch in wanted}
        return EpochSelection(self.metric, tuple(epochs), own)

    @property
    def version(self) -> tuple[tuple[Window, int], ...]:
        """A key that stays the same as long as the totals do."""
        return tuple(sorted(self.counted.items()))


class TotalsByEpoch:
    """Every method raises StoreUnavailable without Redis.

    clock: for ranges that are counted back from now. clocks: for what is final; of `clock` alone,
    if they are not given.
    """

    def __init__(
        self,
        bundle: Bundle,
        store: TotalsReader,
        clock: Callable[[], float] = time.time,
        clocks: Clocks | None = None,
    ) -> None:
        self.bundle = bundle
        self.clocks = clocks or Clocks(clock)
        self._shelf = TotalsCache(store)
        self._clock = clock

    def now(self) -> float:
        """Seconds since 1970."""
        return self._clock()

    def is_closed(self, metric: Metric, epoch: int) -> bool:
        """Whether an epoch's totals surely change no more: what is told then is final."""
        return closing_time(epoch, metric.epoch) <= self.clocks.earliest()

    async def check(self) -> None:
        """Ask Redis, and nothing of it."""
        await self._shelf.counted(())

    async def all(self) -> list[EpochSelection]:
        """Every metric with every epoch that holds a report."""
        counted = await self._shelf.counted(self.bundle.streams.keys())
        return [_holding(metric, counted) for metric in self.bundle.metrics.values()]

    async def find(self, name: str, asked: EpochRange) -> EpochSelection:
        """A metric with the epochs that are meant.

        name: of a metric, with all its tiers; or of one tier alone, such as "theme/0.5".

        Raises:
            UnknownMetric: the bundle does not have it.
            BadParameter: a range that is none.
        """
        metric = self.bundle.metric(name)
        every = _holding(metric, await self._shelf.counted(metric.streams))
        epochs = select_epochs(
            asked.last, asked.epochs, held=every.epochs, length=metric.epoch, now=self._clock()
        )
        return every.only(epochs)

    async def closed(self, metric: Metric, epochs: Sequence[int]) -> EpochSelection:
        """These epochs, if none of them takes reports any more; or the newest of those.

        Raises:
            BadParameter: an epoch that still takes reports, or holds none.
        """
        every = _holding(metric, await self._shelf.counted(metric.streams))
        over = [epoch for epoch in every.epochs if self.is_closed(metric, epoch)]
        wanted = sorted(set(epochs)) or over[-1:]
        for epoch in wanted:
            if epoch not in over:
                closes = datetime.fromtimestamp(closing_time(epoch, metric.epoch), UTC)
                raise BadParameter(
                    f'metric "{metric.name}": epoch {epoch} has no final totals; an epoch with '
                    f"reports has them once it takes no more, this one at {closes:%Y-%m-%d %H:%M} "
                    "UTC"
                )
        return every.only(wanted)

    async def read(self, selection: EpochSelection) -> dict[Window, WindowTotals]:
        """What all its windows hold.

        Raises:
            BatchTooSmall: fewer reports than the metric's minimum batch.
        """
        metric = selection.metric
        if selection.reports < metric.min_batch:
            raise BatchTooSmall(
                f'metric "{metric.name}": {selection.reports} reports in the epochs asked, below '
                f"its minimum batch of {metric.min_batch}; ask for more epochs, or wait"
            )
        windows = list(selection.counted)
        return dict(zip(windows, await self._shelf.read(windows, selection.counted), strict=True))

    async def updated(self, selection: EpochSelection) -> int:
        """When the last report of these epochs was counted; 0 if it is not known."""
        windows = list(selection.counted)
        try:
            held = await self._shelf.read(windows, selection.counted)
        except TotalsUnreadable:  # who asks for these alone is told
            return 0
        return max((one.at for one in held), default=0)

    def tiers(
        self, metric: Metric, totals: Mapping[Window, WindowTotals], epochs: Sequence[int]
    ) -> list[tuple[AnyMechanism, Totals]]:
        """Of every tier its mechanism, and its totals over these epochs added up."""
        wanted = set(epochs)
        tiers = []
        for stream in metric.streams:
            mechanism = self.bundle.metric(stream).randomizer
            parts = [one for w, one in totals.items() if w.stream == stream and w.epoch in wanted]
            tiers.append((mechanism, sum_totals(parts, mechanism.layout.size)))
        return tiers


def _holding(metric: Metric, counted: Mapping[Window, int]) -> EpochSelection:
    """All that is held of a metric."""
    streams = set(metric.streams)
    own = {window: number for window, number in counted.items() if window.stream in streams}
    return EpochSelection(metric, tuple(sorted({window.epoch for window in own})), own)
