"""Floats that every machine and language computes alike, to the last digit.

IEEE 754 rounds sums, products, quotients and roots in one way; `exp`, `erfc` and `hypot` are as the
machine's library has them. What a payload looks like may hang on a last digit, so what decides over
one goes by these. Python's own `sum` of floats differs between its versions: sums are `math.fsum`,
which is rounded once, or are written out.
Source of a normal number's chances: Abramowitz, Stegun (1964), 26.2.11 and 26.2.14.
"""

import math
from collections.abc import Iterable
from typing import Final

# exp(-x) is the series at x/64, squared six times; for x up to _MOST its error is 2**-45.
_SQUARINGS: Final = 6
_TERMS: Final = 20
_MOST: Final = 64.0
# From this z on, tails are computed by a continued fraction with this many terms.
_OUTER: Final = 2.0
_FRACTIONS: Final = 60


def length(numbers: Iterable[float]) -> float:
    """The Euclidean norm of numbers whose squares do not overflow."""
    return math.sqrt(math.fsum(x * x for x in numbers))


def falling(x: float) -> float:
    """exp(-x), for x in [0, 64]."""
    part = min(x, _MOST) / (1 << _SQUARINGS)
    result = 1.0
    for term in range(_TERMS, 0, -1):
        result = 1.0 - part * result / term
    for _ in range(_SQUARINGS):
        result *= result
    return result


def density(z: float) -> float:
    """The density of the standard normal distribution, at z in [-11, 11]."""
    return falling(z * z / 2) / math.sqrt(2 * math.pi)


def normal_tail(z: float) -> float:
    """The chance that a standard normal variable exceeds z in [-11, 11]."""
    if z < 0:
        return 1 - normal_tail(-z)
    if z < _OUTER:
        term = total = z
        odd = 1
        while term > total * 2.0**-60:
            odd += 2
            term *= z * z / odd
            total += term
        return 0.5 - density(z) * total
    fraction = z
    for many in range(_FRACTIONS, 0, -1):
        fraction = z + many / fraction
    return density(z) / fraction


def binomial(trials: int, yes: float, no: float) -> list[float]:
    """The chances of 0, 1, ... `trials` successes of chance `yes`, outwards from the likeliest."""
    middle = min(int((trials + 1) * yes), trials)
    weights = [0.0] * (trials + 1)
    weights[middle] = total = 1.0
    for count in range(middle, trials):
        weights[count + 1] = weights[count] * ((trials - count) / (count + 1) * (yes / no))
        total += weights[count + 1]
    for count in range(middle, 0, -1):
        weights[count - 1] = weights[count] * (count / (trials - count + 1) * (no / yes))
        total += weights[count - 1]
    return [chance / total for chance in weights]
