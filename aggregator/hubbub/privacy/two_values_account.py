"""Two values: exactly what a whole epoch of `grr` reports, and dummies, reveals of one person.

Without noise dummies there is one count instead of two, and it matters what the others hold: those
who hold v hide the person by not naming it, those who hold w by naming it, and the noise N is
Bin(b, q) - Bin(a, q) for a + b others. All splits are computed, in blocks: a block counts only the
noise that all its splits have. The worst case, where this was tried, is that all others hold the
same. The law of N is log-concave, as of all sums of coins, so for a person who holds v

    delta = max over k of (p - t q) P(N = k) - (t - 1) min(P(N > k), P(N < k))

All rounding is up; see hubbub.privacy.shuffled_histogram.

With noise dummies there are two counts of a known sum: lies and dummies hide a person together.
Each of two values has dummies of the law P, where P(i) is proportional to r^|i - c| for i from 0 to
2 c. Their sum D is known, since all reports on both values are counted. Given D, the chance of i
dummies on v is r^|D - 2 c| on the numbers between c and D - c, less by r^2 with each step
outside, and 0 where a value had less than 0 or more than 2 c dummies. Lies move reports from one
value to the other; let the law C of how many of the others are on v be log-concave. Then so is the
law of N, the number on v without the person's report. With p and q the probabilities that this
report is on the value that the person holds and on the other one, and 1 - p - q that it is on
neither, v and w are best distinguished by a threshold of the count:

    delta(D) = max over k of (p - t q) P(N = k) - (t - 1) ((p + q) P(N > k) + h P(M > k))

where h is 1 - p - q times how much likelier a report on neither makes everything else, and M is N
if there is one more dummy. Ratios of neighbours fall, so the maximum is found by bisection. Sums
over i are differences of running sums of C, and of C times r^(2 i) and r^(-2 i), from the end where
they are less, so that no digit is lost.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, floor
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import laws, likely, pmf
from hubbub.privacy.shuffled_epoch import DIRECT, FFT_ERROR, ShuffledEpoch, convolved
from hubbub.sealing.dummy_laws import CountNoise

TAILS: Final = 1e-4
"""Of delta: what is spent on tails that are not summed."""
FLOAT_ERROR: Final = 1e-5
"""Binomial chances come out right to 1e-8 for a thousand million; differences lose two digits."""
# Of how many dummies devices make, where two values are: each has blocks of splits of its own.
_FEW_BLOCKS: Final = 8
# Of the others: how many more hold v in the last split of a block than in its first.
_SPLIT: Final = 0.002
_FIRST_SPLIT: Final = 0.0005
# Where noise takes so many numbers, blocks are wider: epsilon is too large by half of it.
_MUCH_NOISE: Final = 3000.0
_WIDE_SPLIT: Final = 0.01


@dataclass(frozen=True)
class OneCount:
    """One count of two values: for each block of splits, the law of the others' count.

    That is the probability of each number, and of all beyond it, on the side where that is less.
    """

    crowd: ShuffledEpoch
    noises: tuple[tuple[Floats, Floats], ...]
    cut: float

    @classmethod
    def of(cls, crowd: ShuffledEpoch, delta: float, *, coarsely: bool = False) -> "OneCount":
        """The account, valid down to `delta`; `coarsely` with fewer blocks of splits."""
        cut, block_size = delta * TAILS, _WIDE_SPLIT if coarsely else _SPLIT
        lie_laws, others = (
            laws(holder_counts, crowd.lie, cut)
            for holder_counts in zip(*splits(crowd, block_size), strict=True)
        )
        [dummies] = laws([crowd.certain().dummies], 0.5, cut)
        lies = map(convolved, others, (turned[::-1] for turned in lie_laws))
        noises = (convolved(lie_law, dummies) for lie_law in lies)
        return cls(crowd, tuple((noise, _tail_chances(noise)) for noise in noises), cut)

    def delta(self, central: float) -> float:
        """The largest delta of all splits, rounded up."""
        t, p, q = exp(central), self.crowd.keep, self.crowd.lie
        worst = wrong = 0.0
        for noise, tails in self.noises:
            if len(noise) > DIRECT:  # perhaps a transform's: its errors are not relative
                wrong = FFT_ERROR * (1 + t)
            worst = max(worst, float(((p - t * q) * noise - expm1(central) * tails).max()))
        return worst * (1 + FLOAT_ERROR) + 3 * self.cut + wrong


@dataclass(frozen=True)
class SeveralCounts:
    """One count of two values, for each public number of dummies that devices added by chance.

    That number is taken in blocks, each as if it were its least.
    """

    counts: list[tuple[OneCount, float]]
    cut: float

    @classmethod
    def of(cls, crowd: ShuffledEpoch, delta: float) -> "SeveralCounts":
        """The account, valid down to `delta`."""
        cut = delta * TAILS
        dummy_counts = likely(crowd.others + 1, crowd.each % 1, cut)
        starts = np.arange(0, len(dummy_counts), -(-len(dummy_counts) // _FEW_BLOCKS))
        weights = np.add.reduceat(pmf(dummy_counts, crowd.others + 1, crowd.each % 1), starts)
        epochs = [crowd.certain(int(number)) for number in dummy_counts[starts]]
        counts = [OneCount.of(epoch, delta, coarsely=True) for epoch in epochs]
        return cls(list(zip(counts, weights.tolist(), strict=True)), cut)

    def delta(self, central: float) -> float:
        """Mean over all numbers of dummies, rounded up."""
        return sum(weight * count.delta(central) for count, weight in self.counts) + self.cut


def splits(crowd: ShuffledEpoch, block_size: float) -> list[tuple[int, int]]:
    """For each block, how many hold v in all its splits, and how many w; half, by symmetry.

    `block_size` is the share of the others by which the splits of a block differ.
    """
    if crowd.lie == 0:
        return [(0, 0)]
    splits, start = [], 0
    if crowd.others * crowd.lie > _MUCH_NOISE**2 / 16:
        block_size = max(block_size, _WIDE_SPLIT)
    while start <= crowd.others // 2:
        share = block_size if start else _FIRST_SPLIT
        stop = min(start + max(floor(share * crowd.others), 0), crowd.others // 2)
        splits.append((start, crowd.others - stop))
        start = stop + 1
    return splits


def _tail_chances(noise: Floats) -> Floats:
    """For each number, the probability of a larger one or of a smaller one, whichever is less."""
    larger, smaller = (np.append(0.0, np.cumsum(law)[:-1]) for law in (noise[::-1], noise))
    fewer: Floats = np.minimum(larger[::-1], smaller)
    return fewer


# Powers of r remain numbers.
_MAX_EXPONENT: Final = 600.0
# Each chance is a product of a few that are right to 1e-10.
_ROUNDING: Final = 1e-9

_Numbers = npt.NDArray[np.intp]


def fits(split: Floats, noise: CountNoise) -> bool:
    """Whether a law of the others' reports can be computed with; if not, dummies hardly matter."""
    return (len(split) + 2 * noise.reach) / noise.scale <= _MAX_EXPONENT


