"""Intervals and detections: the uncertainty of estimates, and which are significantly above zero.

Shares are of those who reported, so their only error is randomization. Comparisons of epochs and
lines through epochs refer to the population instead: other people report each time.

The error of an estimate is a sum over its reports whose variance is known as they come. A normal
mixture bounds all such sums at once (Robbins 1970): with error rate d, after a variance V, at

    sqrt((V + r) (log((V + r) / r) + 2 log(1 / d)))

where r is fixed beforehand: here the variance of the smallest number of reports that is answered.
Sums over thousands of reports are practically normal, which every interval here relies on.
"""

from dataclasses import dataclass
from math import hypot, log, sqrt
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.uncertainty.count_intervals import CountLaw
from hubbub.analysis.uncertainty.discoveries import FALSE_DISCOVERY_RATE, critical, p_values
from hubbub.query_results.confidence import MAX_CONFIDENCE, check_confidence

_NORMAL: Final = NormalDist()
# Past so many standard errors above a cut, having been selected says nothing any more; a bound
# further away than the farthest is as good as none.
_NEAR: Final = 5.0
_FARTHEST: Final = 40.0
_HALVINGS: Final = 30
# Each takes most of what is left off an end that its tail has too low.
_ROUNDS: Final = 4
# Of an upper end's doubt, what is left to a marked value's however few are marked. Measured: with a
# quarter 95% of marked strings' intervals hold (tests/statistics/test_decode.py); less is wider.
_MIN_DETECTED_SHARE: Final = 1 / 4
# Of a low's doubt over a list, what values may spend that are too far below to be picked among.
_APART: Final = 1 / 10


