"""Two counts of a known sum: how lies and noise dummies hide a person together.

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
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.analysis.arrays import Floats
from hubbub.sealing.dummy_laws import CountNoise

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