@dataclass(frozen=True)
class TwoCounts:
    """The account of one law C; `cut` is the probability of dummies that may be left out.

    `split` has the probabilities that `first`, `first` + 1, ... of the others are on v, for any
    `first`; `noise` is the law of each value's dummies.
    """

    split: Floats
    noise: CountNoise
    cut: float

    def delta(self, t: float, p: float, q: float, neither: Floats) -> Floats:
        """Hockey-stick divergence at `t`, for each h of `neither`, rounded up."""
        loose = self._rounding_factor
        t /= loose**4
        if p <= t * q:
            return np.full(len(neither), self.cut)
        any_neither = neither.any()
        sums = self._sums if any_neither else self._sums[self._sums >= 0]
        chances = self._chances(sums)
        if not any_neither:  # sums equally far from the mean hide equally well
            chances[sums > 0] *= 2
        gain, loss = (p - t * q) * chances, (t - 1) * (p + q) * chances
        # Of M, whose number is one more.
        one_more = (t - 1) * neither[:, None] * self._chances(sums + 1)

        def sum_with_one_more(sequence: _Sums, threshold: _Numbers) -> Floats | float:
            return one_more * sequence.at(sums + 1, threshold) if any_neither else 0.0

        # Below `low` all chances are 0, and neither rise nor fall.
        low = np.broadcast_to(np.maximum(sums, 0) - 1, one_more.shape)
        high = np.full(one_more.shape, len(self.split) + 2 * self.noise.reach)
        while (high - low).max() > 1:
            threshold = (low + high) // 2
            next_equal = self._equal.at(sums, threshold + 1)
            change = gain * (next_equal - self._equal.at(sums, threshold)) + loss * next_equal
            rises = change + sum_with_one_more(self._equal, threshold + 1) > 0
            low, high = np.where(rises, threshold, low), np.where(rises, high, threshold)
        gains = gain * self._equal.at(sums, high)
        excess = gains - loss * self._tails.at(sums, high) - sum_with_one_more(self._tails, high)
        excess = np.maximum(excess, 0.0) + _ROUNDING * gains
        result: Floats = excess.sum(axis=1) * loose**2 + self.cut
        return result

    @cached_property
    def _rounding_factor(self) -> float:
        """Factor by which chances by powers of r may be off: dummies have whole weights."""
        weights = np.array([float(weight) for weight in self.noise.weights])
        ratios = weights * np.exp(self._distances / self.noise.scale)
        return float(ratios.max() / ratios.min()) + _ROUNDING

    @cached_property
    def _distances(self) -> Floats:
        return abs(np.arange(2 * self.noise.reach + 1.0) - self.noise.reach)

    @cached_property
    def _sums(self) -> _Numbers:
        """D - 2 c, without those whose probability is at most `cut` together."""
        law = np.exp(-self._distances / self.noise.scale)
        double_law = np.convolve(law, law) / law.sum() ** 2
        ends = np.minimum(np.cumsum(double_law), np.cumsum(double_law[::-1])[::-1])
        return np.flatnonzero(ends > self.cut / 2) - 2 * self.noise.reach

    def _chances(self, sums: _Numbers) -> Floats:
        """For each D - 2 c, the probability of each number of dummies on v on the flat part."""
        scale = self.noise.scale
        total: float = np.exp(-self._distances / scale).sum()
        return np.exp(-np.abs(sums) / scale) / total**2

    @cached_property
    def _equal(self) -> "_Sums":
        return _Sums(np.append(np.zeros(2 * self.noise.reach), self.split), self.noise)

    @cached_property
    def _tails(self) -> "_Sums":
        after = np.append(np.cumsum(self.split[::-1])[::-1], 0.0)
        return _Sums(np.append(np.full(2 * self.noise.reach, after[0]), after[1:]), self.noise)


