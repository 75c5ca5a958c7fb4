"""Third values: what their counts reveal of how many even reports are on two others.

L even reports are on n third values, whose dummies have the law P. The chance of their counts z is

    g(z | L) = (psi_1 * ... * psi_n)(L) / Poisson(L; n theta),   psi(k) = P(z - k) Poisson(k; theta)

for any theta, where * is convolution: independent Poisson numbers are spread evenly if their sum is
known. For each z, psi is a sum of a(c, w) Binomial(k - c; w, h), where w may be 0 and no a is
below 0. Let the adversary know c and w of each value, drawn in proportion to a. Then

    L = C + Binomial(W, h)

with C and W the sums over all values. So W coins hide L, with the prior of C that the convolution
of a gives. Any a and h will do; a is found by taking from psi as much as possible, widest first,
and of some h that counts whose coins vary most. Fewer coins hide less: blocks of W count as their
least, and the other coins are given away.
Where reports on a value are few, the widest coins lose much of the values with z up to the mode of
P, most of which have 0 reports, and few 1: psi is alike for all of them. Instead, such a value has
one rare coin, with another chance of heads h', whenever psi(0) and psi(1) allow it. Of n values J
have no rare coin, nearly always at most n - V. Then

    L = C' + Binomial(V, h') + Binomial(W, h)

where the law of C' is that of C, rare coins included, divided by Binomial(V, h'). Where J is more
than n - V, this divides by J - n + V coins that are not there, each of which multiplies the sum of
all sizes of chances by at most 1 / (1 - 2 h'). V is so small that for some e^u above that
E e^(u (J - n + V)) is less than the transform's errors.
C' is computed modulo a period, which adds chances and thus rounds up. So is W, whose period is
exceeded as rarely. In all these cases L is given away: each L is, so often as errors may add up to.

Where few reports are on each value, all counts are summed: z matters only by how many values are of
each kind of psi. Signals that are alike become one row, M. Let v be one of them, made as likely as
M, which is thus its mean; |v - M| is at most w, and its mean square at most s^2, for each L. For
any p, E max(p v, 0) = (p M + E|p v|) / 2, and E|p v| is at most the larger of |p M| and |p| w, as
|.| is convex, and at most the root of (p M)^2 + (|p| s)^2. Of two independent numbers, with means
M and N, v w - M N is M (w - N) + (v - M) w, where both parts are 0 on average and uncorrelated: the
mean square is at most the sum of those of M * t and s * (N + t).
Source: hubbub's own, proven above.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, irfft2, next_fast_len, rfft, rfft2
from scipy.special import gammaln, xlogy

from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.binomials import likely, pmf
from hubbub.privacy.shuffled_epoch import FFT_ERROR

# The least w above 0, beside the variance of what a count leaves unknown; and the others.
_UNIT: Final = 0.6
_WIDTHS: Final[tuple[int, ...]] = tuple(range(10, 0, -1))
# Some h, the chances of heads; and the largest h'.
_HEADS: Final = (0.35, 0.45, 0.5)
_MAX_RARE: Final = 0.25
# How much is taken from psi in each round, of what may be.
_SHARES: Final = (0.2, 0.2, 0.3, 0.3, 0.5, 0.5, 1.0)
# Where there are more third values, the reports on the others are given away.
_VALUES: Final = 6000
# For Chernoff's bound of how large W becomes.
_TILTS: Final = np.geomspace(1e-3, 5, 99)[:, None]
# Of the law of W, where blocks begin.
_QUANTILES: Final = (*np.logspace(-16, -2, 8), *np.linspace(0.05, 0.95, 10))
# Of the largest of such chances: what is left out, since at the ends few places are near.
_RARE: Final = 1e-17

# All counts are summed of so many reports, and of so many numbers on a value, at most; merged by
# the first of these shares that leaves so few rows. Where reports times values are more than
# `_CELLS`, coins are closer than large shares.
_MAX_REPORTS: Final = 100
_SIZE: Final = 300
_CELLS: Final = 60_000
_ALIKE: Final = {0.03: 3_000, 0.1: 3_000, 0.2: 30_000}
_ALIKE_OF_MANY: Final = {0.03: 20_000}
# By how much more rows are merged that are less than so many times as likely as what is left out.
_COARSE: Final = 4.0
_FREQUENT: Final = 1e5
# The same of the kinds of psi.
_ALIKE_KINDS: Final = 0.05
# Beside what is typical, by how much the mean and the variance of what a signal leaves open may
# differ if 3 standard deviations from the mean, chances do by a share of 1; widths differ by less
# than twice.
_MEANS: Final = 3
_VARIANCES: Final = 4
_MIN_WIDTH: Final = 1 / 64

# Of chances of rows: what stays in a processor's cache while it is merged.
_AT_ONCE: Final = 1 << 15

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
        """Signals of the sum of the number and an independent one, of which `other` is one row.

        What both differ by is independent, and 0 on average, so mean squares add up.
        """
        columns = self.mean.shape[1]
        end = min(columns + other.mean.shape[1] - 1, size)
        mean, width, deviation = (
            shifted_chances(table[0], columns)[:end].T
            for table in (other.mean, other.mean + other.width, other.deviation)
        )
        sums = self.mean @ mean
        return Signals(
            sums,
            np.maximum((self.mean + self.width) @ width - sums, 0.0),
            np.hypot(self.mean @ deviation, self.deviation @ (mean + deviation)),
        )

    def merged(self, share: float) -> "Signals":
        """Rows whose chances differ by about this share become one."""
        merged, _ = self.merged_apart(np.zeros(len(self.mean), dtype=np.intp), share, 0.0)
        return merged

    def merged_apart(
        self, groups: _Numbers, share: float, rare: float
    ) -> tuple["Signals", _Numbers]:
        """The same within groups of rows; and the group of each row that results.

        Rows that are as `rare` as that hardly matter, and are merged more.
        """
        sums, numbers = self.mean.sum(axis=1), np.arange(self.mean.shape[1])
        means = self.mean @ numbers / sums
        variances = np.maximum(self.mean @ numbers**2 / sums - means**2, 0.0)
        group_sums, in_groups = (np.bincount(groups, row) for row in (sums, variances * sums))
        typical = np.maximum(in_groups[groups] / group_sums[groups], 1e-9)
        width = np.maximum(self.width.sum(axis=1) / sums, _MIN_WIDTH)
        shares = np.where(sums > rare, share, _COARSE * share)
        kinds = np.round(
            [
                means / typical**0.5 * _MEANS / shares,
                variances / typical * _VARIANCES / shares,
                np.log2(width / _MIN_WIDTH),
                sums > rare,
                groups,
            ]
        )
        order = np.lexsort(kinds)
        differs = np.diff(kinds[:, order], prepend=-1).any(axis=0)
        starts, row_of = np.flatnonzero(differs), np.cumsum(differs) - 1
        scales = (np.add.reduceat(sums[order], starts)[row_of] / sums[order])[:, None]
        tables = np.empty((3, len(starts), len(numbers)))
        ends = np.append(starts, len(order))
        for part in np.array_split(np.arange(len(starts)), 1 + self.mean.size // _AT_ONCE):
            if len(part):
                rows = slice(ends[part[0]], ends[part[-1] + 1])
                some, scale, first = self[order[rows]], scales[rows], starts[part] - rows.start
                mean = np.add.reduceat(some.mean, first)
                apart = np.abs(some.mean * scale - mean[row_of[rows] - part[0]])
                width = np.maximum.reduceat(apart + some.width * scale, first)
                squares = (apart**2 + (some.deviation * scale) ** 2) / scale
                tables[:, part] = mean, width, np.sqrt(np.add.reduceat(squares, first))
        return Signals(*tables), groups[order][starts]

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
        if size > _MAX_REPORTS or len(law) + most > _SIZE:
            return None
        psi = shifted_chances(law, most + 1) * poisson(np.arange(most + 1.0), theta)
        kinds = Signals.certain(psi[psi.sum(axis=1) > rare / values]).merged(_ALIKE_KINDS)
        kinds = kinds[np.argsort(kinds.mean.sum(axis=1))]
        kind_chances = kinds.mean.sum(axis=1)
        shares = kind_chances / np.cumsum(kind_chances[::-1])[::-1]
        for alike, max_rows in (_ALIKE if values * size <= _CELLS else _ALIKE_OF_MANY).items():
            used = np.zeros(1, dtype=np.intp)
            signals = Signals.certain(np.full((1, 1), kind_chances.sum() ** values))
            for place, chance in enumerate(kind_chances.tolist()):
                kind = kinds[place : place + 1] * (1 / chance)
                signals, used = _with_kind(
                    signals, used, values, float(shares[place]), kind, size, rare, alike
                )
                if len(used) > max_rows:
                    break
            else:
                return cls(values * theta, signals)
        return None

    def views(self, on_third: Floats) -> Signals:
        """What may be known of each L, without what is impossible; beside how likely L is."""
        totals, numbers = poisson(on_third, self.mean), on_third.astype(np.intp)
        signals = self.signals[:, numbers]
        unexplained = np.diag(np.maximum(totals * (1 + 1e-11) - signals.mean.sum(axis=0), 0.0))
        return Signals.of([signals, Signals.certain(unexplained)], len(numbers)) * (1 / totals)


@dataclass(frozen=True)
class OneThirdValue:
    """The law of the dummies of the only third value, whose count is that of L and these."""

    dummy_law: Floats

    def views(self, on_third: Floats) -> Signals:
        """For each count its chance for each L, which are in descending order without gaps."""
        return Signals.certain(shifted_chances(self.dummy_law, len(on_third))[:, ::-1])


@dataclass(frozen=True)
class ThirdValues:
    """Blocks of W; `mean` is that of L, as a Poisson number, `rare_law` that of V coins."""

    mean: float
    blocks: tuple["CoinBlock", ...]
    rare_law: Floats

    @classmethod
    def of(cls, law: Floats, values: int, theta: float, most: int, period: int) -> Self:
        """Of this many values, with the law of each one's dummies.

        `most` is the largest probable number of reports on one value; C repeats after `period`.
        """
        listed, reach = min(values, _VALUES), len(law) // 2
        variance = float(law @ (np.arange(len(law)) - reach) ** 2)
        unit = max(1, round(_UNIT * theta * variance / (theta + variance)))
        psi = shifted_chances(law, most + 1) * poisson(np.arange(most + 1.0), theta)
        rare = min(float(psi[reach, 1] / psi[reach, :2].sum()), _MAX_RARE)
        widths = np.arange(_WIDTHS[0] + 1)

        def coin_variance(option: tuple[int, float, Floats]) -> float:
            rare_count, heads, parts = option
            coins = listed * unit * float(widths @ parts.sum(axis=1))
            return coins * heads * (1 - heads) + rare_count * rare * (1 - rare)

        options = [
            (rare_count, heads, _part_sum(psi, first_row, unit, heads))
            for rare_count, first_row in (
                (0, 0),
                (_certain_coins(psi[: reach + 1, :2], rare, listed), reach + 1),
            )
            for heads in _HEADS
        ]
        rare_count, heads, value_law = max(options, key=coin_variance)
        period = next_fast_len(max(period, most + 1), real=True)
        growth = np.log(np.exp(_TILTS * widths) @ value_law.sum(axis=1))
        max_units = float(((listed * growth[:, None] - np.log(FFT_ERROR / 2)) / _TILTS).min())
        padded = np.zeros((next_fast_len(int(max_units) + len(widths), real=True), period))
        padded[: len(widths), : most + 1] = value_law
        turns = np.exp(-2j * np.pi * np.arange(period // 2 + 1) / period)
        rare_turns = (1 - rare + rare * turns) ** (rare_count / listed)
        spectrum = (rfft2(padded) / rare_turns) ** listed
        spectrum *= np.exp((values - listed) * theta * (turns - 1))
        chances = np.maximum(irfft2(spectrum, padded.shape), 0.0)
        cumulative = np.cumsum(chances.sum(axis=1))
        starts = np.union1d([0], np.searchsorted(cumulative, _QUANTILES)).tolist()
        # Of so many coins, which are given away, the law is (1 - heads + heads * turn) ** coins.
        lengths = np.diff(np.append(starts, len(padded)))
        coins = (np.arange(len(padded)) - np.repeat(starts, lengths))[:, None] * unit
        with_coins = rfft(chances) * (1 - heads + heads * turns) ** coins
        laws_of_c = irfft(np.add.reduceat(with_coins, starts), period)
        blocks = [
            CoinBlock(start * unit, heads, np.maximum(law_of_c, 0.0) + FFT_ERROR)
            for start, law_of_c in zip(starts, laws_of_c, strict=True)
        ]
        rare_most = likely(rare_count, rare, FFT_ERROR / 8)[-1]
        return cls(values * theta, tuple(blocks), pmf(np.arange(rare_most + 1), rare_count, rare))

    def views(self, on_third: Floats) -> Signals:
        """As those of `AllCounts`."""
        parts = [block.views(on_third, self.rare_law) for block in self.blocks]
        # For what transforms may be off by, L is given away so often.
        views = np.concatenate([FFT_ERROR * np.eye(len(on_third)), *parts], axis=1)
        views = views[:, views.any(axis=0)]
        return Signals.certain(views.T / poisson(on_third, self.mean))


@dataclass(frozen=True)
class CoinBlock:
    """The least W of a block, h, and chances of C' modulo their number."""

    coins: int
    heads: float
    chances: Floats

    def views(self, on_third: Floats, rare_law: Floats) -> Floats:
        """For each L the chances of each C'."""
        coins = pmf(np.arange(self.coins + 1), self.coins, self.heads)
        heads = np.append(np.convolve(coins, rare_law), 0.0)
        c = np.arange(on_third.min() - len(heads) + 2, on_third.max() + 1)
        numbers = (on_third[:, None] - c).astype(np.intp)
        numbers[(numbers < 0) | (numbers >= len(heads))] = len(heads) - 1
        views: Floats = heads[numbers] * self.chances[c.astype(np.intp) % len(self.chances)]
        return views


