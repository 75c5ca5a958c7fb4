"""Intervals: the uncertainty of estimates, by normal laws and by laws with longer tails.

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
from scipy.special import ndtr, ndtri

from hubbub.analysis.arrays import Floats
from hubbub.query_results.confidence import MAX_CONFIDENCE, check_confidence

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

    def reach(self, worth: Floats, spread: "Floats | float" = 1.0) -> Floats:
        """Scores as improbable as these normal scores.

        `spread` is the value's standard error relative to that of an absent value, at least 1.
        """
        return worth + self.excess(worth) / spread


def selection_reach(
    places: "Floats | float", confidence: float = 0.95, *, part: float = 1.0
) -> Floats:
    """Standard errors from an estimate down to its low end, by its place in a list, in (0, 1].

    As in `ValueEstimates.ranked`. `part` is the estimate's share, in (0, 1], of the variance of the
    quantity by which the list is ordered; only that part of its error is pushed up.
    """
    plain = reach_of(confidence)
    pushed, even = -ndtri(places / 2 * (1 - confidence)), -ndtri(places / 2)
    own_scale, rest = np.sqrt(part), np.sqrt(1 - part) * plain
    answer: Floats = own_scale * even + np.hypot(own_scale * (pushed - even), rest)
    return answer


def end_of(
    estimates: Floats, absent: Floats, growth: Floats, curvature: float, reach: "Floats | float"
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
    clipped = np.clip(shares, 0.0, 1.0)
    return clipped * (1 - clipped) / max(people, 1)


Bounds = tuple[float, float, float]
"""An estimate, and the ends of its interval."""


def difference_of(before: Bounds, after: Bounds) -> Bounds:
    """The difference of two independent estimates, with its interval (Zou and Donner 2008)."""
    (old, old_low, old_high), (new, new_low, new_high) = before, after
    difference = new - old
    low = difference - hypot(new - new_low, old_high - old)
    return difference, low, difference + hypot(new_high - new, old - old_low)


# Places of a list whose intervals are told at most a millionth as doubtful.
_PLACES: Final = 1e-6


def anytime_confidence(confidence: float, growths: tuple[float, float], rows: int) -> float:
    """Confidence of the plain interval that is as long as one that is valid at every look.

    `growths` are bounds of V / r so far; `rows` is the length of the list, whose first row has 1 /
    rows of the error rate. Raises as `reach_of`.
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
