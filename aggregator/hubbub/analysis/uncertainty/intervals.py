"""Intervals of estimates and of their ratios, and which of many estimates are significant.

Shares are of those who reported, so their only error is randomization. Comparisons of epochs and
lines through epochs refer to the population instead: other people report each time.

The error of an estimate is a sum over its reports whose variance is known as they come. A normal
mixture bounds all such sums at once (Robbins 1970): with error rate d, after a variance V, at

    sqrt((V + r) (log((V + r) / r) + 2 log(1 / d)))

where r is fixed beforehand: here the variance of the smallest number of reports that is answered.
Sums over thousands of reports are practically normal, which every interval here relies on.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, log, sqrt
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.special import ndtr, ndtri

from hubbub.analysis.arrays import Floats, Mask
from hubbub.errors import BadParameter
from hubbub.query_results.confidence_check import MAX_CONFIDENCE, MIN_CONFIDENCE, confidence_error

_NORMAL: Final = NormalDist()


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
        worth = np.interp(scores, self.scores, self.worth)
        answer: Floats = worth + np.maximum(scores - self.scores[-1], 0.0)
        return np.minimum(answer, scores)

    def excess(self, worth: Floats) -> Floats:
        """How much larger than these normal scores the equally improbable scores are."""
        return np.maximum(np.interp(worth, self.worth, self.scores - self.worth), 0.0)

    def reach(self, worth: Floats, relative_stderr: "Floats | float" = 1.0) -> Floats:
        """Scores as improbable as these normal scores.

        `relative_stderr` is relative to the standard error of an absent value, at least 1.
        """
        return worth + self.excess(worth) / relative_stderr


def selection_reach(
    places: "Floats | float", confidence: float = 0.95, *, part: float = 1.0
) -> Floats:
    """Standard errors from an estimate down to its low end, by its place in a list, in (0, 1].

    As in `ValueEstimates.ranked`. `part` is the estimate's share, in (0, 1], of the variance of the
    quantity by which the list is ordered; only that part of its error is pushed up.
    """
    pushed: Floats = -ndtri(places * ((1 - confidence) / 2))
    if part == 1:
        return pushed
    middle, own_scale = -ndtri(places / 2), np.sqrt(part)
    other_reach = np.sqrt(1 - part) * reach_of(confidence)
    answer: Floats = own_scale * middle + np.hypot(own_scale * (pushed - middle), other_reach)
    return answer


def bisected(
    inner: Floats, outer: Floats, is_inside: Callable[[Floats], Mask], halvings: int
) -> tuple[Floats, Floats]:
    """The ends after halving each interval so often; `is_inside` holds on the side of `inner`."""
    for _ in range(halvings):
        middle = (inner + outer) / 2
        at_middle = is_inside(middle)
        inner, outer = np.where(at_middle, middle, inner), np.where(at_middle, outer, middle)
    return inner, outer


def end_of(
    estimates: Floats,
    absent: Floats,
    growth: Floats,
    curvature: "Floats | float",
    reach: "Floats | float",
) -> Floats:
    """The truth t that is `reach` of its own standard errors above (or, if negative, below).

    It solves (t - estimate)^2 = reach^2 (absent^2 + growth t - curvature t^2). Where the error
    rises as fast as the truth, it is infinite.
    """
    square = reach**2
    first, middle = 1 + square * curvature, 2 * estimates + square * growth
    at_middle = (
        4 * (growth * estimates + first * absent**2 - curvature * estimates**2) + square * growth**2
    )
    twice = middle + reach * np.sqrt(np.maximum(at_middle, 0.0))
    slow = first > 0
    return np.where(slow, twice / np.where(slow, 2 * first, 1.0), np.sign(reach) * np.inf)


def whole_ends(low: Floats, estimates: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Ends of intervals of counts, moved to the next whole number inside, which loses no cover.

    An end stays where it is if the estimate, which need not be whole, is nearer.
    """
    least, most = np.ceil(low), np.floor(high)
    return np.where(least <= estimates, least, low), np.where(most >= estimates, most, high)


def reach_of(confidence: float) -> float:
    """Number of standard errors to either end of an interval. Raises BadParameter."""
    if not MIN_CONFIDENCE <= confidence <= MAX_CONFIDENCE:
        raise confidence_error(confidence)
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
    clipped = np.clip(shares, 0.0, 1.0)
    return clipped * (1 - clipped) / max(people, 1)


Bounds = tuple[float, float, float]
"""An estimate, and the ends of its interval."""


# So many times the range is as far as any end of an interval that contains the whole range.
_FARTHEST: Final = 10.0
_NO_WIDTH: Final = 1e-30


