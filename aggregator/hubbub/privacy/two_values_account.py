"""The one count of two values: exactly what a whole epoch of `grr` reports reveals of one person.

There is one count instead of two, and it matters what the others hold: those who hold v hide the
person by not naming it, those who hold w by naming it, and the noise N is Bin(b, q) - Bin(a, q) for
a + b others. All splits are computed, in blocks: a block counts only the noise that all its splits
have. The worst case, where this was tried, is that all others hold the same. The law of N is
log-concave, as of all sums of coins, so for a person who holds v

    delta = max over k of (p - t q) P(N = k) - (t - 1) min(P(N > k), P(N < k))

All rounding is up; see hubbub.privacy.shuffled_histogram.
"""

from dataclasses import dataclass
from math import exp, expm1, floor
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import laws, likely, pmf
from hubbub.privacy.shuffled_epoch_law import DIRECT, FFT_ERROR, ShuffledEpoch, convolved

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