def poisson(numbers: Floats, mean: float) -> Floats:
    """Probabilities of these numbers."""
    result: Floats = np.exp(xlogy(numbers, mean) - mean - gammaln(numbers + 1))
    return result


def shifted_chances(law: Floats, numbers: int) -> Floats:
    """Chances of each sum of a number of this law and of 0, 1, 2, ... which are the columns."""
    indexes = np.arange(len(law) + numbers - 1)[:, None] - np.arange(numbers)
    is_inside = (indexes >= 0) & (indexes < len(law))
    return np.where(is_inside, law[np.clip(indexes, 0, len(law) - 1)], 0.0)


def _certain_coins(psi: Floats, rare: float, values: int) -> int:
    """V: how many of the values have a rare coin, but with a chance below the transform's errors.

    `psi` has a row for each z that may have a rare coin, of the chances of 0 and 1.
    """
    chance = float((psi / (1 - rare, rare)).min(axis=1).sum())
    tilts = _TILTS[-np.log(1 - 2 * rare) <= _TILTS]
    growth = values * np.log(chance + (1 - chance) * np.exp(tilts))
    without = float(((growth - np.log(FFT_ERROR / 8)) / tilts).min())
    return max(values - 1 - int(without), 0)


def _part_sum(psi: Floats, first_row: int, unit: int, heads: float) -> Floats:
    """The sum of a(c, w) over all z, for w in units and c: what the sum of psi is parted into.

    Rows of psi before `first_row` get no coins.
    """
    k = np.arange(psi.shape[1])
    certain, remainder = psi[:first_row].sum(axis=0), psi[first_row:].copy()
    middles = remainder @ k / np.maximum(remainder.sum(axis=1), 1e-300)
    parts = np.zeros((_WIDTHS[0] + 1, len(k)))
    reach = int(4 * unit**0.5) + 2
    for units in _WIDTHS:
        width = units * unit
        coins = pmf(np.arange(width + 1), width, heads)
        first = np.round(middles - width * heads).astype(np.intp)
        for share in _SHARES:
            for offset in sorted(range(-reach, reach + 1), key=abs):
                starts = first + offset
                rows = np.flatnonzero((starts >= 0) & (starts + width < len(k)))
                places = rows[:, None], starts[rows, None] + np.arange(width + 1)
                most = share * (remainder[places] / coins).min(axis=1, initial=1.0)
                remainder[places] = np.maximum(remainder[places] - most[:, None] * coins, 0.0)
                np.add.at(parts[units], starts[rows], most)
    parts[0] = certain + remainder.sum(axis=0)
    return parts


