"""Anytime: intervals that hold at every look while reports come in, by how sure each must be.

The error of an estimate is a sum over its reports whose variance is known as they come. A normal
mixture bounds all such sums at once (Robbins 1970): with a doubt d, after a variance V, at

    sqrt((V + r) (log((V + r) / r) + 2 log(1 / d)))

where r is set beforehand: here what the fewest reports have that are ever told.
Sums of thousands of coins are as good as normal, which every interval here rests on.
"""

from math import log, sqrt
from typing import Final

from scipy.special import ndtr

from hubbub.analysis.uncertainty.intervals import MAX_CONFIDENCE, reach_of

# Places of a list whose intervals are told at most a millionth as doubtful.
_PLACES: Final = 1e-6


def anytime_confidence(confidence: float, growths: tuple[float, float], rows: int) -> float:
    """The confidence whose plain interval is as long as one that holds at every look.

    growths: between which V / r is, by now. rows: of the list, whose first of m has an m-th of the
        doubt.

    Raises:
        BadParameter: a confidence that is none.
    """
    reach_of(confidence)
    doubt, least = 1 - confidence, 1.0
    shares = [max(_PLACES, 1 / rows) ** (step / 8) for step in range(9)] if rows > 1 else [1.0]
    for share in shares:
        reach = max(_reach(doubt * share, growth) for growth in growths)
        least = min(least, 2 * float(ndtr(-reach)) / share)
    return min(1 - least, MAX_CONFIDENCE)


def _reach(doubt: float, growth: float) -> float:
    """How many standard errors away; as a function of growth it falls, and then rises."""
    return sqrt((1 + 1 / growth) * (log(1 + growth) + 2 * log(1 / doubt)))
