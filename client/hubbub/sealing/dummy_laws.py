"""Laws of the secret numbers of dummies, which hide a number of reports, or that of each value.

Of a number of reports, the law is two-sided geometric, drawn exactly. Reports and dummies are seen
together alone. One report more looks like one dummy more, and of two numbers of dummies that are
neighbours neither is more than `odds` as likely as the other; but for the last one on either side,
which has none beyond it, and whose chance is delta.

Each value has an independent number. If the values are the steps of a mean, the shuffler adds
dummies of the first and the last step, and one of a step between. They make the number of all
dummies constant, and the sum of their steps its mean plus one secret number from `of_sum`.

PRIVACY: the added dummies depend on two figures only: the sum of all numbers, and the sum of all
    steps minus the secret number. If one report names b in place of a, with one dummy of b less,
    one of a more, and a secret number that is smaller by b - a, both figures stay, and so does all
    that is seen. So an epoch reveals what two numbers of `each`, moved by one, and one of `of_sum`,
    moved by at most all steps, reveal together; hubbub.privacy.noise_dummies_account computes it.

Sources: Ghosh, Roughgarden, Sundararajan (STOC 2009), moved above zero and cut off on both sides;
Murakami, Sei, Eriguchi (IEEE S&P 2025) for independent numbers; correlated noise as in
Ghazi, Kumar, Manurangsi, Pagh, Sinha (ICML 2021), here added by the shuffler; the proof is above.
"""

from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import ceil, log, sqrt
from typing import Final, Self

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen

_BITS: Final = 32
_UNIT: Final = 1 << _BITS
# Largest odds, e^16.
_MAX_ODDS: Final = 8_900_000 * _UNIT
MAX_REACH: Final = 20_000
"""Largest number of dummies on either side of the mean."""
# For either end of a 95% interval: error probability, and standard errors.
_DOUBT: Final = 0.025
_PLAIN: Final = 1.96


@frozen()
class CountNoise:
    """A two-sided geometric law on [0, 2 `reach`]; neighbours' `odds` are above 1, in 2^-32."""

    odds: int
    reach: int

    def __post_init__(self) -> None:
        for name, low, high in (("odds", _UNIT + 1, _MAX_ODDS), ("reach", 1, MAX_REACH)):
            number = getattr(self, name)
            if type(number) is not int or not low <= number <= high:
                raise ValueError(f"{name} {number!a} is not a whole number in [{low}, {high}]")

    @classmethod
    def least(cls, odds: Fraction, delta: float) -> Self:
        """The distribution of smallest `reach` with at most this `delta`. Raises BadParameter.

        PRIVACY: odds are rounded down, and `delta` is computed from the integer weights that are
        drawn.
        """
        scaled_odds = int(odds * _UNIT)
        for reach in range(1, MAX_REACH + 1):
            noise = cls(scaled_odds, reach)
            if noise.delta <= delta:
                return noise
        raise BadParameter(
            f"odds of {float(odds):.4g} need too many dummies at delta {delta:g}; allow larger odds"
        )

    @property
    def most(self) -> int:
        """Largest number that can be drawn."""
        return 2 * self.reach

    @property
    def scale(self) -> float:
        """The scale s of the weights, which are proportional to exp(-|number - reach| / s)."""
        return 1 / log(self.odds / _UNIT)

    @property
    def weights(self) -> tuple[int, ...]:
        """Integer weights of the numbers 0 to 2 `reach`, proportional to their probabilities."""
        return _weights(self.odds, self.reach)

    @property
    def delta(self) -> Fraction:
        """Probability of the number 0, and equally of the largest number."""
        return Fraction(self.weights[0], sum(self.weights))

    @property
    def variance(self) -> float:
        """Variance of the number."""
        return _variance(self.odds, self.reach)

    def variance_above(self, above: int) -> float:
        """Variance of the number in an epoch that was released since reports and dummies sufficed.

        An epoch with few reports is released if many dummies are drawn, so one that barely passed
        may hold far fewer reports than it seems to. A 95% interval by this variance covers that
        case. `above` is by how many the sum of reports and dummies exceeded the minimum.
        """
        far_reach, plain_reach = (
            _largest_excess(self.odds, self.reach, bound) for bound in (above, self.most)
        )
        if far_reach <= plain_reach:
            return self.variance
        return max(self.variance, (far_reach / _PLAIN) ** 2)

    def draw(self, below: Callable[[int], int] | None = None) -> int:
        """Draws a number. `below(n)` returns a uniform number in [0, n); by default secret."""
        import secrets  # noqa: PLC0415 as in hubbub.sealing.hpke

        below = below or secrets.randbelow
        cumulative = list(accumulate(self.weights))
        return bisect_right(cumulative, below(cumulative[-1]))