def difference_of(sides: Floats, ends: tuple[float, float]) -> tuple[Floats, Floats, Floats]:
    """Differences of two independent estimates of numbers in a range, with their intervals.

    A difference is in the interval if two possible numbers have it that are, together, no further
    from the estimates than an interval's end is from its own (profile likelihood, with errors as of
    the method of Zou and Donner 2008). For numbers at opposite ends of the range a nominal 95% is
    93.8%, by the mixture of Self and Liang (1987): two errors count, each in one direction only.

    Args:
        sides: estimates before and after, which may lie outside the range, and lows and highs of
            their intervals, which the range may have cut off; shape (3, 2, ...).
        ends: of the range of either number; the high one may be infinite.

    Returns:
        Differences, lows and highs. Only a difference that no two numbers have is outside its
        interval.
    """
    inside, down, up = _reaches_of(sides, ends)
    difference, middle = sides[0, 1] - sides[0, 0], inside[1] - inside[0]
    widest = ends[1] - ends[0]
    # Upwards, the first number may be below its estimate and the second one above; or opposite.
    further, less = _both_reach(down, up[::-1], inside - ends[0], ends[1] - inside[::-1])
    low, high = np.minimum(middle - less, difference), np.maximum(middle + further, difference)
    return difference, np.maximum(low, -widest), np.minimum(high, widest)


def _both_reach(down: Floats, up: Floats, room_below: Floats, room_above: Floats) -> Floats:
    """How far one number may be below its estimate, plus how far another may be above its own."""
    # The point of an ellipse's quarter that is furthest along the diagonal, inside the range.
    fall = np.minimum(down**2 / np.hypot(down, up), room_below)
    rise = np.minimum(up * np.sqrt(np.maximum(1 - (fall / down) ** 2, 0.0)), room_above)
    fall = np.minimum(down * np.sqrt(1 - (rise / up) ** 2), room_below)
    return fall + rise


def _reaches_of(sides: Floats, ends: tuple[float, float]) -> tuple[Floats, Floats, Floats]:
    """The estimates, moved into the range, and how far their errors reach down and up."""
    estimates, low, high = sides
    clipped = np.minimum(np.maximum(estimates, ends[0]), ends[1])
    farthest, outside = _FARTHEST * (ends[1] - ends[0]), estimates - clipped
    down, up = clipped - low, high - clipped
    # An interval that the range cuts off reaches at least as far as in the other direction.
    cut_low, cut_high = low == ends[0], high == ends[1]
    if (cut_low | cut_high).any():
        cut_off = np.where(cut_low & cut_high, farthest, np.maximum(down, up))
        down, up = np.where(cut_low, cut_off, down), np.where(cut_high, cut_off, up)
    if outside.any():
        # An estimate outside the range has used up a part of the error already.
        above, below = np.maximum(outside, 0.0), np.maximum(-outside, 0.0)
        down, up = np.hypot(down, above) - above, np.hypot(up, below) - below
    down, up = np.minimum(np.maximum(np.array([down, up]), _NO_WIDTH), farthest)
    return clipped, down, up


# Places of a list whose intervals are told at most a millionth as doubtful.
_MIN_SHARE: Final = 1e-6


def anytime_confidence(confidence: float, growths: tuple[float, float], rows: int) -> float:
    """Confidence of the plain interval that is as long as one that is valid at every look.

    `growths` are bounds of V / r so far; `rows` is the length of the list, whose first row has 1 /
    rows of the error rate. Raises as `reach_of`.
    """
    reach_of(confidence)
    doubt, least = 1 - confidence, 1.0
    shares = [max(_MIN_SHARE, 1 / rows) ** (step / 8) for step in range(9)] if rows > 1 else [1.0]
    for share in shares:
        # As a function of growth it first falls, then rises.
        reach = max(
            sqrt((1 + 1 / growth) * (log(1 + growth) + 2 * log(1 / (doubt * share))))
            for growth in growths
        )
        least = min(least, 2 * float(ndtr(-reach)) / share)
    return min(1 - least, MAX_CONFIDENCE)


FALSE_DISCOVERY_RATE: Final = 0.05
"""Of what stands out from zero, or has changed, the share that does not, at most on average."""

# Standard errors above a cut; wider smooths over a density that rises to the cut.
_NEAR_CUT: Final = 2.0


def discoveries(p_values: Floats, rate: float = FALSE_DISCOVERY_RATE) -> Mask:
    """Which p-values are significant at this false discovery rate, by `critical`.

    Raises BadParameter unless the rate is in (0, 1).
    """
    if not 0 < rate < 1:
        raise BadParameter(f"false discovery rate {rate} is outside (0, 1)")
    return p_values <= critical(p_values, rate)


def stand_out(p_values: Floats, rate: float = FALSE_DISCOVERY_RATE) -> Mask:
    """Which p-values are significant at this false discovery rate (Benjamini and Hochberg 1995)."""
    return p_values <= _step_up(np.sort(p_values), rate)


