"""The secret numbers of dummies of each value.

Each value has an independent number. If the values are the steps of a mean, the shuffler adds
dummies of the first and the last step, and one of a step between. They make the number of all
dummies constant, and the sum of their steps its mean plus one secret number from `of_sum`.

PRIVACY: the added dummies depend on two figures only: the sum of all numbers, and the sum of all
    steps minus the secret number. If one report names b in place of a, with one dummy of b less,
    one of a more, and a secret number that is smaller by b - a, both figures stay, and so does all
    that is seen. So an epoch reveals what two numbers of `each`, moved by one, and one of `of_sum`,
    moved by at most all steps, reveal together; hubbub.privacy.noise_dummies_account computes it.

Source: Murakami, Sei, Eriguchi (IEEE S&P 2025) for independent numbers; correlated noise as in
Ghazi, Kumar, Manurangsi, Pagh, Sinha (ICML 2021), here added by the shuffler; the proof is above.
"""

from collections.abc import Callable
from math import ceil, sqrt
from typing import Final

from hubbub.fields.frozen import frozen
from hubbub.sealing.count_dummy_law import CountNoise

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
        upper, rest = divmod(missing, self.values - 1)
        lower = -1 - sum(surplus) - upper
        for step, more in ((0, self.ends + lower), (-1, self.ends + upper)):
            numbers[step] += min(max(more, 0), 2 * self.ends)
        numbers[rest] += 1
        return numbers
