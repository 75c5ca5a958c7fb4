"""A metric's totals by epoch. Refuses too few reports together."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from hubbub.aggregator.query.cache import TotalsCache, sum_totals
from hubbub.aggregator.query.conservation_law import (
    Shuffler,
    Terms,
    until_first_batch,
    upstream_epochs,
    withheld_sentence,
)
from hubbub.aggregator.query.epoch_range import NEWEST, EpochRange, select_epochs
from hubbub.aggregator.store.contract import DELETED, Counted, TotalsReader, WindowTotals
from hubbub.authoring.crowds.accountant import count_variance, expected_dummies
from hubbub.bundles import Bundle
from hubbub.catalog import (
    EPOCH_SECONDS,
    Metric,
    closing_time,
    days_of_period,
    epoch_at,
    epoch_start,
    superseded_by,
    versions_of,
)
from hubbub.catalog.crowds.noise_dummies import value_noise
from hubbub.conservation import Window
from hubbub.epochs import epoch_date, epoch_dates, minute
from hubbub.errors import BadParameter, BatchTooSmall, TooFewEpochs, TotalsUnreadable
from hubbub.errors.message_words import several
from hubbub.mechanisms import AnyMechanism, Totals
from hubbub.runtime.clocks import Clocks

_NAME_BOTH: Final = "name both ranges: --epochs A --to B, or over HTTP epochs and to_epochs"


@dataclass(frozen=True, slots=True)
class EpochSelection:
    """A metric, some of its epochs, and the count of each of their windows."""

    metric: Metric
    epochs: tuple[int, ...]
    counted: Mapping[Window, Counted]

    @property
    def reports(self) -> int:
        """Total number of reports."""
        return sum(map(attrgetter("reports"), self.counted.values()))

    @property
    def dates(self) -> str:
        """The epochs, as text for people."""
        return epoch_dates(self.epochs, EPOCH_SECONDS[self.metric.epoch])

    def date(self, epoch: int) -> str:
        """An epoch of this metric, as text for people."""
        return epoch_date(epoch, EPOCH_SECONDS[self.metric.epoch])

    def by_epoch(self) -> Mapping[int, int]:
        """Number of reports in each epoch; 0 in any other."""
        reports: Counter[int] = Counter()
        for window, count in self.counted.items():
            reports[window.epoch] += count.reports
        return reports

    def pick(self, epochs: Sequence[int]) -> "EpochSelection":
        """The selection reduced to these epochs."""
        kept_epochs = set(epochs)
        counted = {window: n for window, n in self.counted.items() if window.epoch in kept_epochs}
        return EpochSelection(self.metric, tuple(epochs), counted)

    def of_version(self, metric: Metric, streams: Collection[str]) -> "EpochSelection":
        """The reports to one of the metric's lists of values, as a selection of `metric`."""
        counted = {window: n for window, n in self.counted.items() if window.stream in streams}
        return _selection(metric, counted)


@dataclass(frozen=True, slots=True)
class SelectedTotals:
    """The totals of all windows of a selection, of a metric of this bundle."""

    selection: EpochSelection
    by_window: Mapping[Window, WindowTotals]
    bundle: Bundle

    @property
    def metric(self) -> Metric:
        """The metric of the selection."""
        return self.selection.metric

    def tiers(self, epochs: Sequence[int] | None = None) -> list[tuple[AnyMechanism, Totals]]:
        """The mechanism of each tier, with its totals over these epochs (all) and all cells.

        If values were appended, only reports to the newest list.
        """
        epochs_to_sum = set(self.selection.epochs if epochs is None else epochs)
        metrics: dict[str, Metric] = {}
        parts_by_tier: dict[str, list[WindowTotals]] = {}
        for stream in self.selection.metric.own_streams:
            tier = stream.partition("/")[2]
            metrics[tier], parts_by_tier[tier] = self.bundle.streams[stream], []
        for window, window_totals in self.by_window.items():
            if window.stream in self.selection.metric.own_streams and window.epoch in epochs_to_sum:
                parts_by_tier[window.stream.partition("/")[2]].append(window_totals)
        tiers = []
        # All cells of a tier have one mechanism, so that their totals add exactly.
        for metric, parts in zip(metrics.values(), parts_by_tier.values(), strict=True):
            size = metric.randomizer.layout.size
            if metric.crowd is None:
                added = sum_totals(parts, size)
            else:
                hidden = sum(count_variance(metric, part.counted) for part in parts if part.dummies)
                added = sum_totals(
                    parts,
                    size,
                    dummies=expected_dummies(metric),
                    dummies_each=metric.made_each,
                    hidden=hidden,
                    noise=value_noise(metric),
                )
            tiers.append((metric.randomizer, added))
        return tiers

    def by_list(self) -> Iterator["SelectedTotals"]:
        """The totals by version of the metric's list of values, the latest first."""
        newest, *former = reversed(list(versions_of(self.metric)))
        for metric, version in ((self.metric, newest), *zip(former, former, strict=True)):
            selection = self.selection.of_version(metric, set(version.own_streams))
            yield replace(self, selection=selection)