def _with_kind(  # noqa: PLR0917
    signals: Signals,
    used: _Numbers,
    values: int,
    share: float,
    kind: Signals,
    size: int,
    rare: float,
    alike: float,
) -> tuple[Signals, _Numbers]:
    """The same where this share of the values that are not counted yet, at random, are of a kind.

    `used` is how many values are counted, of each row.
    """
    sums, power = signals.mean.sum(axis=1), Signals.certain(np.ones((1, 1)))
    parts, counted = [], []
    for number_of_kind in range(values - int(used.min()) + 1):
        chances = pmf(number_of_kind, values - used, share)
        rows = np.flatnonzero(sums * chances > rare)
        if len(rows):
            part = (signals[rows] * chances[rows, None]).plus(power, size)
            some = np.flatnonzero(part.mean.any(axis=1))
            parts.append(part if len(some) == len(rows) else part[some])
            counted.append((used[rows] + number_of_kind)[some])
        elif counted:
            break
        power = power.plus(kind, size)
        power = power[:, : np.flatnonzero(power.mean[0] >= _RARE * power.mean.max())[-1] + 1]
    together = Signals.of(parts, max(part.mean.shape[1] for part in parts))
    parts.clear()  # half of all memory
    return together.merged_apart(np.concatenate(counted), alike, _FREQUENT * rare)
