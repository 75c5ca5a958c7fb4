"""A number with its interval: a mean in the metric's own unit, or a count of reports."""

from dataclasses import dataclass

import numpy as np

from hubbub.analysis.uncertainty.intervals import held_between, interval, reach_of, sampled
from hubbub.analysis.value_estimates import ValueEstimates


@dataclass(frozen=True, slots=True)
class Mean:
    """One number with its interval: a mean in the metric's own unit, or a count of reports."""

    estimate: float
    stderr: float
    low: float
    high: float


def mean_of(
    place: ValueEstimates,
    ends: tuple[float, float],
    reports: int,
    confidence: float,
    *,
    repeats: int | None = None,
) -> Mean:
    """Mean of numbers in the range `ends`.

    `place` is the sum of their places, 0 at low and 1 at high. With `repeats`, the largest number
    of reports from one device, the interval is for the population instead of the reporters.
    """
    result, bend = (place.estimates, place.absent, place.growth), place.bend
    variance = place.stderrs**2
    if repeats is not None:
        shares = np.clip(place.estimates / max(reports, 1), 0.0, 1.0)
        variance = variance + reports**2 * sampled(shares, reports / repeats)
        result = (place.estimates, place.absent, place.growth + repeats)
        bend += repeats / max(reports, 1)
    reach = reach_of(confidence)
    between = held_between(
        result, bend, reports, down=reach, up=reach, step=place.step, tail=place.tail
    )
    columns = place.estimates, np.sqrt(variance), *between
    whole, error, low, high = (float(column[0]) / max(reports, 1) for column in columns)
    unit = ends[1] - ends[0]
    return Mean(ends[0] + unit * whole, unit * error, ends[0] + unit * low, ends[0] + unit * high)


def means_of(
    places: ValueEstimates, ends: tuple[float, float], reports: int, confidence: float
) -> list[Mean]:
    """Means of coordinates in the range `ends`; `places` has sums, 0 at low and 1 at high."""
    unit = (ends[1] - ends[0]) / max(reports, 1)
    rows = zip(places.estimates.tolist(), places.stderrs.tolist(), strict=True)
    return [
        with_interval(ends[0] + unit * whole, unit * error, confidence, ends)
        for whole, error in rows
    ]


def with_interval(
    value: float, stderr: float, confidence: float, ends: tuple[float, float]
) -> Mean:
    """A number with its interval, which is clipped to the possible range `ends`."""
    inside = np.clip(np.array([value]), *ends)
    least, most = interval(inside, np.array([stderr]), confidence)
    low, high = np.clip([least[0], most[0]], *ends).tolist()
    return Mean(float(value), float(stderr), low, high)
