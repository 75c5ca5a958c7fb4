"""Rehearses a metric over days: draws who reports when, and compares trends with the truth."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.aggregator.query import EpochRange, EstimateQuery, QueryEngine
from hubbub.aggregator.query.trends import MEAN, Shift, trend
from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import draw, family_for
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, Metric, days_of_period
from hubbub.catalog.discovery import counting
from hubbub.conservation import Window
from hubbub.errors import BadParameter, BatchTooSmall
from hubbub.query_results.answer_table import MAX_SERIES
from hubbub.simulation.people_file import Days, Numbers
from hubbub.simulation.rehearsal import DrawnStore, as_window
from hubbub.simulation.truth import Comparison, true_values, with_truth

_EVERY = EpochRange(epochs="all")
# Until all days have ended on every clock.
_LATER = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """One value on one day: the true share among the people of that day, and the answer.

    For numbers it is the mean, in the metric's unit. `reports` counts the reports of that day.
    """

    date: str
    true: float
    reports: int
    share: float
    low: float
    high: float
    line: float | None
    line_low: float | None
    line_high: float | None


@dataclass(frozen=True, slots=True)
class DaySeries:
    """One value over the days that reach the minimum batch, as in a trend."""

    value: str
    rows: tuple[DayRow, ...]
    shifts: tuple[Shift, ...]
    weekdays: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRun:
    """The outcome of one rehearsal.

    `missed` counts people who were absent on the one day on which they would have reported.
    `answered` is whether any day has an answer; `below` counts days below the minimum batch.
    """

    reports: int
    series: tuple[DaySeries, ...]
    missed: int = 0
    answered: bool = True
    below: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySummary:
    """Errors and coverage over all runs and days. `rms_error` is that of a day's share or mean.

    `line_rms_error` and `line_coverage` are those of the trend's lines and their bands; `steps` is
    the mean number of steps in a run; `refused` counts runs without a day that reaches the minimum
    batch.
    """

    coverage: float | None
    rms_error: float | None
    line_coverage: float | None
    line_rms_error: float | None
    steps: float
    refused: int


def rehearse_days(
    bundle: Bundle,
    metric: Metric,
    days: Days,
    confidence: float,
    *,
    runs: int,
    seed: int | None,
) -> Iterator[DayRun]:
    """Yields `runs` rehearsals, each with its own random numbers and days of reporting.

    Raises BadParameter if the metric cannot be drawn by days, or the confidence is outside (0, 1).
    """
    if metric.memoized and not metric.report_on:
        raise BadParameter(
            f'metric "{metric.name}": a permanent response is only rehearsed with values that '
            "never change: leave the column day out, and give --epochs"
        )
    # Each value's share of the people of each day, by its name in answers; or their mean.
    mechanism: Any = metric.randomizer
    names: Sequence[str] = [MEAN]
    people = np.ones(len(days.days))
    if metric.values is not None:
        names = family_for(mechanism).labels(mechanism, metric.values)
        people = np.maximum(days.all_counts.sum(axis=1), 1)
    holding = true_values(mechanism, names, days.codes, days.all_counts)
    truth = dict(zip(names, (holding / people[:, None]).T, strict=True))
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        yield _run(bundle, metric, days, truth, confidence=confidence, rng=rng)


def summary_of_days(runs: Sequence[DayRun]) -> DaySummary:
    """Errors and coverage over all runs."""
    raw, lines = Comparison(), Comparison()
    steps = 0
    for run in runs:
        for series in run.series:
            steps += len(series.shifts)
            for row in series.rows:
                raw.add(row.true, row.low, row.high, row.share)
                if row.line is not None and row.line_low is not None and row.line_high is not None:
                    lines.add(row.true, row.line_low, row.line_high, row.line)
    refused = sum(not run.answered for run in runs)
    return DaySummary(
        coverage=raw.coverage,
        rms_error=raw.rms_error,
        line_coverage=lines.coverage,
        line_rms_error=lines.rms_error,
        steps=steps / len(runs),
        refused=refused,
    )


def _run(
    bundle: Bundle,
    metric: Metric,
    days: Days,
    truth: Mapping[str, Floats],
    *,
    confidence: float,
    rng: np.random.Generator,
) -> DayRun:
    day_counts, missed = _reporting(metric, days, rng)
    windows = {}
    for day, counts in zip(days.days, day_counts, strict=True):
        totals = draw(metric.randomizer, days.codes, counts.tolist(), rng)
        window_totals = as_window(metric, totals, rng)
        if window_totals and totals.reports:
            windows[Window(metric.name, day)] = window_totals
    reports = int(day_counts.sum())
    now = float((days.days[-1] + _LATER) * EPOCH_SECONDS["day"])
    query = QueryEngine(bundle, DrawnStore(windows), clock=lambda: now)
    question = EstimateQuery(range=_EVERY, confidence=confidence)
    try:
        trended = asyncio.run(trend(query, metric.name, question, number=MAX_SERIES))
    except BatchTooSmall:
        below = len(days.days)
        return DayRun(reports=reports, series=(), missed=missed, answered=False, below=below)
    places = {day: place for place, day in enumerate(days.days)}
    series = tuple(
        DaySeries(
            item.value,
            tuple(
                with_truth(DayRow, point, true=float(truth[item.value][places[point.epoch]]))
                for point in item.points
            ),
            tuple(item.shifts),
            tuple(item.weekdays),
        )
        for item in trended.series
    )
    too_few = sum(
        Window(metric.name, day) not in windows or int(counts.sum()) < metric.fewest
        for day, counts in zip(days.days, day_counts, strict=True)
    )
    answered = any(item.rows for item in series)
    return DayRun(reports=reports, series=series, missed=missed, answered=answered, below=too_few)


def _reporting(metric: Metric, days: Days, rng: np.random.Generator) -> tuple[Numbers, int]:
    """Draws who reports: counts of shape (days, codes), and how many were absent on their day."""
    count, missed = days.count, 0
    rows: Numbers | slice = slice(None)
    if metric.report_on:
        periods = [days_of_period(metric.period, day) for day in days.days]
        lengths = np.array([len(period) for period in periods])[days.day]
        if days.person is None:  # of each day's people as many as have it as their own
            count = rng.binomial(count, 1 / lengths)
        else:
            ordered = sorted(set(periods), key=lambda period: period.start)
            places = {period: place for place, period in enumerate(ordered)}
            own_places = np.array([places[period] for period in periods])[days.day]
            # Each person's day in each period.
            size = days.person.max() + 1
            drawn = np.column_stack(
                [period.start + rng.integers(0, len(period), size) for period in ordered]
            )
            has_pair = np.zeros(drawn.shape, dtype=np.bool_)
            has_pair[days.person, own_places] = True
            own_days = np.array(days.days)[days.day]
            rows = np.flatnonzero(own_days == drawn[days.person, own_places])
            count, missed = days.count[rows], int(has_pair.sum()) - len(rows)
    if (share := counting(metric)) < 1:
        count = rng.binomial(count, share)
    return days.counted(rows, count), missed
