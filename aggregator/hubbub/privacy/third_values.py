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

Where few reports are on each value, all counts are summed: z matters only by how many values are of
each kind of psi. Signals that are alike become one row, M. Let v be one of them, made as likely as
M, which is thus its mean; |v - M| is at most w, and its mean square at most s^2, for each L. For
any p, E max(p v, 0) = (p M + E|p v|) / 2, and E|p v| is at most the larger of |p M| and |p| w, as
|.| is convex, and at most the root of (p M)^2 + (|p| s)^2.
Source: hubbub's own, proven above.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, irfft2, next_fast_len, rfft, rfft2
from scipy.special import gammaln, xlogy

from hubbub.analysis.arrays import Floats, Mask
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

# All counts are summed of so many reports, of so many numbers on a value, and of so many values, at
# most; merged by the first of these shares that leaves so few rows.
_MAX_REPORTS: Final = 100
_SIZE: Final = 300
_FEW_VALUES: Final = 500
_ALIKE: Final = {0.1: 12_000, 0.2: 60_000}
# The same of the kinds of psi.
_ALIKE_KINDS: Final = 0.02
# Beside what is typical, by how much the mean and the variance of what a signal leaves open may
# differ if 3 standard deviations from the mean, chances do by a share of 1; widths differ by less
# than twice.
_MEANS: Final = 3
_VARIANCES: Final = 4
_MIN_WIDTH: Final = 1 / 64

_Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Signals:
    """What may be known of a number: for each signal, a row, chances of it and of each number.

    Alike signals are one row, their sum. With each made as likely as all of them, no chance differs
    by more than `width` from the row's `mean`, and the root of the mean square is `deviation`.
    """

    mean: Floats
    width: Floats
    deviation: Floats

    @classmethod
    def certain(cls, rows: Floats) -> Self:
        """Each row is one signal."""
        return cls(rows, *np.zeros((2, *rows.shape)))

    @classmethod
    def of(cls, parts: Iterable[Self], size: int) -> Self:
        """All rows of some, for numbers below `size`."""
        some = list(parts)
        tables, start = np.zeros((3, sum(len(part.mean) for part in some), size)), 0
        for part in some:
            end, columns = start + len(part.mean), part.mean.shape[1]
            tables[:, start:end, :columns] = part.mean, part.width, part.deviation
            start = end
        return cls(*tables)

    def __getitem__(
        self, some: slice | _Numbers | Mask | tuple[slice, slice | _Numbers]
    ) -> "Signals":
        return Signals(self.mean[some], self.width[some], self.deviation[some])

    def __mul__(self, factors: float | Floats) -> "Signals":
        """With other chances of each number."""
        return Signals(self.mean * factors, self.width * factors, self.deviation * factors)

    def plus(self, other: "Signals", size: int) -> "Signals":
        """Signals of the sum of the number and an independent one, of which `other` is one row."""
        columns = self.mean.shape[1]
        end = min(columns + other.mean.shape[1] - 1, size)
        mean, width, deviation = (table[:end, :columns].T for table in other.shifted)
        sums = self.mean @ mean
        return Signals(
            sums,
            np.maximum((self.mean + self.width) @ width - sums, 0.0),
            np.maximum((self.mean + self.deviation) @ deviation - sums, 0.0),
        )

    @cached_property
    def shifted(self) -> list[Floats]:
        """Of one row, chances of the sums with numbers of all reports, which are the columns."""
        tables = self.mean, self.mean + self.width, self.mean + self.deviation
        return [shifted_chances(chances[0], _MAX_REPORTS) for chances in tables]

    def merged(self, share: float) -> "Signals":
        """Rows whose chances differ by about this share become one."""
        sums, numbers = self.mean.sum(axis=1), np.arange(self.mean.shape[1])
        means = self.mean @ numbers / sums
        variances = np.maximum(self.mean @ numbers**2 / sums - means**2, 0.0)
        typical = max(float(variances @ sums) / float(sums.sum()), 1e-9)
        width = np.maximum(self.width.sum(axis=1) / sums, _MIN_WIDTH)
        kinds = np.array(
            [
                means / typical**0.5 * _MEANS / share,
                variances / typical * _VARIANCES / share,
                np.log2(width / _MIN_WIDTH),
            ]
        )
        keys = np.array([1 << 36, 1 << 8, 1]) @ np.round(kinds).astype(np.intp)
        _, kind = np.unique(keys, return_inverse=True)
        order = np.argsort(kind, kind="stable")
        starts = np.flatnonzero(np.diff(kind[order], prepend=-1))
        mean = np.add.reduceat(self.mean[order], starts)
        totals = mean.sum(axis=1)
        scales = (totals[kind] / sums)[:, None]
        apart = np.abs(self.mean * scales - mean[kind])
        width = np.maximum.reduceat((apart + self.width * scales)[order], starts)
        squares = (apart**2 + (self.deviation * scales) ** 2) / scales
        deviation = np.sqrt(np.add.reduceat(squares[order], starts))
        return Signals(mean, width, deviation)

    def gains(self, prior: Floats) -> Floats:
        """For each row of `prior`, and each of signals, at most the sum of what is above 0."""
        sizes, mean = np.abs(prior), prior @ self.mean.T
        width = sizes @ self.width.T
        gains = np.maximum(mean, 0.0)
        rows, columns = np.nonzero(width > np.abs(mean))
        mean, width = mean[rows, columns], width[rows, columns]
        deviation = (sizes @ self.deviation.T)[rows, columns]
        gains[rows, columns] = (mean + np.minimum(width, np.hypot(mean, deviation))) / 2
        return gains


