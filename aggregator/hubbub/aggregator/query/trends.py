"""Trends: a metric's values epoch by epoch, including those of metrics that it supersedes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import numpy as np

from hubbub.aggregator.query.answer_types import Envelope, Epoch
from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.estimating import EstimateQuery, clip_to_range, ranks_for
from hubbub.aggregator.query.funnel_and_retention_totals import figure_kind
from hubbub.aggregator.query.metric_answer import notes_of_levels
from hubbub.aggregator.query.overview import shown_epochs
from hubbub.aggregator.query.totals import EpochSelection, SelectedTotals, together
from hubbub.analysis.answer import OF_NUMBERS, Answer
from hubbub.analysis.answering import Followed, joined_shares
from hubbub.analysis.comparisons.effect import EFFECT_PERCENTILES
from hubbub.analysis.percentiles import Reaches, percentiles_of
from hubbub.analysis.ranks import ranks_of
from hubbub.analysis.trends.smoothed_line import (
    FALSE_ALARM,
    MIN_POINTS,
    known_variances,
    line_through,
)
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.analysis.value_estimates import Mean
from hubbub.catalog import EPOCH_SECONDS, Metric, days_of_period, reports_of_one
from hubbub.catalog.values.value_kind import OTHER
from hubbub.epochs import epoch_date, epoch_dates
from hubbub.errors import BadParameter
from hubbub.errors.message_words import did_you_mean, first_names
from hubbub.query_results.answer_table import MAX_SERIES, percentile_name

MEAN: Final = "mean"
"""What the one series of numbers is called; a listed value may be called so, too."""

_MAX_EPOCHS: Final = 1000
_NUMBER: Final = 5
# A service compares a misspelled value with this many: others wait meanwhile.
_MAX_COMPARED: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value in one epoch: its share, or a mean, with its interval.

    Args:
        reports: number of reports that could contain the value.
        line, line_low, line_high: smoothed estimate from all days, with its band; None for few
            epochs, or if all days share one error. The band holds for this share of all days.
        reaches: as in Percentile.
    """

    epoch: int
    date: str
    share: float
    stderr: float
    low: float
    high: float
    reports: int
    line: float | None = None
    line_low: float | None = None
    line_high: float | None = None
    reaches: Reaches = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A step of a line's level from one epoch to the next.

    Args:
        date: first epoch after the step.
        within: possible epochs, at the trend's confidence.
        difference: height of the step, as a share or in the metric's unit, with its interval.
    """

    date: str
    within: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One value over the epochs that have the minimum batch.

    Args:
        not_asked: epochs in which a former metric did not list this value; "" for none.
        weekdays: weekday effects on the line, from Monday on, with sum 0; empty if the data show
            none.
    """

    value: str
    points: list[Point]
    not_asked: str = ""
    shifts: list[Shift] = field(default_factory=list)
    weekdays: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trended(Envelope):
    """A metric, epoch by epoch.

    Args:
        epochs: all requested ones; those below the minimum batch have no points.
        joined: former metrics whose reports are included, latest first.
        false_alarm: upper bound on the probability of a shift in a line without a step.
        notes: why a share or mean may be outside its range.
    """

    min_batch: int
    epochs: list[Epoch]  # type: ignore[assignment]  # each with its number of reports
    series: list[Series]
    joined: list[str]
    notes: list[str]
    false_alarm: float = FALSE_ALARM


async def trend(
    engine: QueryEngine,
    name: str,
    query: EstimateQuery,
    values: Sequence[str] = (),
    number: int | None = None,
) -> Trended:
    """Epoch by epoch: these values, or the `number` (5) most frequent ones of the whole range.

    Metrics that this one supersedes are joined where they listed the value. If the query has
    percentiles, they are followed instead of values, for this metric alone. Without values, number
    and percentiles, those of the metric, or p50 and p95, are followed for a number that has some,
    after its mean if it is not in listed edges; unless other metrics are joined.
    """
    if [bool(values), bool(query.percentiles), number is not None].count(True) > 1:
        raise BadParameter(
            "a trend follows values or percentiles, or the most frequent values: name one of "
            '"value", "percentile" and "number"'
        )
    query = await engine.resolved(name, query)
    selection, *before = await engine.collected.find_joined(name, query.range)
    before = [] if query.percentiles else before
    joined = [former for former in before if former.reports >= former.metric.fewest]
    work = await engine.work(selection, query)
    answer = work.answer
    count = 0 if query.percentiles else len(values) or number or _NUMBER
    if work.ranks and count and number is None and not (values or joined):
        count = 1 if answer.kind == "ranges" else 0  # the mean
        query = replace(query, percentiles=selection.metric.percentiles or EFFECT_PERCENTILES)
    union = together([selection, *joined])
    question = ("trend", query, tuple(values), count)
    kind = "ranges" if query.percentiles else answer.kind  # percentiles are in the metric's unit
    envelope = engine.envelope(query, kind, union)
    envelope["epochs"] = shown_epochs(engine.collected, union, union.epochs)

    async def make() -> list[Series]:
        collected = [await engine.collected.read(source) for source in (selection, *joined)]
        parts = [part for source in collected for part in source.by_list()]
        async with engine.turn(query, points=count * len(parts)):
            return await asyncio.to_thread(
                series, parts, answer, query, values=values, number=count
            )

    lines = await engine.cached(
        question, union, make, lambda lines: sum(len(item.points) for item in lines)
    )
    points = [point for line in lines for point in line.points]
    # Of a number in ranges the mean is followed, and no share.
    has_note = not (query.percentiles or answer.kind == "ranges")
    levels = [point.share for point in points] if has_note else []
    fewest = min((point.reports for point in points), default=0)
    return Trended(
        **envelope,
        min_batch=selection.metric.fewest,
        series=lines,
        notes=notes_of_levels(answer, levels, fewest),
        joined=[former.metric.name for former in joined],
    )


