"""Figures of metrics whose value a device computes from its own past: which totals each is of."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hubbub.aggregator.query.answer_types import Envelope
from hubbub.aggregator.query.epoch_range import NEWEST, EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.query.totals import EpochSelection, SelectedTotals, TotalsByEpoch
from hubbub.analysis.families.joint_errors import Joint
from hubbub.analysis.families.tiers_and_rows import with_reports
from hubbub.analysis.funnels_retention_and_rates import (
    UNFINISHED,
    Figure,
    back_in_weeks,
    conversions,
    count_of,
    rate_of,
)
from hubbub.analysis.uncertainty.intervals import POPULATION, REPORTERS, Whose
from hubbub.catalog import EPOCH_SECONDS, Metric, epoch_at, epoch_start, reports_of_one
from hubbub.catalog.values.event_history_kinds import Activity, Funnel, Rate, Retention
from hubbub.catalog.values.value_kind import ValueKind
from hubbub.epochs import epoch_dates
from hubbub.errors import BadParameter, TooFewEpochs
from hubbub.errors.message_words import several

_DAY: Final = "day"
WINDOWS: Final = (
    ("28d", "actives of 28 days", 2),
    ("week", "actives of a week", 1),
    (_DAY, "actives of a day", 0),
)
"""Lengths of an activity's windows, their figures, and the first of its values that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figured(Envelope):
    """The figures of a funnel, a rate, an activity or a retention.

    Args:
        kind: funnel, rate, activity or retention.
        by: public field of the parts; "" for all devices together.
        notes: why an estimate may be outside its interval; parts without an answer.
    """

    by: str
    values: list[Figure]
    notes: list[str]


def figure_kind(metric: Metric) -> "FigureKind | None":
    """The kind of a metric whose value a device computes from its own past; None for others."""
    return _KINDS.get(type(metric.value_kind))


def meant_query(
    metric: Metric, query: EstimateQuery, *, by_cohort: bool
) -> tuple[EstimateQuery, "FigureKind"]:
    """The question with the epochs that are meant, of an activity or a retention all; the kind.

    Raises BadParameter if the metric has no figures or no cohorts, or for what figures lack.
    """
    kind = figure_kind(metric)
    if kind is None:
        raise BadParameter(
            f'metric "{metric.name}" has no figures: only funnels, rates, activity and '
            f"retention have figures; request its estimates: hubbub query {metric.name}"
        )
    if query.anytime or query.percentiles or query.below:
        raise BadParameter(
            f'metric "{metric.name}": figures have neither percentiles nor anytime intervals: '
            'leave "anytime", "percentile" and "below" out'
        )
    if by_cohort and not kind.has_cohorts:
        raise BadParameter(
            f'metric "{metric.name}" of kind {metric.kind} has no cohorts: leave "cohorts" out'
        )
    uses_all = query.range == NEWEST and kind.spans_epochs
    return (replace(query, range=EpochRange(epochs="all")) if uses_all else query), kind


