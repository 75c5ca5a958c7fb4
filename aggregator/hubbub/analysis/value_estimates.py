"""Estimates of all values with their errors, and single numbers with their intervals."""

from dataclasses import dataclass, replace
from math import pi, sqrt
from typing import Any, Final, Self

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.uncertainty.intervals import (
    FALSE_DISCOVERY_RATE,
    Tail,
    critical,
    end_of,
    reach_of,
    sampled,
    selection_reach,
    whole_ends,
)
from hubbub.analysis.uncertainty.tails import CountLaw

# Past so many standard errors above a cut, having been selected says nothing any more; a bound
# further away than the farthest is as good as none.
_NEAR: Final = 5.0
_FARTHEST: Final = 40.0
# Distances are then within 1e-9 at 95%, and 3e-7 at 40%; a gap of 0 has no slope.
_NEWTON_STEPS: Final = 3
_NO_SLOPE: Final = 1e-9
_ROOT_OF_TURN: Final = sqrt(2 * pi)
# Each takes most of what is left off an end that its tail has too low.
_ROUNDS: Final = 4
# Of an upper end's doubt, what is left to a marked value's however few are marked. Measured: with a
# quarter 95% of marked strings' intervals hold (tests/statistics/test_decode.py); less is wider.
_MIN_DETECTED_SHARE: Final = 1 / 4
# Of a low's doubt over a list, what values may spend that are too far below to be picked among.
_APART: Final = 1 / 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEstimates:
    """Estimate, standard error, and standard error if nobody held it, of each value; in reports.

    A value with t reports has the variance absent^2 + growth t - curvature t^2.

    Args:
        absent: standard errors if nobody held the value.
        growth: variance that a report adds to its own value's estimate.
        curvature: decrease of that with every report that the value already has.
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
        people_variance: for a mean, the variance between people's numbers, in that of numbers which
            are all at either end of the range.
        included_people_variance: part of it in the errors of one report of each person.
        of_counts: whether every truth is a count, a whole number; of shares and means it is not.
    """

    estimates: Floats
    stderrs: Floats
    absent: Floats
    growth: Floats
    tail: Tail | None = None
    count_law: CountLaw | None = None
    curvature: float = 0.0
    step: float = 0.0
    typical: float | None = None
    unsure: int = 0
    number_variance: float = 0.0
    number_covariance: float = 0.0
    noise_variance: float = 0.0
    place: "ValueEstimates | None" = None
    people_variance: float = 1.0
    included_people_variance: float = 0.0
    of_counts: bool = True

    @classmethod
    def flat(cls, estimates: Floats, stderrs: Floats, **more: Any) -> Self:
        """Estimates with errors whoever holds a value; `more` has other fields."""
        growth = np.zeros_like(stderrs)
        return cls(estimates=estimates, stderrs=stderrs, absent=stderrs, growth=growth, **more)

    def of_shares(self, reports: int, repeats: int = 0) -> "ValueEstimates":
        """The same with errors of shares, multiplied by the number of reports.

        If n is an estimate, the error of a share s = t / n is that of t - s n. With `repeats`, the
        largest number of reports from one device, the errors are for the population, and sampling
        adds repeats * t (1 - t / n); 0 means the reporters themselves.
        """
        growth, curvature = self.share_law(reports, repeats)
        counts = self.estimates.clip(0.0, max(reports, 1))
        square = self.stderrs**2 + growth * counts - curvature * counts**2
        count_law = self.count_law and replace(self.count_law, sampled=repeats > 0)
        return replace(
            self,
            stderrs=np.sqrt(np.maximum(square, 0.0)),
            growth=self.growth + growth,
            curvature=self.curvature + curvature,
            unsure=0,
            count_law=count_law if repeats <= 1 else None,
            of_counts=False,
        )

    def share_law(self, reports: int, repeats: int) -> tuple[float, float]:
        """What `of_shares` adds to growth and curvature."""
        number = max(reports, 1)
        growth = repeats - 2 * self.number_covariance / number
        return growth, repeats / number - self.number_variance / number**2

    def drawn(self, repeats: int) -> float:
        """What who reported adds to a mean's error, as a multiple of `sampled` by all reports."""
        return self.people_variance * repeats - self.included_people_variance

    def of_population(self, reports: int, repeats: int) -> "ValueEstimates":
        """The sum of a mean's places with its law for the population, but `stderrs`."""
        further = self.drawn(repeats)
        curvature = self.curvature + further / max(reports, 1)
        return replace(self, growth=self.growth + further, curvature=curvature)

    @property
    def skewness_decline(self) -> float:
        """How fast third cumulant over variance, 1 at a share of 0, declines with the share."""
        law = self.count_law
        return 2 * (law.p - law.q) / (1 - 2 * law.q) if law and 2 * law.q < 1 else 0.0

    def between(
        self, reports: float, *, down: Floats | float, up: Floats | float
    ) -> tuple[Floats, Floats]:
        """The least and largest truths in [0, reports] whose own error would reach the estimates.

        The ends are as of `unbounded`; those of counts, as of `whole_ends`.
        """
        ends = self.unbounded(reports, down=down, up=up)
        low, high = np.minimum(np.maximum(ends, 0.0), reports)
        if not self.of_counts:
            return low, high
        return whole_ends(low, self.estimates.clip(0.0, reports), high)

    def unbounded(
        self, reports: float, *, down: Floats | float, up: Floats | float
    ) -> tuple[Floats, Floats]:
        """The ends of `between` as if there could be fewer holders than 0, and more than reports.

        They are `down` and `up` standard errors away, or as improbable by the `count_law` or the
        `tail`; without a `count_law` half of a `step` further (Yates 1934).
        """
        clipped, tail = self.estimates.clip(0.0, reports), self.tail
        if self.count_law:
            return self.count_law.between(clipped, down, up)
        error = self.absent, self.growth, self.curvature
        worth = np.broadcast_to(down, clipped.shape)
        low = lower_ends(clipped, error, worth, None if tail is None else tail.excess(worth))
        worth = np.broadcast_to(up, clipped.shape)
        if tail and tail.down:
            # What fewer hold has the longer tail beside its error, so the end is high enough.
            worth = worth + tail.down.excess(worth) / _relative_stderrs(clipped, *error)
        high = end_of(clipped, *error, worth)
        # A tail contains the step.
        low = low if tail else low - self.step / 2
        return low, high if tail and tail.down else high + self.step / 2

    def ranked(
        self, reports: float, confidence: float = 0.95, rate: float = FALSE_DISCOVERY_RATE
    ) -> tuple[Floats, Floats, Mask]:
        """Interval ends and detections of a whole list, valid also for values selected by size.

        `absent` must be above 0; `reports` is the largest possible count.

        The first rows of a list have estimates that chance has pushed up. So the low end of row r
        of m has r/m of the error rate: of the first k rows, for any k, as many intervals contain
        the truth as the confidence states (Benjamini and Yekutieli 2005, for lower ends; selection
        only makes upper ends safer). m counts the rows that chance may have put there, not those
        too far below (after Zrnic and Fithian 2024). An end is the truth whose own error, not the
        estimate's, would reach the estimate (Wilson 1927).

        A value is detected if it passes `critical`, by its p-value if nobody holds it. Its low end
        is also valid among values that pass the same cut (Weinstein, Fithian and Benjamini 2013);
        it is at least one report if the value is also detected at the interval's own error rate,
        since for a truth of 0 an interval may spend all of its error rate on its lower end
        (Weinstein and Yekutieli 2020). The error rate of its upper end is multiplied by the share
        of detected values, but by no less than a quarter: false detections use most of it.
        """
        estimates, absent, tail = self.estimates, self.absent, self.tail
        error = absent, self.growth, self.curvature
        plain = reach_of(confidence)
        clipped = self.estimates.clip(0.0, reports)
        scores, relative_stderr = estimates / absent, _relative_stderrs(clipped, *error)
        list_reach = selection_reach(_APART / max(len(estimates), 1), confidence)
        reach = relative_stderr * (
            list_reach if tail is None else tail.reach(list_reach, relative_stderr)
        )
        places = _places(scores, reach)
        if np.ptp(absent) > 0:
            places = np.minimum(places, _places(estimates, absent * reach))
        surely = selection_reach(places, confidence)
        # A mark is against what nobody holds, and judged by the law of that.
        chances = ndtr(-(scores if tail is None else tail.of(scores)))
        level = critical(chances, rate)
        detected: Mask = chances <= level
        upwards = np.full_like(estimates, plain)
        if detected.any():
            cut = float(-ndtri(level)) if tail is None else tail.reach(-ndtri(np.array([level])))
            gaps = np.maximum(scores[detected] - cut, 0.0) / relative_stderr[detected]
            is_near, distances = gaps < _NEAR, np.full_like(gaps, plain)
            distances[is_near] = distances_past_cut(gaps[is_near], plain)
            surely[detected] = np.maximum(surely[detected], distances)
            marked_share = max(float(detected.mean()), _MIN_DETECTED_SHARE)
            upwards[detected] = selection_reach(marked_share, confidence)
        low, high = self.between(reports, down=surely, up=upwards)
        # An interval of 95% cannot leave out 0 for a mark of which 20% may be false.
        sure_level = level if rate <= 1 - confidence else critical(chances, 1 - confidence)
        is_detected = chances <= sure_level
        low[is_detected] = np.maximum(low[is_detected], np.minimum(1.0, clipped[is_detected]))
        return low, high, detected