def critical(p_values: Floats, rate: float = FALSE_DISCOVERY_RATE) -> float:
    """Largest significant p-value at this false discovery rate; below 0 if none is.

    Benjamini and Hochberg's procedure (1995), or its adaptive form if that finds more: a first pass
    counts the probable nulls, a second spends the whole rate on those (Benjamini, Krieger and
    Yekutieli 2006, definition 6). The level is at most the rate itself, so that a value that nobody
    holds is significant with at most that probability, beside any number of certain ones.
    """
    ordered = np.sort(p_values)
    first = _step_up(ordered, rate / (1 + rate))
    nothing = max(len(ordered) - int(ordered.searchsorted(first, side="right")), 1)
    adaptive = _step_up(ordered, rate / (1 + rate) * len(ordered) / nothing)
    return min(max(_step_up(ordered, rate), adaptive), rate)


def selection_bias(gaps: Floats, stderrs: Floats) -> tuple[float, float]:
    """Upward bias of the sum of estimates that were selected by their cuts, and its variance.

    `gaps` are the distances of selected estimates above their cuts, `stderrs` those of estimates
    whose truth lies at the cut. For a normal estimate x of t, used only above c, the mean of x - t
    is its variance times the density of x at c (Stein 1981). So only the density just above the
    cuts is needed: a boundary kernel, linear over `_NEAR_CUT` standard errors, which adds at most 8
    / `_NEAR_CUT`^2 of each estimate's variance.
    """
    places = gaps / (_NEAR_CUT * stderrs)
    is_near = places < 1
    bias = float((stderrs * (4 - 6 * places))[is_near].sum()) / _NEAR_CUT
    return max(bias, 0.0), 8 / _NEAR_CUT**2 * float((stderrs[is_near] ** 2).sum())


def _step_up(ordered: Floats, rate: float) -> float:
    """Significance level of Benjamini and Hochberg (1995); below 0 if nothing is significant.

    `ordered` are the p-values, ascending.
    """
    levels = rate * np.arange(1, len(ordered) + 1) / max(len(ordered), 1)
    passing = (ordered <= levels).nonzero()[0]
    return float(levels[passing[-1]]) if len(passing) else -1.0


_HALVINGS: Final = 48


def fieller(
    numerators: Floats,
    denominators: Floats,
    variances: Floats,
    denominator_variances: Floats,
    *,
    reach: Floats | float,
    most: float = 1.0,
) -> tuple[Floats, Floats, Floats]:
    """Of ratios of two estimates, estimates and ends of intervals in [0, most] (Fieller 1954).

    A ratio is inside if numerator - ratio * denominator is within so many standard errors of 0,
    each ratio by the error that there would be if it were the true one. Estimates may be outside
    [0, most]; only where the denominator is within reach of 0 they are moved inside, since they
    could then be any number.

    Args:
        numerators: estimates; shape (ratios,).
        denominators: as `numerators`.
        variances: that of numerator - ratio * denominator if the ratio is the true one, as the
            coefficients of a polynomial in it, the constant first; shape (coefficients, ratios).
        denominator_variances: shape (ratios,).
        reach: how many standard errors away the ends are.
        most: the largest possible ratio; infinite if any is possible.

    Returns:
        Estimates, lows and highs. An end without bound is infinite; the estimate of a denominator
        that is not above 0 is NaN.
    """
    clear = denominators > reach * np.sqrt(denominator_variances)
    safe = np.where(denominators > 0, denominators, 1.0)
    estimates = numerators / safe
    nearest = np.clip(estimates, 0.0, most)
    # The interval of an estimate outside [0, most] is that of the nearest end: by its own, all
    # ratios could be rejected, and the interval would have no width.
    centres = nearest * safe
    highest = np.full_like(estimates, most)
    if most == inf:
        # By the triangle inequality no ratio above this one is within reach.
        numerator_end = np.maximum(numerators, 0.0) + reach * np.sqrt(np.maximum(variances[0], 0.0))
        denominator_end = denominators - reach * np.sqrt(denominator_variances)
        highest = np.where(clear, numerator_end / np.where(clear, denominator_end, 1.0), np.inf)

    def is_inside(ratios: Floats) -> Mask:
        variance = np.maximum(polyval(ratios, variances, tensor=False), 0.0)
        return (centres - ratios * denominators) ** 2 <= reach**2 * variance

    def end(farthest: Floats) -> Floats:
        inner, _ = bisected(nearest, farthest, is_inside, _HALVINGS)
        return np.where(is_inside(farthest), farthest, inner)

    finite = np.where(clear, highest, 0.0)
    low = np.where(clear, end(np.zeros_like(estimates)), 0.0)
    high = np.where(clear, end(finite), most)
    estimates = np.where(clear, estimates, nearest)
    return np.where(denominators > 0, estimates, np.nan), low, high