def interval(estimates: Floats, stderrs: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Ends of two-sided intervals at this confidence, in the estimates' unit.

    An estimate sums thousands of independent reports, so it is normal (central limit theorem).
    """
    reach = reach_of(confidence) * stderrs
    return estimates - reach, estimates + reach


@dataclass(frozen=True, slots=True)
class Tail:
    """Tail of an estimate's law where it is longer than normal, as a map to normal scores.

    Args:
        scores: of a value that nobody holds, in its standard errors; ascending.
        worth: the equally improbable normal scores; ascending.
        down: the same for low estimates, if they have a long tail, too.
    """

    scores: Floats
    worth: Floats
    down: "Tail | None" = None

    def of(self, scores: Floats) -> Floats:
        """Normal scores as improbable as these scores; beyond the table at a constant distance."""
        inside = np.interp(scores, self.scores, self.worth)
        answer: Floats = inside + np.maximum(scores - self.scores[-1], 0.0)
        return np.minimum(answer, scores)

    def excess(self, worth: Floats) -> Floats:
        """How much larger than these normal scores the equally improbable scores are."""
        answer: Floats = np.interp(worth, self.worth, self.scores - self.worth)
        return np.maximum(answer, 0.0)

    def reach(self, worth: Floats, spread: "Floats | float" = 1.0) -> Floats:
        """Scores as improbable as these normal scores.

        `spread` is the value's standard error relative to that of a value that nobody holds, at
        least 1. Skewness falls as the standard error rises, and the excess with it.
        """
        return worth + self.excess(worth) / spread


_Error = tuple[Floats, Floats, float]
"""Of estimates: absent, growth, bend."""


def ranked(
    estimates: Floats,
    absent: Floats,
    growth: Floats,
    reports: float,
    confidence: float = 0.95,
    *,
    bend: float = 0.0,
    step: float = 0.0,
    tail: Tail | None = None,
    count_law: CountLaw | None = None,
    rate: float = FALSE_DISCOVERY_RATE,
) -> tuple[Floats, Floats, Mask]:
    """Interval ends and detections of a whole list, valid also for values selected by size.

    The variance at t true reports is absent^2 + growth t - bend t^2, with `absent` above 0. One
    report changes an estimate by `step`: ends are half of that further (Yates 1934), unless they
    are by a `count_law`. `reports` is the largest possible count.

    The first rows of a list have estimates that chance has pushed up. So the low end of row r of m
    has r/m of the error rate: of the first k rows, for any k, as many intervals contain the truth
    as the confidence states (Benjamini and Yekutieli 2005, for lower ends; selection only makes
    upper ends safer). m counts the rows that chance may have put there, not those too far below
    (after Zrnic and Fithian 2024). An end is the truth whose own error, not the estimate's, would
    reach the estimate (Wilson 1927), in [0, reports].

    A value is detected if it passes `critical`, by its p-value if nobody holds it. Its low end is
    also valid among values that pass the same cut (Weinstein, Fithian and Benjamini 2013); it is at
    least one report if the value is also detected at the interval's own error rate, since for a
    truth of 0 an interval may spend all of its error rate on its lower end (Weinstein and Yekutieli
    2020). The error rate of its upper end is multiplied by the share of detected values, but by no
    less than a quarter: false detections use most of it.
    """
    plain = reach_of(confidence)
    inside = np.clip(estimates, 0.0, reports)
    scores, spread = estimates / absent, _spread(inside, absent, growth, bend)
    near = pushed_up(np.full_like(estimates, _APART / max(len(estimates), 1)), confidence)
    reach = spread * (near if tail is None else tail.reach(near, spread))
    places = _places(scores, reach)
    if np.ptp(absent) > 0:
        places = np.minimum(places, _places(estimates, absent * reach))
    surely = pushed_up(places, confidence)
    # A mark is against what nobody holds, and judged by the law of that.
    chances = p_values(scores if tail is None else tail.of(scores))
    level = critical(chances, rate)
    detected: Mask = chances <= level
    upwards = np.full_like(estimates, plain)
    if detected.any():
        cut = float(-ndtri(level)) if tail is None else tail.reach(-ndtri(np.array([level])))
        gaps = np.maximum(scores[detected] - cut, 0.0) / spread[detected]
        surely[detected] = np.maximum(surely[detected], _picked(gaps, plain))
        upwards[detected] = pushed_up(max(float(detected.mean()), _MIN_DETECTED_SHARE), confidence)
    error = absent, growth, bend
    low, high = ends_between(
        inside, error, reports, down=surely, up=upwards, step=step, tail=tail, count_law=count_law
    )
    # An interval of 95% cannot leave out 0 for a mark of which 20% may be false.
    sure = detected & (chances <= critical(chances, min(rate, 1 - confidence)))
    low[sure] = np.maximum(low[sure], np.minimum(1.0, inside[sure]))
    return low, high, detected


def pushed_up(places: "Floats | float", confidence: float = 0.95, *, part: float = 1.0) -> Floats:
    """Standard errors from an estimate down to its low end, by its place in a list, in (0, 1].

    As in `ranked`. `part` is the estimate's share, in (0, 1], of the variance of the quantity by
    which the list is ordered; only that part of its error is pushed up.
    """
    plain = reach_of(confidence)
    pushed, even = -ndtri(places / 2 * (1 - confidence)), -ndtri(places / 2)
    own_scale, rest = np.sqrt(part), np.sqrt(1 - part) * plain
    answer: Floats = own_scale * even + np.hypot(own_scale * (pushed - even), rest)
    return answer


def _places(estimates: Floats, reach: Floats) -> Floats:
    """Relative rank, in (0, 1], of each value among those that chance may have put above it.

    Chance moves each value up by at most `reach`; values further below do not count.
    """
    ordered = np.sort(estimates)
    rivals = len(ordered) - np.searchsorted(np.sort(estimates + reach), estimates)
    ranks = len(ordered) - np.searchsorted(ordered, estimates, side="right") + 1
    answer: Floats = ranks / np.maximum(rivals, ranks)
    return answer


def _picked(gaps: Floats, plain: float) -> Floats:
    """Distance of a low end below its score that is valid for scores selected by a cut.

    `gaps` are the distances of scores above the cut, in their own standard errors.
    """
    reach = np.full_like(gaps, plain)
    near = gaps < _NEAR
    near_gaps, doubt = gaps[near], float(log_ndtr(-plain))
    # Of truths so far below, the chance of a score so large, among those that pass the cut.
    few, most = np.full_like(near_gaps, plain), np.full_like(near_gaps, _FARTHEST)
    for _ in range(_HALVINGS):
        middle = (few + most) / 2
        likely = log_ndtr(-middle) - log_ndtr(near_gaps - middle) > doubt
        few, most = np.where(likely, middle, few), np.where(likely, most, middle)
    reach[near] = few
    return reach


def ends_between(
    estimates: Floats,
    error: _Error,
    reports: float,
    *,
    down: "Floats | float",
    up: "Floats | float",
    step: float = 0.0,
    tail: Tail | None = None,
    count_law: CountLaw | None = None,
) -> tuple[Floats, Floats]:
    """The least and largest truths in [0, reports] whose own error would reach the estimates.

    Arguments as in `ranked`; `error` is (absent, growth, bend). The ends are `down` and `up`
    standard errors away, or as improbable by the `count_law` or the `tail`.
    """
    if count_law:
        return count_law.between(estimates, down, up)
    low = _low(estimates, error, np.broadcast_to(down, estimates.shape), tail)
    high = _high(estimates, error, np.broadcast_to(up, estimates.shape), tail)
    # A tail contains the step.
    low = low if tail else low - step / 2
    high = high if tail and tail.down else high + step / 2
    return np.clip(low, 0.0, reports), np.clip(high, 0.0, reports)


def _low(estimates: Floats, error: _Error, worth: Floats, tail: Tail | None) -> Floats:
    """The least truth whose own upward error would reach the estimate."""
    if tail is None:
        return end_of(estimates, *error, -worth)
    # From below: that of what nobody holds goes furthest, so that every round's end is low enough.
    spread, excess = np.ones_like(estimates), tail.excess(worth)
    for _ in range(_ROUNDS):
        low = end_of(estimates, *error, -(worth + excess / spread))
        spread = _spread(np.maximum(low, 0.0), *error)
    return low


def _high(estimates: Floats, error: _Error, worth: Floats, tail: Tail | None) -> Floats:
    """The largest truth whose own downward error would reach the estimate."""
    if tail is None or not tail.down:
        return end_of(estimates, *error, worth)
    # What fewer hold has the longer tail beside its error, so the end is high enough.
    spread, excess = _spread(np.maximum(estimates, 0.0), *error), tail.down.excess(worth)
    return end_of(estimates, *error, worth + excess / spread)


def _spread(counts: Floats, absent: Floats, growth: Floats, bend: float) -> Floats:
    """Standard error at these counts, relative to that of a value that nobody holds; at least 1."""
    excess = np.maximum(growth * counts - bend * counts**2, 0.0)
    answer: Floats = np.sqrt(1 + excess / absent**2)
    return answer


def end_of(
    estimates: Floats, absent: Floats, growth: Floats, bend: float, reach: "Floats | float"
) -> Floats:
    """The truth t that is `reach` of its own standard errors above (or, if negative, below).

    It solves (t - estimate)^2 = reach^2 (absent^2 + growth t - bend t^2). Where the error rises as
    fast as the truth, it is infinite.
    """
    square = reach**2
    first, middle = 1 + square * bend, 2 * estimates + square * growth
    inside = 4 * (growth * estimates + first * absent**2 - bend * estimates**2) + square * growth**2
    twice = middle + reach * np.sqrt(np.maximum(inside, 0.0))
    slow = first > 0
    answer: Floats = np.where(slow, twice / np.where(slow, 2 * first, 1.0), np.sign(reach) * np.inf)
    return answer


def reach_of(confidence: float) -> float:
    """Number of standard errors to either end of an interval. Raises BadParameter."""
    check_confidence(confidence)
    return _NORMAL.inv_cdf((1 + confidence) / 2)


Whose = Literal["reporters", "population"]
REPORTERS: Final[Whose] = "reporters"
POPULATION: Final[Whose] = "population"


def sampled(shares: Floats, people: float) -> Floats:
    """Sampling variance of these shares: s (1 - s) / n, with s clipped to [0, 1].

    `people` is the number of reporters; if a device may report r times, an r-th of the reports, the
    smallest possible number. For mean places in [0, 1] it is an upper bound (Bhatia and Davis
    2000). The difference between two samples that share people has less variance than this implies.
    """
    inside = np.clip(shares, 0.0, 1.0)
    answer: Floats = inside * (1 - inside) / max(people, 1)
    return answer


Bounds = tuple[float, float, float]
"""An estimate, and the ends of its interval."""


def difference_of(before: Bounds, after: Bounds) -> Bounds:
    """The difference of two independent estimates, with its interval (Zou and Donner 2008).

    Either estimate is inside its interval.
    """
    (old, old_low, old_high), (new, new_low, new_high) = before, after
    difference = new - old
    low = difference - hypot(new - new_low, old_high - old)
    return difference, low, difference + hypot(new_high - new, old - old_low)


# Places of a list whose intervals are told at most a millionth as doubtful.
_PLACES: Final = 1e-6


def anytime_confidence(confidence: float, growths: tuple[float, float], rows: int) -> float:
    """Confidence of the plain interval that is as long as one that is valid at every look.

    `growths` are bounds of V / r so far; `rows` is the length of the list, whose first row has
    1 / rows of the error rate.

    Raises:
        BadParameter: a confidence outside its range.
    """
    reach_of(confidence)
    doubt, least = 1 - confidence, 1.0
    shares = [max(_PLACES, 1 / rows) ** (step / 8) for step in range(9)] if rows > 1 else [1.0]
    for share in shares:
        # As a function of growth it first falls, then rises.
        reach = max(
            sqrt((1 + 1 / growth) * (log(1 + growth) + 2 * log(1 / (doubt * share))))
            for growth in growths
        )
        least = min(least, 2 * float(ndtr(-reach)) / share)
    return min(1 - least, MAX_CONFIDENCE)