_Error = tuple[Floats, Floats, Floats | float]
"""Absent, growth and curvature of `ValueEstimates`."""


def lower_ends(estimates: Floats, error: _Error, worth: Floats, excess: Floats | None) -> Floats:
    """The truths of which estimates are these normal scores too high; `excess` is of their tail."""
    if excess is None:
        return end_of(estimates, *error, -worth)
    # From below: that of what nobody holds goes furthest, so that every round's end is low enough.
    low = end_of(estimates, *error, -(worth + excess))
    for _ in range(_ROUNDS - 1):
        relative_stderrs = _relative_stderrs(np.maximum(low, 0.0), *error)
        low = end_of(estimates, *error, -(worth + excess / relative_stderrs))
    return low


def _relative_stderrs(
    counts: Floats, absent: Floats, growth: Floats, curvature: Floats | float
) -> Floats:
    """Standard errors at these counts, relative to that of an absent value; at least 1."""
    excess = np.maximum(growth * counts - curvature * counts**2, 0.0)
    return np.sqrt(1 + excess / absent**2)


def distances_past_cut(gaps: Floats, plain: float) -> Floats:
    """How far below its score a value's truth is, if the score counts only past a cut.

    Of such a truth, a score at least so large has, among scores past the cut, the probability with
    which a normal error exceeds `plain`. `gaps` are of the scores above the cut; all are in
    standard errors. The logarithm of the probability is concave, so Newton's steps end from above.
    """
    doubt, distances = float(log_ndtr(-plain)), np.full_like(gaps, plain)
    for _ in range(_NEWTON_STEPS):
        from_cut = gaps - distances
        score_chance, cut_chance = log_ndtr(-distances), log_ndtr(from_cut)
        slope = np.exp(-(from_cut**2) / 2 - cut_chance) - np.exp(-(distances**2) / 2 - score_chance)
        excess = (score_chance - cut_chance - doubt) * _ROOT_OF_TURN
        distances = np.minimum(distances - excess / np.minimum(slope, -_NO_SLOPE), _FARTHEST)
    return distances