def series(
    parts: Sequence[SelectedTotals],
    answer: Answer,
    query: EstimateQuery,
    *,
    values: Sequence[str],
    number: int,
) -> list[Series]:
    """A series per value, or for the `number` most frequent, and for each percentile of the query.

    `parts` are of the metric and then of its former metrics, whose reports are added where they
    listed the value; `answer` is of the first. Epochs below the minimum batch have no point.
    Numbers have one series, their mean; a vector has one per coordinate. Raises BadParameter for a
    value that the metric does not have, and for too many series or epochs.
    """
    of_percentiles = percentile_series(parts[0], query) if query.percentiles else []
    if not number:
        return of_percentiles
    numbers, candidates = _is_of_one_mean(answer), query.candidates
    names = [MEAN] if numbers else _names(answer, parts[0].metric, values, number)
    union = together([part.selection for part in parts])
    _check(union, answer, names, values)
    places = {value.value: place for place, value in enumerate(answer.values)}
    # For values picked among all, which chance may have favoured; means are not picked.
    picked_by_size = not (values or numbers or answer.kind in OF_NUMBERS)
    followed_first = [places[name] for name in names] if picked_by_size else []
    picked = [(answer.values[place].rank or 1) / len(places) for place in followed_first]
    if parts[0].metric.values is None and not numbers and not candidates:
        # Strings are searched in the whole range: single epochs would give different ones.
        candidates, places = (*names,), {name: place for place, name in enumerate(names)}
    place_maps = [{MEAN: 0} if numbers else places] + [_places(part.metric) for part in parts[1:]]
    counted = [part.selection.by_epoch() for part in parts]
    points: list[list[Point]] = [[] for _ in names]
    not_asked: list[list[int]] = [[] for _ in names]
    for epoch in union.epochs:
        answerable = [n for n, part in enumerate(parts) if counted[n][epoch] >= part.metric.fewest]
        groups = _names_by_parts(names, {n: place_maps[n] for n in answerable})
        for index in groups.pop((), ()):
            not_asked[index].append(epoch)
        for asking, followed in groups.items():
            reports = sum(counted[n][epoch] for n in asking)
            of_parts = []
            for n in asking:
                own_places = [place_maps[n][names[i]] for i in followed]
                repeats = parts[n].metric.limits.reports_per_epoch
                of_parts.append(Followed(parts[n].tiers([epoch]), own_places, repeats))
            means = joined_shares(
                of_parts,
                candidates,
                answer.confidence,
                picked=[picked[index] for index in followed] if picked else (),
                part=min(reports / max(answer.reports, 1), 1.0),
            )
            for index, mean in zip(followed, clip_to_range(parts[0].metric, means), strict=True):
                points[index].append(_point(union, epoch, reports, mean))
    metrics = [part.metric for part in parts]
    return [
        _series_of(name, series_points, missing, metrics, answer)
        for name, series_points, missing in zip(names, points, not_asked, strict=True)
    ] + of_percentiles


def percentile_series(selected: SelectedTotals, query: EstimateQuery) -> list[Series]:
    """A series for each percentile of the population, with a point per epoch that is large enough.

    Each has its own interval: no line is drawn through them. Raises BadParameter if the metric has
    no parts of a range.
    """
    selection, metric = selected.selection, selected.metric
    counted = selection.by_epoch()
    points: dict[float, list[Point]] = {percentile: [] for percentile in query.percentiles}
    for epoch in selection.epochs:
        if counted[epoch] < metric.fewest:
            continue
        repeats = reports_of_one(metric, [epoch])
        least = metric.value_kind.LEAST
        ranks = ranks_of(selected.tiers([epoch]), metric.edges, repeats, least, population=True)
        if (ranks := ranks_for(metric, query, ranks)) is None:
            continue
        for row in percentiles_of(ranks, query.percentiles, query.confidence):
            stderr = (row.high - row.low) / (2 * reach_of(query.confidence))
            point = _point(
                selection, epoch, counted[epoch], Mean(row.estimate, stderr, row.low, row.high)
            )
            points[row.percentile].append(replace(point, reaches=row.reaches))
    return [
        Series(value=percentile_name(percentile), points=series_points)
        for percentile, series_points in points.items()
    ]