@dataclass(frozen=True)
class AllCounts:
    """All counts, and chances of each L from 0 on; `mean` is that of L."""

    mean: float
    signals: Signals

    @classmethod
    def of(
        cls, law: Floats, values: int, theta: float, *, most: int, size: int, rare: float
    ) -> Self | None:
        """As `ThirdValues.of`, for L below `size`, without counts as `rare` as that.

        None if there are many counts.
        """
        if size > _MAX_REPORTS or len(law) + most > _SIZE or values > _FEW_VALUES:
            return None
        psi = shifted_chances(law, most + 1) * poisson(np.arange(most + 1.0), theta)
        kinds = Signals.certain(psi[psi.sum(axis=1) > rare / values]).merged(_ALIKE_KINDS)
        kinds = kinds[np.argsort(kinds.mean.sum(axis=1))]
        for share, max_rows in _ALIKE.items():
            counts = {0: Signals.certain(np.full((1, 1), kinds.mean.sum() ** values))}
            chances = kinds.mean.sum(axis=1)
            shares = chances / np.cumsum(chances[::-1])[::-1]
            for place, chance in enumerate(chances.tolist()):
                kind = kinds[place : place + 1] * (1 / chance)
                counts = _with_kind(counts, values, float(shares[place]), kind, size, rare, share)
                if sum(len(signals.mean) for signals in counts.values()) > max_rows:
                    break
            else:
                return cls(values * theta, Signals.of(counts.values(), size).merged(share))
        return None

    def views(self, on_third: Floats) -> Signals:
        """What may be known of each L, without what is impossible; beside how likely L is."""
        totals, numbers = poisson(on_third, self.mean), on_third.astype(np.intp)
        signals = self.signals[:, numbers]
        rest = np.diag(np.maximum(totals * (1 + 1e-11) - signals.mean.sum(axis=0), 0.0))
        return Signals.of([signals, Signals.certain(rest)], len(numbers)) * (1 / totals)


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

    def views(self, on_third: Floats) -> Signals:
        """As those of `AllCounts`."""
        chances, known = zip(*(block.views(on_third) for block in self.blocks), strict=True)
        views = np.concatenate([*chances, np.diag(sum(known))], axis=1)
        views = views[:, views.any(axis=0)]
        return Signals.certain(views.T / poisson(on_third, self.mean))


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


def _with_kind(  # noqa: PLR0917
    counts: dict[int, Signals],
    values: int,
    share: float,
    kind: Signals,
    size: int,
    rare: float,
    alike: float,
) -> dict[int, Signals]:
    """The same where this share of the values that are not counted yet, at random, are of a kind.

    Keys are how many values are counted.
    """
    sums = {used: signals.mean.sum(axis=1) for used, signals in counts.items()}
    steps: dict[int, list[tuple[int, int, float]]] = {}
    for used, chances_of_rows in sums.items():
        numbers = likely(values - used, share, rare).astype(np.intp)
        chances = pmf(numbers, values - used, share)
        for number, chance in zip(numbers.tolist(), chances.tolist(), strict=True):
            if chances_of_rows.max() * chance > rare:
                steps.setdefault(used + number, []).append((used, number, chance))
    powers, result = [Signals.certain(np.ones((1, 1)))], {}
    for total, parts in steps.items():
        some = []
        for used, number, chance in parts:
            while len(powers) <= number:
                power = powers[-1].plus(kind, size)
                last = np.flatnonzero(power.mean[0] >= _RARE * power.mean.max())[-1]
                powers.append(power[:, : last + 1])
            part = counts[used][sums[used] * chance > rare].plus(powers[number], size) * chance
            some.append(part[np.flatnonzero(part.mean.any(axis=1))])
        signals = Signals.of(some, max(part.mean.shape[1] for part in some))
        if len(signals.mean):
            result[total] = signals.merged(alike)
    return result
