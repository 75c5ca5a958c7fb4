"""The line through a trend's points, and the steps that it took."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hubbub.aggregator.query.trend_series import Point, Series, Shift
from hubbub.analysis import MIN_POINTS, Mean, known_variances, line_through
from hubbub.catalog import EPOCH_SECONDS, Metric, days_of_period
from hubbub.conservation import epoch_date, epoch_dates


def with_line(
    series: Series, metrics: Sequence[Metric], ends: tuple[float, float], confidence: float
) -> Series:
    """A series with its line, where it has one.

    metrics: whose reports are in it. A permanent response errs the same way every day, so that no
        line can be drawn through its days.
    ends: between which shares, or means, lie.
    """
    points = series.points
    if len(points) < MIN_POINTS or any(metric.memoized for metric in metrics):
        return series
    epochs, reports = [point.epoch for point in points], [point.reports for point in points]
    found = [Mean(point.share, point.stderr, point.low, point.high) for point in points]
    line = line_through(
        epochs,
        np.array([point.share for point in points]),
        known_variances(found, reports, ends),
        confidence,
        weekly=metrics[0].epoch == "day",
        fixed=_drawn(metrics[0], points, ends),
    )
    columns = (np.clip(column, *ends).tolist() for column in (line.middle, line.low, line.high))
    drawn = [
        replace(point, line=middle, line_low=low, line_high=high)
        for point, middle, low, high in zip(points, *columns, strict=True)
    ]
    seconds = EPOCH_SECONDS[metrics[0].epoch]
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
    return replace(series, points=drawn, shifts=shifts, weekdays=list(line.weekdays))


def _drawn(metric: Metric, points: Sequence[Point], ends: tuple[float, float]) -> float:
    """The variance of who reports at all: the same people every day, or once a period."""
    people = max(point.reports for point in points)
    if metric.report_on:
        by_period: dict[int, int] = {}
        for point in points:
            period = days_of_period(metric.period, point.epoch).start
            by_period[period] = by_period.get(period, 0) + point.reports
        people = max(by_period.values())
    middle = float(np.clip(np.mean([point.share for point in points]), *ends))
    return (middle - ends[0]) * (ends[1] - middle) / people