def _places(metric: Metric) -> dict[str, int]:
    """Place of each value in the list of a former metric, or of the mean for numbers."""
    if metric.values is None:
        return {MEAN: 0}
    # Without "other", which then included values that are listed now.
    gone = {OTHER} if metric.other else set()
    return {value: place for place, value in enumerate(metric.values) if value not in gone}


def _names_by_parts(
    names: Sequence[str], places_by_part: Mapping[int, Mapping[str, int]]
) -> dict[tuple[int, ...], list[int]]:
    """Groups the names by the parts that list them; none without parts."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, name in enumerate(names) if places_by_part else ():
        parts = tuple(n for n, places in places_by_part.items() if name in places)
        groups.setdefault(parts, []).append(index)
    return groups


def _point(selection: EpochSelection, epoch: int, reports: int, mean: Mean) -> Point:
    return Point(
        epoch=epoch,
        date=selection.date(epoch),
        share=mean.estimate,
        stderr=mean.stderr,
        low=mean.low,
        high=mean.high,
        reports=reports,
    )


def _check(
    selection: EpochSelection, answer: Answer, names: Sequence[str], values: Sequence[str]
) -> None:
    """Raises BadParameter for values that cannot be followed."""
    metric, numbers = selection.metric, _is_of_one_mean(answer)
    if len(selection.epochs) > _MAX_EPOCHS:
        raise BadParameter(f"a trend has at most {_MAX_EPOCHS} epochs: request fewer")
    if followed := set(values) & set(answer.beginnings):
        raise BadParameter(
            f'"{min(followed)[:60]}" is only the beginning of longer strings, but a trend follows '
            "complete ones: leave it out"
        )
    if numbers and set(values) - {MEAN}:
        raise BadParameter(
            f'metric "{metric.name}" is over numbers, and a trend follows their mean: leave '
            "values out"
        )
    value_names = {value.value: None for value in answer.values}
    if not numbers and (unknown := [name for name in names if name not in value_names]):
        raise BadParameter(
            f'metric "{metric.name}" has no value "{unknown[0][:60]}" to follow; write '
            f"one of its values, as in its estimates: {first_names([*value_names])}"
            f"{did_you_mean(unknown[0], islice(value_names, _MAX_COMPARED))}"
        )


def _is_of_one_mean(answer: Answer) -> bool:
    """Whether only the mean of numbers can be followed."""
    return answer.span is not None and answer.kind != "vector"


def _names(answer: Answer, metric: Metric, values: Sequence[str], number: int) -> list[str]:
    if not 1 <= max(number, len(values)) <= MAX_SERIES:
        raise BadParameter(f"a trend follows 1 to {MAX_SERIES} values: change their number")
    if values:
        return list(dict.fromkeys(values))
    # A beginning, that is all strings with it, cannot be queried in one epoch alone.
    complete = (value for value in answer.values if value.value not in answer.beginnings)
    ordered = sorted(complete, key=lambda value: value.rank or 0)
    names = [value.value for value in ordered[:number]]
    if metric.edges or figure_kind(metric):  # ranges, steps and weeks have an order of their own
        names.sort(key=[value.value for value in answer.values].index)
    return names


def _series_of(
    name: str,
    points: Sequence[Point],
    not_asked: Sequence[int],
    metrics: Sequence[Metric],
    answer: Answer,
) -> Series:
    seconds, ends = EPOCH_SECONDS[metrics[0].epoch], answer.span or (0.0, 1.0)
    missing = epoch_dates(not_asked, seconds)
    # A permanent response has the same error every day.
    if len(points) < MIN_POINTS or any(metric.memoized for metric in metrics):
        return Series(value=name, points=list(points), not_asked=missing)
    epochs, reports = [point.epoch for point in points], [point.reports for point in points]
    means = [Mean(point.share, point.stderr, point.low, point.high) for point in points]
    line = line_through(
        epochs,
        np.array([point.share for point in points]),
        known_variances(means, reports, ends),
        answer.confidence,
        weekly=metrics[0].epoch == "day",
        fixed=_reporter_variance(metrics[0], points, ends),
    )
    columns = (np.clip(column, *ends).tolist() for column in (line.middle, line.low, line.high))
    drawn = [
        replace(point, line=middle, line_low=low, line_high=high)
        for point, middle, low, high in zip(points, *columns, strict=True)
    ]
    shifts = [
        Shift(
            date=epoch_date(epochs[step.place], seconds),
            within=epoch_dates(epochs[step.first : step.last + 1], seconds),
            difference=step.size,
            low=step.low,
            high=step.high,
        )
        for step in line.steps
    ]
    return Series(
        value=name, points=drawn, not_asked=missing, shifts=shifts, weekdays=list(line.weekdays)
    )


def _reporter_variance(metric: Metric, points: Sequence[Point], ends: tuple[float, float]) -> float:
    """Variance from who reports at all: the same people every day, or once a period."""
    people = max(point.reports for point in points)
    if metric.report_on:
        by_period: dict[int, int] = {}
        for point in points:
            period = days_of_period(metric.period, point.epoch).start
            by_period[period] = by_period.get(period, 0) + point.reports
        people = max(by_period.values())
    middle = float(np.clip(np.mean([point.share for point in points]), *ends))
    return (middle - ends[0]) * (ends[1] - middle) / people