class TotalsByEpoch:
    """The totals of requested epochs. Every method raises StoreUnavailable without Redis.

    Args:
        clock: for ranges that are counted back from now.
        clocks: decide what is closed; derived from `clock` by default.
        upstream: source of the shuffler's terms; without it they are unknown.
    """

    def __init__(
        self,
        bundle: Bundle,
        store: TotalsReader,
        clock: Callable[[], float] = time.time,
        clocks: Clocks | None = None,
        upstream: Shuffler | None = None,
    ) -> None:
        self.clocks = clocks or Clocks(clock)
        self.upstream = upstream
        self._store = store
        self._shelf = TotalsCache(store)
        self._clock = clock
        self.use(bundle)

    def use(self, bundle: Bundle) -> None:
        """Reads totals by this bundle."""
        self.bundle = bundle
        self._shelf.dummies_each = {
            stream: metric.made_each
            for stream, metric in bundle.streams.items()
            if metric.made_each
        }

    @property
    def reserve(self) -> float | None:
        """The shuffler's smallest reserve in minimum batches; None if unknown."""
        return self.upstream.reserve if self.upstream else None

    async def terms(self) -> Terms | None:
        """The shuffler's terms; None if unknown."""
        return await self.upstream.terms() if self.upstream else None

    def now(self) -> float:
        """Seconds since 1970."""
        return self._clock()

    def date_of(self, window: Window) -> str | None:
        """A window's epoch as text for people; None if the bundle does not have its stream."""
        metric = self.bundle.streams.get(window.stream)
        return epoch_date(window.epoch, EPOCH_SECONDS[metric.epoch]) if metric else None

    def is_over(self, window: Window) -> bool:
        """Whether a window is closed, or its stream is not in the bundle."""
        metric = self.bundle.streams.get(window.stream)
        return metric is None or self.is_closed(metric, window.epoch)

    def is_closed(self, metric: Metric, epoch: int) -> bool:
        """Whether an epoch's totals are certainly final."""
        return closing_time(epoch, metric.epoch) <= self.clocks.earliest()

    def is_final(self, selection: EpochSelection) -> bool:
        """Whether no totals of these epochs can change any more."""
        newest = max(selection.epochs, default=None)  # the last to close
        return newest is None or self.is_closed(selection.metric, newest)

    async def check(self) -> None:
        """Checks that Redis answers."""
        await self._shelf.counted(())

    async def find_all(self) -> list[EpochSelection]:
        """Every metric with all epochs that have a report."""
        return await self._all_epochs(self.bundle.metrics.values())

    async def _all_epochs(self, metrics: Collection[Metric]) -> list[EpochSelection]:
        """All epochs of each of these metrics that have a report."""
        counted = await self._shelf.counted(
            [stream for metric in metrics for stream in metric.streams]
        )
        return [
            EpochSelection(metric, (), counted).of_version(metric, set(metric.streams))
            for metric in metrics
        ]

    async def find(self, name: str, epoch_range: EpochRange) -> EpochSelection:
        """The requested epochs of a metric or tier. Raises UnknownMetric, BadParameter."""
        metric = self.bundle.metric(name)
        counted = await self._shelf.counted(metric.streams)
        all_epochs = sorted(set(map(attrgetter("epoch"), counted)))
        epochs = select_epochs(epoch_range, all_epochs, metric.epoch, self._clock())
        return EpochSelection(metric, (), counted).pick(epochs)

    def with_upstream(
        self, selection: EpochSelection, epoch_range: EpochRange, terms: Terms | None
    ) -> set[int]:
        """The selection's epochs, and those of its range of which the shuffler had reports."""
        metric, epochs = selection.metric, set(selection.epochs)
        all_epochs = sorted(epochs | upstream_epochs(metric, terms))
        return epochs.union(select_epochs(epoch_range, all_epochs, metric.epoch, self._clock()))

    async def find_joined(self, name: str, epoch_range: EpochRange) -> list[EpochSelection]:
        """As `find`, and of the metrics that this one supersedes, the latest first.

        A range refers to the epochs in which any of them has a report.
        """
        metric = self.bundle.metric(name)
        selections = await self._all_epochs([metric, *superseded_by(metric, self.bundle.metrics)])
        all_epochs = sorted({epoch for selection in selections for epoch in selection.epochs})
        epochs = select_epochs(epoch_range, all_epochs, metric.epoch, self._clock())
        return [
            one_metric.pick([epoch for epoch in epochs if epoch in one_metric.epochs])
            for one_metric in selections
        ]

    async def pair(
        self, name: str, before: EpochRange, after: EpochRange
    ) -> tuple[EpochSelection, EpochSelection, str]:
        """Two ranges to compare, and a sentence about the choice if the caller left one out.

        Without either, the newest closed epoch and the one before it. Without `before`, the epoch
        before those of `after`; without `after`, the newest. Epochs chosen here have the minimum
        batch. If devices report once a period and no range is given, two whole periods are chosen.
        Raises TooFewEpochs if there is no epoch to compare with.
        """
        selection = await self.find(name, EpochRange(epochs="all"))
        if before != NEWEST or after != NEWEST:
            newer = await self.find(name, after)
            if before != NEWEST:
                why = "compared with the newest epoch" if after == NEWEST else ""
                return await self.find(name, before), newer, why
            earlier = [
                epoch for epoch in _big_epochs(selection) if epoch < min(newer.epochs, default=0)
            ]
            why = "compared with the epoch before"
            if not earlier:
                raise TooFewEpochs(
                    f'metric "{selection.metric.name}": no epoch before '
                    f"{newer.dates or 'those requested'} has "
                    f"{several(selection.metric.fewest, 'report')} or more; name the range before, "
                    "too"
                )
        elif selection.metric.report_on:
            return self._last_periods(selection)
        else:
            closed = [
                epoch for epoch in _big_epochs(selection) if self.is_closed(selection.metric, epoch)
            ]
            newer, earlier = selection.pick(closed[-1:]), closed[:-1]
            why = "the two newest epochs that accept no more reports" + self._open_note(selection)
        if not earlier:
            metric = selection.metric
            existing = f"and there is only {newer.dates}" if newer.epochs else "and there is none"
            raise TooFewEpochs(
                f'metric "{metric.name}": a comparison needs two epochs that accept no more '
                f"reports and have {metric.fewest:,} or more, {existing}"
                f"{self._open_note(selection)}; wait for the next, or {_NAME_BOTH}"
            )
        return selection.pick(earlier[-1:]), newer, why

    def _open_note(self, selection: EpochSelection) -> str:
        """Text about the first epoch that may still change; "" if there is none."""
        for epoch in selection.epochs:
            if not self.is_closed(selection.metric, epoch):
                closes = minute(closing_time(epoch, selection.metric.epoch))
                return f"; {selection.date(epoch)} may still change until {closes}"
        return ""

    def _last_periods(
        self, selection: EpochSelection
    ) -> tuple[EpochSelection, EpochSelection, str]:
        """The two newest closed periods that have the minimum batch."""
        metric = selection.metric
        periods: dict[range, list[int]] = {}
        for epoch in selection.epochs:
            periods.setdefault(days_of_period(metric.period, epoch), []).append(epoch)
        found = [
            selection.pick(epochs)
            for days, epochs in periods.items()
            if self.is_closed(metric, days[-1]) and selection.pick(epochs).reports >= metric.fewest
        ]
        if len(found) < 2:  # noqa: PLR2004 one to compare with the other
            raise TooFewEpochs(
                f'metric "{metric.name}": a comparison needs two periods of '
                f"{metric.period} that accept no more reports and have {metric.fewest:,} or "
                f"more, and there are {len(found)}; wait, or {_NAME_BOTH}"
            )
        why = f"the two newest periods of {metric.period} that accept no more reports"
        return found[-2], found[-1], why + self._open_note(selection)

    async def find_closed(
        self, metric: Metric, epochs: Sequence[int], dates: str = ""
    ) -> EpochSelection:
        """These epochs (numbers, and `dates` in the grammar of `epochs`), or the newest closed one.

        Raises BadParameter for an epoch that is not closed, or without reports.
        """
        selection = _selection(metric, await self._shelf.counted(metric.streams))
        finished = [epoch for epoch in selection.epochs if self.is_closed(metric, epoch)]
        named: list[int] = []
        if dates:
            chosen, now = EpochRange(epochs=dates), self._clock()
            named = select_epochs(chosen, selection.epochs, metric.epoch, now, exact=True)
        closed_epochs = sorted({*epochs, *named}) or finished[-1:] or selection.epochs[-1:]
        for epoch in closed_epochs:
            if epoch not in finished:
                closes = minute(closing_time(epoch, metric.epoch))
                raise BadParameter(
                    f'metric "{metric.name}": {selection.date(epoch)} has no final totals; an '
                    f"epoch with reports has final totals once it is closed, this one at {closes}"
                )
        return selection.pick(closed_epochs)

    async def read(self, selection: EpochSelection) -> SelectedTotals:
        """Totals of all windows. Raises BatchTooSmall below the metric's minimum batch."""
        metric = selection.metric
        if selection.reports >= metric.fewest:
            return SelectedTotals(selection, await self._shelf.read(selection.counted), self.bundle)
        all_epochs = await self.find(metric.name, EpochRange(epochs="all"))
        terms, has_left = await self.terms(), bool(all_epochs.counted)
        remedy = ", or wait"
        if self.is_final(selection) and all_epochs.epochs != selection.epochs:
            ends = all_epochs.epochs[0], all_epochs.epochs[-1]
            dates = " to ".join(dict.fromkeys(map(all_epochs.date, ends)))
            remedy = f"; there are reports from {dates}"
            if not self.is_final(all_epochs):  # some may be counted since the epochs were selected
                remedy += "; if you asked for these, ask again"
        text = (
            f'metric "{metric.name}": {several(selection.reports, "report")} '
            f"in the requested epochs, below its minimum batch of {metric.fewest:,}; request more "
            f"epochs{f' than {selection.dates}' if selection.epochs else ''}{remedy}"
        )
        if not has_left:
            text = (
                f'metric "{metric.name}": no report is counted yet; an answer needs its minimum '
                f"batch of {metric.fewest:,}"
            )
        if metric.value_kind.COUNTS:
            running = epoch_at(self.now(), metric.epoch)
            text += (
                f"; a device reports a {metric.kind} once its {metric.epoch} is over, and this "
                f"{metric.epoch} ends at {minute(epoch_start(running + 1, metric.epoch))}"
            )
        text += await self._deleted(metric)
        hint = until_first_batch(metric, terms, self.reserve, has_left=has_left)
        withheld = withheld_sentence(metric, upstream_epochs(metric, terms), terms)
        raise BatchTooSmall("; ".join(filter(None, (text, withheld, hint))))

    async def _deleted(self, metric: Metric) -> str:
        """Text about epochs whose totals were deleted; "" if there are none."""
        counts = await self._store.report_counts()
        streams = set(metric.streams)
        gone = sorted(
            {w.epoch for w, terms in counts.items() if terms.get(DELETED) and w.stream in streams}
        )
        if not gone:
            return ""
        why = f'keep = "{metric.keep}", or ' if metric.keep else ""
        dates = epoch_dates(gone, EPOCH_SECONDS[metric.epoch])
        return f"; deleted ({why}hubbub forget) are the totals of {dates}"

    async def updated(self, selection: EpochSelection) -> int:
        """When the last report of these epochs was counted; 0 if unknown."""
        try:
            totals = await self._shelf.read(selection.counted)
        except TotalsUnreadable:  # a query of these alone gets an error
            return 0
        return max((window_totals.at for window_totals in totals.values()), default=0)


def together(selections: Sequence[EpochSelection]) -> EpochSelection:
    """All reports of metrics that supersede one another, as a selection of the first."""
    epochs = sorted({epoch for selection in selections for epoch in selection.epochs})
    counted = {window: n for selection in selections for window, n in selection.counted.items()}
    return EpochSelection(selections[0].metric, tuple(epochs), counted)


def _big_epochs(selection: EpochSelection) -> list[int]:
    """The selection's epochs that have the minimum batch."""
    reports = selection.by_epoch()
    return [epoch for epoch in selection.epochs if reports[epoch] >= selection.metric.fewest]


def _selection(metric: Metric, counted: Mapping[Window, Counted]) -> EpochSelection:
    epochs = set(map(attrgetter("epoch"), counted))
    return EpochSelection(metric, tuple(sorted(epochs)), counted)
