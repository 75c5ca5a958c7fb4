"""How many dummies each value gets, beside the reports that name it, in secret.

Each value has a number of its own. Where the values are the steps of a mean, further dummies of the
first and the last step, and one between, fix how many dummies there are, and let the sum of their
steps vary by a law of its own: a mean then depends on that law alone.

PRIVACY: the further dummies depend on two figures only, the sum of all numbers, and the sum of all
    steps without what its law drew. If one report names b in place of a, one dummy of b less and
    one of a more, with a sum drawn smaller by b - a, leave both figures, and all that is seen, as
    they were. So an epoch reveals what two numbers of `each` and one of `of_sum`, moved by at most
    all steps, reveal together; hubbub.privacy.noisy_counts adds them up.

Source: Murakami, Sei, Eriguchi (IEEE S&P 2025) for independent numbers; correlated noise as in
Ghazi, Kumar, Manurangsi, Pagh, Sinha (ICML 2021), here added by the shuffler; the proof is above.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final

from hubbub.sealing.count_noise import CountNoise

# Standard deviations of the sum of all numbers that the further dummies make good.
_FAR: Final = 8


@dataclass(frozen=True, slots=True)
class ValueNoise:
    """The law of the numbers of dummies of `values` values, 0 to `values` - 1.

    Args:
        each: law of the number of one value.
        of_sum: law of the sum of all dummies' steps, whose number is then fixed; None if the
            numbers are independent.
    """

    each: CountNoise
    values: int
    of_sum: CountNoise | None = None

    @property
    def ends(self) -> int:
        """Mean number of further dummies of the first step, and of the last."""
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
