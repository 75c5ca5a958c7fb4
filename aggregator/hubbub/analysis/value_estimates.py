"""Estimates of all values with their errors, and single numbers with their intervals."""

from dataclasses import dataclass, replace

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.uncertainty.count_intervals import CountLaw
from hubbub.analysis.uncertainty.intervals import Tail, ends_between, interval, reach_of, sampled


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEstimates:
    """Estimate, standard error, and standard error if nobody held it, of each value; in reports.

    A value with t reports has the variance absent^2 + growth t - bend t^2.

    Args:
        absent: standard errors if nobody held the value.
        growth: variance that a report adds to its own value's estimate.
        bend: decrease of that with every report that the value already has.
        tail: of a value that nobody holds, if it is not normal.
        count_law: law of a value's supports, whatever its count, if it is known and not normal.
        step: change of an estimate by one more report.
        typical: variance by which tiers are weighted, if not that of absent values.
        unsure: if the number of reports is an estimate, how much larger it may be at most; a value
            may have as many reports.
        number_variance, number_covariance: if the number of reports is an estimate, its variance,
            and its covariance with each value's estimate.
        noise_variance: part of each value's variance that comes from noise dummies, whose law is
            two-sided exponential.
        place: for ranges, the sum of the numbers' places as one estimate: 0 at low, 1 at high.
    """

    estimates: Floats
    stderrs: Floats
    absent: Floats
    growth: Floats
    tail: Tail | None = None
    count_law: CountLaw | None = None
    bend: float = 0.0
    step: float = 0.0
    typical: float | None = None
    unsure: int = 0
    number_variance: float = 0.0
    number_covariance: float = 0.0
    noise_variance: float = 0.0
    place: "ValueEstimates | None" = None

    def of_shares(self, reports: int, repeats: int = 0) -> "ValueEstimates":
        """The same with errors of shares, multiplied by the number of reports.

        If n is an estimate, the error of a share s = t / n is that of t - s n. With `repeats`, the
        largest number of reports from one device, the errors are for the population, and sampling
        adds repeats * t (1 - t / n); 0 means the reporters themselves.
        """
        number = max(reports, 1)
        variance, both = self.number_variance, self.number_covariance
        growth = repeats - 2 * both / number
        bend = repeats / number - variance / number**2
        counts = np.clip(self.estimates, 0.0, number)
        square = self.stderrs**2 + growth * counts - bend * counts**2
        count_law = self.count_law and replace(self.count_law, sampled=repeats > 0)
        return replace(
            self,
            stderrs=np.sqrt(np.maximum(square, 0.0)),
            growth=self.growth + growth,
            bend=self.bend + bend,
            unsure=0,
            count_law=count_law if repeats <= 1 else None,
        )

    def skewness(self, shares: Floats) -> Floats:
        """Third cumulant over variance at these shares, relative to a share of 0; in [-1, 1]."""
        law = self.count_law
        if law is None or 2 * law.q >= 1:
            return np.ones_like(shares)
        skewness: Floats = np.clip(1 - 2 * (law.p - law.q) / (1 - 2 * law.q) * shares, -1, 1)
        return skewness

    def between(
        self, reports: int, *, down: Floats | float, up: Floats | float
    ) -> tuple[Floats, Floats]:
        """Interval ends in [0, reports], this many normal standard errors below and above."""
        return ends_between(
            np.clip(self.estimates, 0.0, reports),
            (self.absent, self.growth, self.bend),
            reports,
            down=down,
            up=up,
            step=self.step,
            tail=self.tail,
            count_law=self.count_law,
        )


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
    variance, result = place.stderrs**2, place
    if repeats is not None:
        shares = np.clip(place.estimates / max(reports, 1), 0.0, 1.0)
        variance = variance + reports**2 * sampled(shares, reports / repeats)
        bend = place.bend + repeats / max(reports, 1)
        result = replace(place, growth=place.growth + repeats, bend=bend)
    reach = reach_of(confidence)
    between = result.between(reports, down=reach, up=reach)
    columns = place.estimates, np.sqrt(variance), *between
    middle, error, low, high = (float(column[0]) / max(reports, 1) for column in columns)
    unit = ends[1] - ends[0]
    return Mean(ends[0] + unit * middle, unit * error, ends[0] + unit * low, ends[0] + unit * high)


def means_of(
    places: ValueEstimates, ends: tuple[float, float], reports: int, confidence: float
) -> list[Mean]:
    """Means of coordinates in the range `ends`; `places` has sums, 0 at low and 1 at high."""
    unit = (ends[1] - ends[0]) / max(reports, 1)
    rows = zip(places.estimates.tolist(), places.stderrs.tolist(), strict=True)
    return [
        with_interval(ends[0] + unit * middle, unit * error, confidence, ends)
        for middle, error in rows
    ]


def with_interval(
    value: float, stderr: float, confidence: float, ends: tuple[float, float]
) -> Mean:
    """A number with its interval, which is clipped to the possible range `ends`."""
    inside = np.clip(np.array([value]), *ends)
    least, most = interval(inside, np.array([stderr]), confidence)
    low, high = np.clip([least[0], most[0]], *ends).tolist()
    return Mean(float(value), float(stderr), low, high)
