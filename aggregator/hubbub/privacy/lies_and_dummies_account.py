"""Noise dummies and lies, for three values or more: what an epoch reveals of one person.

As in hubbub.privacy.shuffled_histogram the adversary knows which of the others lied; with the
person's own, T even reports remain, whatever the others hold. Let f_T be the law of all counts of T
even reports and the dummies. Of these x' are on v and y' on w, L = T - s on third values. A person
with v lies, with probability d q, and otherwise one of the T is on v:

    (1 - d q) f_{T-1}(counts less one on v) + d q f_T(counts)
        = sum over s of Bin(s; T, 2/d) g(z | L) E[((1 - d q) d x' / T + d q) P(x - x') P(y - y')]

with x' = Bin(s, 1/2), y' = s - x' and the dummies' law P; for w, y' takes the place of x'. Third
values' counts z show L by their chance g only: hubbub.privacy.third_values_account, and, where few
reports are on each, hubbub.privacy.third_means_account give what they show at most. Of one third
value, or few reports on two, all z are summed. delta, the sum of what v exceeds t times w by, is
thus a product of two matrices: x and y by s, and s by what is known of L.

A larger T or s reveals less, so blocks count as their least. Where the matrices are large, L is
given away, too. Rows x <= y do not count, since there w is likelier.
Source: hubbub's own, proven above; tests enumerate small epochs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats, Mask
from hubbub.analysis.binomials import binomial_tail, likely, likely_ends, pmf
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.third_means_account import ThirdMeans
from hubbub.privacy.third_values_account import (
    AllCounts,
    OneThirdValue,
    Signals,
    ThirdValues,
    shifted_chances,
)
from hubbub.privacy.two_values_account import TAILS

# Each chance is a product of a few that are right to 1e-10.
_ROUNDING: Final = 1e-9
# So wide is a block of T, beside T; and how many there are at most, and where L is given away.
_BLOCK: Final = 0.01
_BLOCKS: Final = 64
_FEW_BLOCKS: Final = 12
# Of x, y and s together; and so many blocks of s are needed at least.
_NUMBERS: Final = 16_000_000
_MIN_BLOCKS: Final = 2
# Of rows and s: what stays in a processor's cache while it is summed.
_AT_ONCE: Final = 1 << 15
# Of what is known of L, fewer than so many signals are kept apart; of more, those count as one that
# differ by about the first of these shares that leaves fewer.
_ALIKE: Final = (0.05, 0.1, 0.2, 0.4)
_FEW: Final = 1000
# Of what is asked about, what rows may add whose counts of third values are not used.
_CLOSE: Final = 5e-3
# Of `cut`, how likely a count of third values is that is left out.
_RARE: Final = 0.1

_Third = OneThirdValue | ThirdMeans | ThirdValues | AllCounts


@dataclass(frozen=True, kw_only=True)
class NoisyLies:
    """The account of one epoch.

    Args:
        dummy_law: probabilities of 0, 1, 2, ... dummies of one value.
        numbers: all probable s, of which `starts` begin blocks.
        pair_chances: for each (x, y) and block's least s, the expectation of P P.
        chances_times_x: the same times x'.
        ratios: for each (x, y) the largest mean share of x' in s, in descending order.
        outside: for each block's least s, the probability of x' that are left out.
        cut: probability of what else is left out, four times.
    """

    crowd: ShuffledEpoch
    dummy_law: Floats
    numbers: Floats
    starts: npt.NDArray[np.intp]
    pair_chances: Floats
    chances_times_x: Floats
    ratios: Floats
    outside: Floats
    cut: float

    @classmethod
    def of(cls, crowd: ShuffledEpoch, law: Floats, delta: float) -> Self | None:
        """The account, valid down to `delta`; None if it would take long."""
        cut = delta * TAILS
        # One more may be the person's own.
        on_both, on_one = (_probable(crowd.others, k * crowd.lie, cut) for k in (2, 1))
        numbers = np.append(on_both, on_both[-1] + 1)
        low, high = on_one[0], on_one[-1] + 1
        size = int(high - low) + len(law)
        if size**2 * min(len(numbers), _MIN_BLOCKS) > _NUMBERS:
            return None
        block_size = -(-len(numbers) * size**2 // _NUMBERS)
        starts = np.union1d([0], np.arange(min(1, block_size - 1), len(numbers), block_size))
        moves = shifted_chances(law, int(high - low) + 1)
        outside = np.empty(len(starts))
        below_diagonal = np.tril_indices(size, -1)
        pair_chances, times_x = np.empty((2, len(starts), len(below_diagonal[0])))
        for place, s in enumerate(numbers[starts].tolist()):
            x = np.arange(max(low, s - high), min(high, s - low) + 1)
            on_v = moves[:, (x - low).astype(np.intp)] * pmf(x, s, 0.5)
            on_w = moves[:, (s - x - low).astype(np.intp)].T
            pair_chances[place] = (on_v @ on_w)[below_diagonal]
            times_x[place] = ((on_v * x) @ on_w)[below_diagonal]
            outside[place] = 2 * binomial_tail(s - max(low, s - high), s, 0.5)
        account = cls(
            crowd=crowd,
            dummy_law=law,
            numbers=numbers,
            starts=starts,
            pair_chances=pair_chances.T,
            chances_times_x=times_x.T,
            ratios=np.zeros(0),
            outside=outside,
            cut=cut,
        )
        pair_chances, times_x = (
            table[account._some_rows()] for table in (account.pair_chances, account.chances_times_x)
        )
        each = np.maximum(numbers[starts], 1) * pair_chances
        ratios = np.divide(times_x, each, out=np.zeros(each.shape), where=each > 0).max(axis=1)
        order = np.argsort(-ratios)
        return replace(
            account,
            pair_chances=pair_chances[order],
            chances_times_x=times_x[order],
            ratios=ratios[order],
        )

    def delta(self, central: float, target: float) -> float:
        """Hockey-stick divergence at exp(central), rounded up.

        L is hidden where that decides whether it is at most `target`.
        """
        t, upper, lower = exp(central), 0.0, 0.0
        for even_count, weight, chances in self._blocks(_FEW_BLOCKS):
            sums, positive_sums = self._sums(t, even_count, chances)
            lower += float(np.maximum(sums, 0.0).sum())
            upper += float(positive_sums.sum()) + self._omitted_mass(even_count, weight, chances)
        upper += 4 * self.cut
        if upper <= target or lower > target or len(self.starts) < len(self.numbers):
            return upper
        for third in self._thirds():
            if third and upper > target:
                upper = min(upper, self._between(t, target, third))
        return upper

    def _omitted_mass(self, even_count: float, weight: float, chances: Floats) -> float:
        """Probability of s and x' that are not summed, if the person holds v."""
        numbers, share = self.numbers, 2 / self.crowd.categories
        lower_tail = float(binomial_tail(even_count - numbers[0], even_count, 1 - share))
        upper_tail = float(binomial_tail(numbers[-1] - 1, even_count - 1, share))
        return weight * (lower_tail + upper_tail) + float(
            self._mass(even_count) * chances @ self.outside
        )

    def _mass(self, even_count: float) -> Floats:
        """For each s, how much likelier v makes it at most, beside an even draw."""
        gain, _ = self._factors(1.0, even_count)
        return gain * self.numbers[self.starts] + 1

    def _some_rows(self) -> Mask:
        """Rows without those whose chances are at most `cut` together, for all that is summed."""
        mask = np.zeros(len(self.pair_chances), dtype=bool)
        for even_blocks in (self._blocks(_FEW_BLOCKS), self._some_blocks):
            on_times_x, on_chances = np.zeros((2, len(self.starts)))
            for even_count, _, chances in even_blocks:
                gain, _ = self._factors(1.0, even_count)
                on_times_x += gain * chances
                on_chances += chances
            row_chances = self.chances_times_x @ on_times_x + self.pair_chances @ on_chances
            mask |= row_chances > self.cut / len(mask)
        return mask

    def _between(self, t: float, target: float, third: _Third) -> float:
        """The same with what is known of L, but for T and rows where it hardly matters."""
        result, gains = 4 * self.cut, []
        for place, (even_count, weight, chances) in enumerate(self._some_blocks):
            sums, upper = self._sums(t, even_count, chances)
            result += self._omitted_mass(even_count, weight, chances) + float(upper.sum())
            most = upper - np.maximum(sums, 0.0)
            gains.append((float(most.sum()), place, upper, most))
        remaining = sum(gain for gain, *_ in gains)
        for gain, place, upper, most in sorted(gains, key=lambda row: -row[0]):
            if result <= target or result - remaining > target or remaining < _CLOSE * target:
                break
            remaining -= gain
            rows = np.flatnonzero(most > _CLOSE * target / most.size / len(self._some_blocks))
            key = type(third), place
            if key not in self._views:
                self._views[key] = self._view(place, third)
            excess = self._excess_over(t, self._some_blocks[place][0], rows)
            if isinstance(third, ThirdMeans):  # whose terms above 0 are the last
                is_last = np.maximum.accumulate(excess > 0, axis=1)
                excess[is_last] = np.maximum(excess[is_last], 0.0)
            result += float(self._views[key].gains(excess).sum() - upper[rows].sum())
        return result

    def _sums(self, t: float, even_count: float, chances: Floats) -> tuple[Floats, Floats]:
        """Sums over s, for each row, of what v exceeds t times w by; and of what is above 0."""
        # In other rows w is likelier.
        end = int(np.searchsorted(-self.ratios, -t / (1 + t) * (1 - 1e-8)))
        sums, positive_sums = np.empty((2, end))
        step = max(1, _AT_ONCE // len(chances))
        for start in range(0, end, step):
            rows = slice(start, min(start + step, end))
            excess = self._excess_over(t, even_count, rows)
            sums[rows] = excess @ chances
            positive_sums[rows] = np.maximum(excess, 0.0, out=excess) @ chances
        return sums, positive_sums

    def _excess_over(
        self, t: float, even_count: float, rows: slice | npt.NDArray[np.intp]
    ) -> Floats:
        gain, loss = self._factors(t, even_count)
        excess: Floats = gain * self.chances_times_x[rows]
        excess -= loss * self.pair_chances[rows]
        return excess

    def _factors(self, t: float, even_count: float) -> tuple[Floats, Floats]:
        """Factors, for each s, of `chances_times_x` and `pair_chances`: v less t times w."""
        d, q, s = self.crowd.categories, self.crowd.lie, self.numbers[self.starts]
        largest = np.append(self.numbers[self.starts[1:] - 1], self.numbers[-1])
        truth = (1 - d * q) * d / even_count * largest / np.maximum(s, 1)
        gain = (1 + t) * truth * (1 + _ROUNDING)
        loss = (t * truth * s + (t - 1) * d * q) * (1 - _ROUNDING)
        return gain, loss

    def _blocks(self, blocks: int, share: float = 0.0) -> Iterator[tuple[float, float, Floats]]:
        """Yields the least T of each block, with its chance, and that with each block of s."""
        others, d = self.crowd.others, self.crowd.categories
        noise = _probable(others, self.crowd.hiding, self.cut)
        block_size = max(
            -(-len(noise) // blocks), min(int(noise[0] * share), len(noise) // _FEW_BLOCKS)
        )
        starts = np.arange(0, len(noise), block_size)
        weights = np.add.reduceat(pmf(noise, others, self.crowd.hiding), starts)
        for even_count, weight in zip((noise[starts] + 1).tolist(), weights.tolist(), strict=True):
            chances = weight * pmf(self.numbers, even_count, 2 / d)
            yield even_count, weight, np.add.reduceat(chances, self.starts)

    @cached_property
    def _some_blocks(self) -> list[tuple[float, float, Floats]]:
        return list(self._blocks(_BLOCKS, _BLOCK))

    @cached_property
    def _views(self) -> dict[tuple[type[_Third], int], Signals]:
        return {}

    def _view(self, place: int, source: _Third) -> Signals:
        """For a T, and each s, what is known of L, beside how likely s is."""
        even_count, _, chances = self._some_blocks[place]
        on_third = even_count - self.numbers
        is_possible = (on_third >= 0) & (chances > 0)
        third = source.views(on_third[is_possible])
        mass = self._mass(even_count)[is_possible]
        third *= chances[is_possible] * mass
        sums = third.mean.sum(axis=1)
        third = third[sums > self.cut / len(sums) / len(self._some_blocks)]
        merged = third
        for share in _ALIKE:
            # All counts are merged already, and a second time costs 4% of epsilon.
            if len(merged.mean) < _FEW or third.width.any():
                break
            merged = third.merged(share)
        tables = np.zeros((3, len(merged.mean), len(chances)))
        tables[:, :, is_possible] = merged.mean, merged.width, merged.deviation
        tables[:, :, is_possible] /= mass
        mean, width, deviation = tables
        # Where they differ by more than what they are, L is given away.
        is_wide = width.sum(axis=1) > mean.sum(axis=1)
        return Signals(mean, np.where(is_wide[:, None], mean, width), deviation)

    def _thirds(self) -> Iterator[_Third | None]:
        """Yields accounts of third values, the fastest first; None for one that takes long."""
        if self.crowd.categories == 3:  # noqa: PLR2004 one third value
            yield OneThirdValue(self.dummy_law)
            return
        yield self._means
        yield self._coins
        if not self._means or self._means.is_far:
            yield self._all_counts

    @cached_property
    def _probable_counts(self) -> Floats:
        return _probable(self.crowd.others, self.crowd.hiding, self.cut) + 1

    @cached_property
    def _of_third(self) -> tuple[int, float, int]:
        """Number of third values, theta, and the largest probable reports on a value."""
        d, others, counts = self.crowd.categories, self.crowd.others, self._probable_counts
        most = int(likely_ends(counts[-1:], 1 / d, self.cut / d)[1][0])
        return int(d) - 2, (others * self.crowd.hiding + 1) / d, most

    @cached_property
    def _means(self) -> ThirdMeans | None:
        values, _, most = self._of_third
        totals = np.array([even_count for even_count, *_ in self._some_blocks]) - self.numbers[0]
        return ThirdMeans.of(self.dummy_law, values, most, totals, len(self.numbers))

    @cached_property
    def _coins(self) -> ThirdValues:
        ends = likely_ends(self._probable_counts[[0, -1]], 1 - 2 / self.crowd.categories, self.cut)
        return ThirdValues.of(self.dummy_law, *self._of_third, int(np.ptp(ends)))

    @cached_property
    def _all_counts(self) -> AllCounts | None:
        values, theta, most = self._of_third
        size, rare = int(self._probable_counts[-1] - self.numbers[0]) + 1, _RARE * self.cut
        return AllCounts.of(self.dummy_law, values, theta, most=most, size=size, rare=rare)


def _probable(trials: int, chance: float, cut: float) -> Floats:
    """Numbers of a binomial, without those whose probability is at most `cut` together."""
    numbers = likely(trials, chance, cut / 2)
    return numbers[pmf(numbers, trials, chance) > cut / 2 / len(numbers)]
