"""Third values: what their counts reveal of how many even reports are on two others.

L even reports are on n third values, whose dummies have the law P. The chance of their counts z is

    g(z | L) = (psi_1 * ... * psi_n)(L) / Poisson(L; n theta),   psi(k) = P(z - k) Poisson(k; theta)

for any theta, where * is convolution: independent Poisson numbers are spread evenly if their sum is
known. For each z, psi is a sum of a(c, w) Binomial(k - c; w, 1/2), where w may be 0 and no a is
below 0. Let the adversary know c and w of each value, drawn in proportion to a. Then

    L = C + Binomial(W, 1/2)

with C and W the sums over all values. So W coins hide L, with the prior of C that the convolution
of a gives. Any a will do; it is found by taking from psi as much as possible, widest first. Fewer
coins hide less: blocks of W count as their least, and the other coins are given away.
The law of C is computed modulo a period, which adds chances and thus rounds up.

Where few reports are on each value, all counts are summed: z matters only by how often each kind of
psi occurs, and most are alike but for a factor. Neighbours that differ little become one kind, with
the largest and the least chances of each: one rounds up what v adds, the other what w takes.
Source: hubbub's own, proven above.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, irfft2, next_fast_len, rfft, rfft2
from scipy.special import gammaln, xlogy

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import likely, pmf

# The least w above 0, beside the variance of what a count leaves unknown; and the others.
_UNIT: Final = 0.6
_WIDTHS: Final[tuple[int, ...]] = tuple(range(10, 0, -1))
# Of more values one width will do: so many units.
_FEW: Final = 24
_ONE_WIDTH: Final = 6
# How much is taken from psi in each round, of what may be.
_SHARES: Final = (0.2, 0.2, 0.3, 0.3, 0.5, 0.5, 1.0)
# Where there are more third values, the reports on the others are given away.
_VALUES: Final = 1500
# Of the law of W, where blocks begin.
_QUANTILES: Final = (1e-9, 1e-6, 1e-4, 0.01, 0.1, 0.3, 0.6)
# Of W, the share of coins that are given away so that few C are needed; and how many of these C
# there are within a standard deviation of W coins.
_ROUNDED: Final = 0.1
_PLACES: Final = 3.0
# Of the largest of such chances: what is left out, since at the ends few places are near.
_RARE: Final = 1e-12
# What is added to each chance that comes out of a transform.
_FFT_ERROR: Final = 1e-14

# So many counts of so many reports, and of so many numbers on a value, are summed at most; of these
# numbers of kinds that allow it the least whose chances differ by hardly anything for all values
# together, or the most, if by little.
_COUNTS: Final = 50_000
_SIZE: Final = 300
_KINDS: Final = (80, 12, 10, 9, 8, 7, 6)
_EXACT: Final = 0.01
_LOOSE: Final = 0.1
# Beside how likely a single count is that is left out, all of them, of which L is given away.
_LEFT_OUT: Final = 20_000

_Numbers = npt.NDArray[np.intp]
_Kind = tuple[float, Floats, Floats, Floats]
"""How likely a kind of psi is; its mean, with the sum 1, and the largest and the least chances."""


@dataclass(frozen=True)
class AllCounts:
    """Chances of all counts, a row each, and of each L from 0 on; `mean` is that of L.

    There are three of each, since counts of the same kinds are summed: of all together, and the
    largest and the least of one, in proportion to how likely it is.
    """

    mean: float
    chances: tuple[Floats, Floats, Floats]

    @classmethod
    def of(
        cls, law: Floats, values: int, theta: float, *, most: int, size: int, rare: float
    ) -> Self | None:
        """As `ThirdValues.of`, for L below `size`, without counts as `rare` as that.

        None if there are many counts.
        """
        if max(size, len(law) + most) > _SIZE:
            return None
        kinds = [
            (float(psi.sum()), *(psi / psi.sum(),) * 3)
            for psi in shifted_chances(law, most + 1) * poisson(np.arange(most + 1.0), theta)
            if psi.any()
        ]
        best = None
        for number in _KINDS:
            kinds = _merged(kinds, number)
            looseness = values * sum(map(_looseness, kinds))
            if looseness > (_EXACT if best else _LOOSE):
                break
            chances = np.array([chance for chance, *_ in kinds])
            counts, probabilities = _likely_counts(chances, values, rare)
            if len(counts) and 1 - probabilities.sum() <= _LEFT_OUT * rare:
                weights = (probabilities * chances.sum() ** values)[:, None]
                best = kinds, counts, weights
        if best is None:
            return None
        kinds, counts, weights = best
        _, *shapes = zip(*kinds, strict=True)
        mean, largest, least = (weights * _sums(shape, counts, size) for shape in shapes)
        return cls(values * theta, (mean, largest, least))

    def views(self, on_third: Floats) -> tuple[Floats, Floats, Floats]:
        """For each L the chances of all that may be known, without what is impossible."""
        totals, numbers = poisson(on_third, self.mean), on_third.astype(np.intp)
        mean, largest, least = (chances[:, numbers].T for chances in self.chances)
        rest = np.diag(np.maximum(totals * (1 + 1e-11) - mean.sum(axis=1), 0.0))
        mean, largest, least = (
            np.concatenate([chances, rest], axis=1) / totals[:, None]
            for chances in (mean, largest, least)
        )
        return mean, largest, least


@dataclass(frozen=True)
class ThirdValues:
    """Blocks of W; `mean` is that of L, as a Poisson number."""

    mean: float
    blocks: tuple["CoinBlock", ...]

    @classmethod
    def of(cls, law: Floats, values: int, theta: float, most: int, period: int) -> Self:
        """Of this many values, with the law of each one's dummies.

        `most` is the largest probable number of reports on one value; C repeats after `period`.
        """
        listed, reach = min(values, _VALUES), len(law) // 2
        variance = float(law @ (np.arange(len(law)) - reach) ** 2)
        units, widths = (_ONE_WIDTH, (1,)) if values > _FEW else (1, _WIDTHS)
        unit = max(1, round(units * _UNIT * theta * variance / (theta + variance)))
        value_law = _part_sum(law, poisson(np.arange(most + 1.0), theta), unit, widths)
        period = next_fast_len(max(period, most + 1), real=True)
        padded = np.zeros((listed * widths[0] + 1, period))
        padded[: len(value_law), : most + 1] = value_law
        turns = np.exp(-2j * np.pi * np.arange(period // 2 + 1) / period)
        spectrum = rfft2(padded) ** listed * np.exp((values - listed) * theta * (turns - 1))
        chances = np.maximum(irfft2(spectrum, padded.shape), 0.0)
        cumulative = np.cumsum(chances.sum(axis=1))
        starts = np.union1d([0], np.searchsorted(cumulative, _QUANTILES)).tolist()
        blocks = []
        for start, end in zip(starts, [*starts[1:], len(padded)], strict=True):
            law_of_c = np.full(period, _FFT_ERROR)
            for number, row in enumerate(chances[start:end]):
                heads = np.arange(number * unit + 1)
                coins = np.bincount(heads % period, pmf(heads, number * unit, 0.5), period)
                law_of_c += np.maximum(irfft(rfft(row) * rfft(coins), period), 0.0)
            blocks.append(CoinBlock.of(start * unit, law_of_c))
        return cls(values * theta, tuple(blocks))

    def views(self, on_third: Floats) -> tuple[Floats, Floats, Floats]:
        """As those of `AllCounts`; here each is one by itself."""
        chances, known = zip(*(block.views(on_third) for block in self.blocks), strict=True)
        views = np.concatenate([*chances, np.diag(sum(known))], axis=1)
        views = views[:, views.any(axis=0)]
        return (views / poisson(on_third, self.mean)[:, None],) * 3


@dataclass(frozen=True)
class CoinBlock:
    """The least W of a block, and chances of C modulo their number.

    Few C are as good as all: with W = U + V,

        Binomial(L - c; W) = sum over all i of Binomial(i - c; U) Binomial(L - i; V)

    which is almost the same, times `step`, over each multiple i of `step`. For each c the share of
    this sum that is nowhere above the left side counts, as `shares` has it for each c modulo
    `step`; of the rest L is given away.
    """

    coins: int
    chances: Floats
    step: int
    shares: Floats

    @classmethod
    def of(cls, coins: int, chances: Floats) -> Self:
        """Of this least W, with the shares that its few C take."""
        step = max(1, int(coins**0.5 / 2 / _PLACES))
        if step == 1:
            return cls(coins, chances, step, np.ones(1))
        block = cls(coins, chances, step, np.ones(step))
        c = np.arange(step)
        numbers = np.arange(coins + step)
        all_places = block._heads(numbers, c, coins)
        starts = np.arange(0, coins + step, step)
        few_heads = block._heads(numbers, starts, block._hidden, _RARE) @ block._rounded(starts, c)
        has_few = few_heads > 0
        ratios = np.ones(few_heads.shape)
        ratios[has_few] = all_places[has_few] / few_heads[has_few]
        return cls(coins, chances, step, np.minimum(ratios.min(axis=0), 1.0) * (1 - 1e-9))

    def views(self, on_third: Floats) -> tuple[Floats, Floats]:
        """For each L the chances of each C; and that L itself is known."""
        c = np.arange(on_third.min() - self.coins, on_third.max() + 1).astype(np.intp)
        chances = self.chances[c % len(self.chances)]
        numbers = on_third.astype(np.intp)
        if self.step == 1:
            return self._heads(numbers, c, self.coins) * chances, np.zeros(len(numbers))
        first = -(-c[0] // self.step) * self.step
        starts = np.arange(first, c[-1] + self.coins - self._hidden + 1, self.step)
        visible = self._rounded(starts, c) @ (chances * self.shares[c % self.step])
        views = self._heads(numbers, starts, self._hidden, _RARE) * visible
        all_views = self._heads(numbers, c, self.coins) @ chances
        return views, np.maximum(all_views * (1 + 1e-9) - views.sum(axis=1), 0.0)

    @property
    def _hidden(self) -> int:
        return self.coins - int(_ROUNDED * self.coins)

    def _rounded(self, starts: _Numbers, c: _Numbers) -> Floats:
        """For each c, the chances of each start."""
        return self.step * self._heads(starts, c, self.coins - self._hidden, _RARE)

    @staticmethod
    def _heads(numbers: _Numbers, starts: _Numbers, coins: int, rare: float = 0.0) -> Floats:
        """Chances of each number if so many coins are added to each start, but for `rare` ones."""
        heads = numbers[:, None] - starts
        heads[(heads < 0) | (heads > coins)] = coins + 1
        chances = pmf(np.arange(coins + 1), coins, 0.5)
        chances[chances < rare * chances.max()] = 0.0
        result: Floats = np.append(chances, 0.0)[heads]
        return result


def poisson(numbers: Floats, mean: float) -> Floats:
    """Probabilities of these numbers."""
    result: Floats = np.exp(xlogy(numbers, mean) - mean - gammaln(numbers + 1))
    return result


def shifted_chances(law: Floats, numbers: int) -> Floats:
    """Chances of each sum of a number of this law and of 0, 1, 2, ... which are the columns."""
    indexes = np.arange(len(law) + numbers - 1)[:, None] - np.arange(numbers)
    is_inside = (indexes >= 0) & (indexes < len(law))
    return np.where(is_inside, law[np.clip(indexes, 0, len(law) - 1)], 0.0)


def _part_sum(law: Floats, reports: Floats, unit: int, widths: tuple[int, ...]) -> Floats:
    """The sum of a(c, w) over all z, for w in units and c: what the sum of psi is parted into."""
    k = np.arange(len(reports))
    remainder = shifted_chances(law, len(reports)) * reports
    middles = remainder @ k / np.maximum(remainder.sum(axis=1), 1e-300)
    parts = np.zeros((widths[0] + 1, len(reports)))
    reach = int(4 * unit**0.5) + 2
    for units in widths:
        width = units * unit
        coins = pmf(np.arange(width + 1), width, 0.5)
        first = np.round(middles - width / 2).astype(np.intp)
        for share in _SHARES:
            for offset in sorted(range(-reach, reach + 1), key=abs):
                starts = first + offset
                rows = np.flatnonzero((starts >= 0) & (starts + width < len(reports)))
                places = rows[:, None], starts[rows, None] + np.arange(width + 1)
                most = share * (remainder[places] / coins).min(axis=1, initial=1.0)
                remainder[places] = np.maximum(remainder[places] - most[:, None] * coins, 0.0)
                np.add.at(parts[units], starts[rows], most)
    parts[0] = remainder.sum(axis=0)
    return parts


def _looseness(kind: _Kind) -> float:
    chance, _, largest, least = kind
    return chance * float(largest.sum() - least.sum())


def _merged(kinds: list[_Kind], number: int) -> list[_Kind]:
    """At most so many kinds, of neighbours that are most alike."""

    def both(first: _Kind, other: _Kind) -> _Kind:
        chance = first[0] + other[0]
        mean = (first[0] * first[1] + other[0] * other[1]) / chance
        return chance, mean, np.maximum(first[2], other[2]), np.minimum(first[3], other[3])

    kinds = kinds.copy()
    pairs = [both(*pair) for pair in pairwise(kinds)]
    losses = [*map(_looseness, pairs)]
    while len(kinds) > number:
        place = int(np.argmin(losses))
        kinds[place : place + 2] = [pairs[place]]
        changed = slice(max(place - 1, 0), place + 2)
        pairs[changed] = [both(*pair) for pair in pairwise(kinds[changed])]
        losses[changed] = map(_looseness, pairs[changed.start : place + 1])
    return kinds


def _likely_counts(chances: Floats, values: int, rare: float) -> tuple[_Numbers, Floats]:
    """How many of the values are of each kind, and how likely that is; none if there are many."""
    order = np.argsort(chances)
    counts, probabilities, other_chances = np.zeros((1, 0), dtype=np.intp), np.ones(1), 1.0
    for chance in (chances[order[:-1]] / chances.sum()).tolist():
        rest, places = np.unique(values - counts.sum(axis=1), return_inverse=True)
        number = likely(values, chance, rare).astype(np.intp)
        each = pmf(number, rest[:, None], min(chance / other_chances, 1.0))[places]
        each *= probabilities[:, None]
        row, column = np.nonzero(each > rare)
        if len(row) > _COUNTS:
            return counts[:0], probabilities[:0]
        counts = np.column_stack([counts[row], number[column]])
        probabilities, other_chances = each[row, column], other_chances - chance
    counts = np.column_stack([counts, values - counts.sum(axis=1)])
    return counts[:, np.argsort(order)], probabilities


def _sums(kinds: Iterable[Floats], counts: _Numbers, size: int) -> Floats:
    """For each row of counts, chances of 0 to `size` - 1 reports on all values together."""
    sums = np.zeros((len(counts), size))
    sums[:, 0] = 1.0
    for kind, numbers in zip(kinds, counts.T, strict=True):
        power = np.ones(1)
        for number in range(1, numbers.max(initial=0) + 1):
            power = np.convolve(power, kind)[:size]
            some = numbers == number
            sums[some] = sums[some] @ shifted_chances(power, size)[:size].T
    return sums