@lru_cache(maxsize=256)
def _weights(odds: int, reach: int) -> tuple[int, ...]:
    # PRIVACY: from the ends inwards, rounded down, so that no quotient is above the odds.
    side = list(accumulate(range(reach), lambda weight, _: weight * odds >> _BITS, initial=_UNIT))
    return (*side, *side[-2::-1])


@lru_cache(maxsize=256)
def _variance(odds: int, reach: int) -> float:
    weights = _weights(odds, reach)
    square_sum = sum(w * (number - reach) ** 2 for number, w in enumerate(weights))
    return float(Fraction(square_sum, sum(weights)))


@lru_cache(maxsize=4096)
def _largest_excess(odds: int, reach: int, above: int) -> int:
    """How far above its mean the number may be (97.5%) in an epoch that passed by `above`."""
    upper = list(accumulate(reversed(_weights(odds, reach))))[::-1]
    return next(
        number - reach
        for number in range(2 * reach, -1, -1)
        if upper[number] >= _DOUBT * upper[max(number - max(above, 0), 0)]
    )


# Standard deviations of the sum of all numbers that the added dummies can cancel.
_FAR: Final = 8


@frozen()
class ValueNoise:
    """The law of the numbers of dummies of `values` values, 0 to `values` - 1.

    Args:
        each: law of the number of one value.
        of_sum: law of the sum of all dummies' steps, whose number is then constant; None if only
            independent numbers are drawn.
    """

    each: CountNoise
    values: int
    of_sum: CountNoise | None = None

    @property
    def ends(self) -> int:
        """Mean number of added dummies of the first step, and of the last; 0 without `of_sum`."""
        if self.of_sum is None:
            return 0
        spread = _FAR * sqrt(self.each.variance * self.values / 3)
        most = self.each.reach * self.values / 2
        return ceil(min(spread, most) + self.of_sum.reach / (self.values - 1)) + 2

    @property
    def expected(self) -> int:
        """Mean number of dummies of all values together."""
        return self.values * self.each.reach + 2 * self.ends

    @property
    def sealed(self) -> int:
        """How many dummies the shuffler seals, whatever numbers are drawn."""
        return sum(self.most)

    @property
    def number_variance(self) -> float:
        """Variance of the number of all dummies together."""
        return 0.0 if self.of_sum else self.values * self.each.variance

    @property
    def most(self) -> list[int]:
        """The largest number of dummies of each value."""
        numbers = [self.each.most + bool(self.of_sum)] * self.values
        for end in (0, -1):
            numbers[end] += 2 * self.ends
        return numbers

    def draw(self, number_of: Callable[[CountNoise], int] = CountNoise.draw) -> list[int]:
        """Draws the number of dummies of each value. `number_of` draws one number from a law."""
        numbers = [number_of(self.each) for _ in range(self.values)]
        if self.of_sum is None:
            return numbers
        surplus = [number - self.each.reach for number in numbers]
        missing = number_of(self.of_sum) - self.of_sum.reach
        missing -= sum(step * more for step, more in enumerate(surplus))
        upper, remainder = divmod(missing, self.values - 1)
        lower = -1 - sum(surplus) - upper
        for step, more in ((0, self.ends + lower), (-1, self.ends + upper)):
            numbers[step] += min(max(more, 0), 2 * self.ends)
        numbers[remainder] += 1
        return numbers