def effect_measure(metric: Metric) -> str:
    """What experiments call a figure, with {figure} for its name; "" if they compare estimates."""
    return kind.measure if (kind := figure_kind(metric)) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureSources:
    """What the figures of some epochs are made of; by_cohort: of each first week by itself."""

    collected: TotalsByEpoch
    selected: SelectedTotals
    confidence: float
    by_cohort: bool

    def figures(self) -> list[Figure]:
        """Conversions and weeks in their order, the newest windows first."""
        return list(_KINDS[type(self.selected.metric.value_kind)].figures(self))

    @property
    def selection(self) -> EpochSelection:
        """The epochs and their reports."""
        return self.selected.selection

    def _joint_estimates(self, epochs: Sequence[int], counted_epochs: Sequence[int]) -> Joint:
        """The estimates of some epochs; a device may lie alike in all that they are among."""
        repeats = reports_of_one(self.selected.metric, counted_epochs)
        return Joint(with_reports(self.selected.tiers(epochs)), repeats)

    def funnel(self) -> Iterator[Figure]:
        """Between steps."""
        metric, epochs = self.selected.metric, self.selection.epochs
        yield from conversions(
            self._joint_estimates(epochs, epochs),
            metric.values or (),
            reports_of_one(metric, epochs),
            self.selection.dates,
            self.confidence,
        )

    def rate(self) -> Iterator[Figure]:
        """Of the sums of both counts."""
        numerator, denominator = self.selected.metric.values or ()
        repeats = reports_of_one(self.selected.metric, self.selection.epochs)
        yield rate_of(with_reports(self.selected.tiers()), repeats).figure(
            f"{numerator} per {denominator}",
            below=denominator,
            dates=self.selection.dates,
            reports=self.selection.reports,
            confidence=self.confidence,
        )

    def activity(self) -> Iterator[Figure]:
        """How many devices reported in each window that has the minimum batch."""
        for length, name, first in WINDOWS:
            windows: dict[int, list[int]] = {}
            for day in self.selection.epochs:
                windows.setdefault(epoch_at(epoch_start(day, _DAY), length), []).append(day)
            for window, days in sorted(windows.items(), reverse=True):
                in_window = self.selection.pick(days)
                if in_window.reports < self.selected.metric.fewest:
                    continue
                yield count_of(self._joint_estimates(days, days), np.arange(3) >= first).figure(
                    name,
                    below="reports",
                    dates=epoch_dates(days, EPOCH_SECONDS[_DAY]),
                    reports=in_window.reports,
                    confidence=self.confidence,
                    note=self._note(window, length, in_window),
                )

    def _note(self, window: int, length: str, selection: EpochSelection) -> str:
        """Whether the window goes on, misses days, or accepts reports; "" for a final one."""
        span, days = EPOCH_SECONDS[length] // EPOCH_SECONDS[_DAY], len(selection.epochs)
        ends = epoch_start(window + 1, length)
        if ends > self.collected.now():
            return f"running: {days} of {span} days" if span > 1 else "running"
        missing = "" if days == span else f"{days} of {span} days"
        unfinished = "" if self.collected.is_final(selection) else UNFINISHED
        return "; ".join(filter(None, [missing, unfinished]))

    def retention(self) -> Iterator[Figure]:
        """By week after the first. Raises TooFewEpochs if no week has another one after it."""
        metric, reports = self.selected.metric, self.selection.by_epoch()
        weeks = [epoch for epoch in self.selection.epochs if reports[epoch] >= metric.fewest]
        figures = list(
            back_in_weeks(
                {week: self._joint_estimates([week], weeks) for week in weeks},
                len(metric.values or ()) - 2,
                {week: self.selection.date(week) for week in weeks},
                self.confidence,
                by_cohort=self.by_cohort,
                unfinished={week for week in weeks if not self.collected.is_closed(metric, week)},
            )
        )
        if not figures:
            dates = epoch_dates(weeks, EPOCH_SECONDS[metric.epoch])
            which = f"only the week of {dates}" if dates else "no week"
            raise TooFewEpochs(
                f'metric "{metric.name}": no device can have come back yet: {which} has '
                f"{several(metric.fewest, 'report')} or more; wait, or request more epochs"
            )
        yield from figures


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureKind:
    """A kind of metric with figures.

    Args:
        whose: a number of devices is of those that reported; shares and rates of the population.
        spans_epochs: whether its epochs belong together, so that all are meant; a device that is
            used more often then reports more often.
        measure: as in `effect_measure`.
    """

    figures: Callable[[FigureSources], Iterator[Figure]]
    whose: Whose = POPULATION
    spans_epochs: bool = False
    has_cohorts: bool = False
    measure: str = ""


_KINDS: Final[Mapping[type[ValueKind], FigureKind]] = {
    Funnel: FigureKind(figures=FigureSources.funnel, measure="share from {figure}"),
    Rate: FigureKind(figures=FigureSources.rate, measure="{figure}"),
    Activity: FigureKind(figures=FigureSources.activity, whose=REPORTERS, spans_epochs=True),
    Retention: FigureKind(figures=FigureSources.retention, spans_epochs=True, has_cohorts=True),
}