def _places(estimates: Floats, reach: Floats) -> Floats:
    """Relative rank, in (0, 1], of each value among those at most `reach` below it."""
    ordered = np.sort(estimates)
    rivals = len(ordered) - np.searchsorted(np.sort(estimates + reach), estimates)
    ranks = len(ordered) - np.searchsorted(ordered, estimates, side="right") + 1
    return ranks / np.maximum(rivals, ranks)


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
    """Mean of numbers in the range `ends`; `place` is the sum of their places, in [0, 1].

    With `repeats`, the largest number of reports from one device, the interval is for the
    population instead of the reporters.
    """
    variance, result = place.stderrs**2, replace(place, of_counts=False)
    if repeats is not None:
        shares = place.estimates / max(reports, 1)
        variance = variance + place.drawn(repeats) * reports**2 * sampled(shares, reports)
        result = result.of_population(reports, repeats)
    reach = reach_of(confidence)
    columns = place.estimates, np.sqrt(variance), *result.between(reports, down=reach, up=reach)
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
    """A number with its interval, which is clipped to the possible range `ends`.

    An estimate sums thousands of independent reports, so it is normal (central limit theorem).
    """
    clipped, reach = min(max(value, ends[0]), ends[1]), reach_of(confidence) * stderr
    low, high = np.clip([clipped - reach, clipped + reach], *ends).tolist()
    return Mean(float(value), float(stderr), low, high)
