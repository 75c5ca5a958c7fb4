"""How many dummies hide how many reports there are: a two-sided geometric number, drawn exactly.

Reports and dummies are seen together alone. One report more looks like one dummy more, and of two
numbers of dummies that are neighbours neither is more than `odds` as likely as the other; but for
the last one on either side, which has none beyond it, and whose chance is delta.

Source: Ghosh, Roughgarden, Sundararajan (STOC 2009), moved above zero and cut off on both sides.
"""

import secrets
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import log
from typing import Final, Self

from hubbub.errors import BadParameter

_BITS: Final = 32
_ONE: Final = 1 << _BITS
# Of e^16 at most, and of so many dummies on either side of their mean.
_MAX_ODDS: Final = 8_900_000 * _ONE
_MAX_REACH: Final = 20_000
# Of either end of a 95% interval: how doubtful it is, and how many standard errors away.
_DOUBT: Final = 0.025
_PLAIN: Final = 1.96


@dataclass(frozen=True, slots=True)
class CountNoise:
    """The law of the number, in [0, 2 reach], around its mean.

    odds: in units of 2^-32, above one. reach: how far it is from its mean at most, which is as far.
    """

    odds: int
    reach: int

    def __post_init__(self) -> None:
        for name, low, high in (("odds", _ONE + 1, _MAX_ODDS), ("reach", 1, _MAX_REACH)):
            number = getattr(self, name)
            if type(number) is not int or not low <= number <= high:
                raise ValueError(f"{name} {number!a} is no whole number in [{low}, {high}]")

    @classmethod
    def least(cls, odds: Fraction, delta: float) -> Self:
        """With the fewest dummies that hide with these odds, except with probability delta.

        PRIVACY: odds are rounded down, and delta is of the numbers that are drawn.

        Raises:
            BadParameter: it takes more than may be.
        """
        whole = int(odds * _ONE)
        for reach in range(1, _MAX_REACH + 1):
            noise = cls(whole, reach)
            if noise.delta <= delta:
                return noise
        raise BadParameter(f"odds of {float(odds):.4g} take too many dummies at delta {delta:g}")

    @property
    def most(self) -> int:
        """The largest number that is drawn."""
        return 2 * self.reach

    @property
    def scale(self) -> float:
        """In exp(-|number - reach| / scale), what the weights are in proportion to."""
        return 1 / log(self.odds / _ONE)

    @property
    def weights(self) -> tuple[int, ...]:
        """How likely each number from 0 to the largest is, in whole parts of their sum."""
        return _weights(self.odds, self.reach)

    @property
    def delta(self) -> Fraction:
        """The chance of the last number of a side."""
        return Fraction(self.weights[0], sum(self.weights))

    @property
    def variance(self) -> float:
        """Of the number; its mean is `reach`."""
        off = sum(w * (number - self.reach) ** 2 for number, w in enumerate(self.weights))
        return float(Fraction(off, sum(self.weights)))

    def variance_above(self, above: int) -> float:
        """The variance to reckon with, given that reports and dummies were enough to leave.

        above: how many more than enough they were. An epoch with few reports leaves if many dummies
            are drawn, so of one that barely left there may be far fewer reports than without them.
            The law of the number, given that it is large enough, says how many fewer: a 95%
            interval by the square root of this holds them.
        """
        further, plain = (_furthest(self.odds, self.reach, bound) for bound in (above, self.most))
        return max(self.variance, (further / _PLAIN) ** 2) if further > plain else self.variance

    def draw(self, below: Callable[[int], int] = secrets.randbelow) -> int:
        """A number. below: a whole number below the one given, each as likely."""
        upto = list(accumulate(self.weights))
        return bisect_right(upto, below(upto[-1]))


@lru_cache(maxsize=256)
def _weights(odds: int, reach: int) -> tuple[int, ...]:
    # PRIVACY: from the ends inwards, rounded down, so that no quotient is above the odds.
    side = list(accumulate(range(reach), lambda weight, _: weight * odds >> _BITS, initial=_ONE))
    return (*side, *side[-2::-1])


@lru_cache(maxsize=4096)
def _furthest(odds: int, reach: int, above: int) -> int:
    """How far above its mean the number may be, of an epoch that left by so many."""
    upper = list(accumulate(reversed(_weights(odds, reach))))[::-1]
    return next(
        number - reach
        for number in range(2 * reach, -1, -1)
        if upper[number] >= _DOUBT * upper[max(number - max(above, 0), 0)]
    )