class _Sums:
    """Sums of a log-concave sequence, from -2 c on, over the numbers of dummies on v."""

    def __init__(self, sequence: Floats, noise: CountNoise) -> None:
        self._reach, self._scale = noise.reach, noise.scale
        self._middle = len(sequence) // 2
        powers = 2 * (np.arange(len(sequence)) - self._middle) / noise.scale
        self._flat, self._after, self._before = (
            _Windows(sequence * np.exp(exponent)) for exponent in (0 * powers, -powers, powers)
        )

    def at(self, sums: _Numbers, place: _Numbers) -> Floats:
        """For each D - 2 c, the sum over i of r^(2 distance) times the sequence at `place` - i."""
        c = self._reach
        distances = np.abs(sums)
        flat = np.minimum(distances, 2 * c - distances)
        side = np.maximum(c - distances, 0)  # so many numbers on either side of the flat part
        start = np.maximum(np.minimum(c, np.maximum(sums + c, 0)), sums)
        end = place - start + 2 * c + 1
        first = end - 1 - flat
        power = 2 / self._scale
        # Powers that are cut off are of places outside the sequence, whose sums are 0.
        risen = np.exp(np.minimum(power * (end - 1 - self._middle), _MAX_EXPONENT))
        fallen = np.exp(np.minimum(power * (self._middle - first), _MAX_EXPONENT))
        after = risen * self._after.between(end, end + side)
        before = fallen * self._before.between(first - side, first)
        result: Floats = self._flat.between(first, end) + after + before
        return result


class _Windows:
    """Sums of neighbouring numbers of a sequence that has no negative number."""

    def __init__(self, sequence: Floats) -> None:
        self._before = np.append(0.0, np.cumsum(sequence))
        self._after = np.append(np.cumsum(sequence[::-1])[::-1], 0.0)

    def between(self, first: _Numbers, end: _Numbers) -> Floats:
        """Sums of the numbers at `first` to `end` - 1, of those that there are."""
        size = len(self._before) - 1
        first, end = (np.minimum(np.maximum(place, 0), size) for place in (first, end))
        before, after = self._before[end], self._after[first]
        sums: Floats = np.where(
            before < after, before - self._before[first], after - self._after[end]
        )
        return sums
