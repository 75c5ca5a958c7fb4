"""Probability: an exact chance, shared by sampler, guarantee and estimator."""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen

DIGITS: Final = 64
_CERTAINTY: Final = 1 << DIGITS

# Below 1/1024 no realistic number of reports gives a usable estimate; above 16 fewer than one in
# eight million reports is a lie, which no longer protects anybody.
MIN_EPSILON: Final = 2.0**-10
MAX_EPSILON: Final = 16.0

# The share of epsilon given up so that float rounding can never carry a loss past the claim:
# exp, log and log1p are right to 2**-51, and this is 2,000 times that.
_SLACK: Final = Fraction(1, 1 << 40)
_LOG_ERROR: Final = 2.0**-50


@frozen()
class Probability:
    """A multiple of 2**-64 in [0, 1]: `threshold / 2**64`, exactly.

    `at_most` rounds down, `at_least` rounds up: pick the side that costs accuracy, never privacy.
    """

    threshold: int

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= _CERTAINTY:
            raise BadParameter(f"threshold {self.threshold} is outside [0, 2**64]")

    @classmethod
    def at_most(cls, probability: Fraction | float) -> "Probability":
        """The largest one that does not exceed `probability`, a number in [0, 1]."""
        return cls(math.floor(_checked_fraction(probability) * _CERTAINTY))

    @classmethod
    def at_least(cls, probability: Fraction | float) -> "Probability":
        """The smallest one that is not below `probability`, a number in [0, 1]."""
        return cls(math.ceil(_checked_fraction(probability) * _CERTAINTY))

    @property
    def exact(self) -> Fraction:
        """The exact value."""
        return _as_fraction(self.threshold)

    @property
    def complement(self) -> "Probability":
        """Exactly one minus this."""
        return Probability(_CERTAINTY - self.threshold)


@lru_cache(maxsize=1024)
def _as_fraction(threshold: int) -> Fraction:
    """A multiple of 2**-64, cached: formulas use the same few again and again."""
    return Fraction(threshold, _CERTAINTY)


def exp_at_most(epsilon: float, share: Fraction = Fraction(1)) -> Fraction:
    """A rational just below exp(share * epsilon), for epsilon in [2**-10, 16], or BadParameter."""
    if not (isinstance(epsilon, int | float) and MIN_EPSILON <= epsilon <= MAX_EPSILON):
        raise BadParameter(f"epsilon {epsilon} is outside [{MIN_EPSILON}, {MAX_EPSILON}] nats")
    # PRIVACY: rounds the exponent down by more than exp's own error.
    return Fraction(math.exp(float(Fraction(epsilon) * share * (1 - _SLACK))))


def keep_at_most(epsilon: float) -> Probability:
    """The chance of the true one of two answers, just below e / (e + 1). Raises BadParameter."""
    odds = exp_at_most(epsilon)
    return Probability.at_most(odds / (odds + 1))  # PRIVACY: down, towards the fair coin


def log_at_least(ratio: Fraction, times: int = 1) -> float:
    """`times` the natural logarithm of a likelihood ratio >= 1, in nats, rounded up."""
    # log1p of the exact excess keeps its precision where the ratio is close to one.
    # PRIVACY: rounds up by more than the error of log1p and of the products.
    return times * math.log1p(float(ratio - 1)) * (1 + _LOG_ERROR)


def _checked_fraction(probability: Fraction | float) -> Fraction:
    # The comparison must pass for the number to be taken, so that NaN is refused.
    if not (isinstance(probability, Fraction | int | float) and 0 <= probability <= 1):
        raise BadParameter(f"probability {probability} is outside [0, 1]")
    return Fraction(probability)
