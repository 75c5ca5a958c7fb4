"""The shuffled histogram: exactly what a whole epoch of `grr` reports reveals of one person.

An observer of a shuffled epoch sees how many reports name each value, and may know what everybody
else holds. A report of `grr` is the truth with probability p - q and otherwise uniform over the d
values; so of the n - 1 honest others Bin(n - 1, d q) reports are noise, spread evenly. Let the
adversary know which of the others were not noise, and remove those: T reports remain, the person's
own among them and all the rest evenly spread, whatever the others hold. With x of them on the
person's value v, and y on another value w that it might be,

    P(counts | v) / P(counts | w) = ((p - q) x + q T) / ((p - q) y + q T)

and delta at t = exp(epsilon) is a sum over T, over s = x + y, which is Bin(T, 2/d), and over x,
which is Bin(s, 1/2): in closed form except for two sums. Dummies, evenly spread too, are added to
T. A larger T reveals less, so a block of neighbouring T counts as its least.

An adversary who knows which of the others lied knows more than the view: some percent of epsilon if
lies are few. In that case hubbub.privacy.few_lies_account computes all that the others may hold,
and gives less away. Two values are a case of their own (hubbub.privacy.two_values_account).

If reports show one of several groups, drawn evenly whatever the value is (the hash function of
`local_hash`), only reports of the person's own group hide it: each of the others is in it, and
noise, with probability d q / groups, and the rest is unchanged.

For codes of directions v and w are two vectors, and x and y count reports of words near either;
`even_lies` gives the number of categories, which need not be whole.

All rounding is up. For epsilon alone (without knowing that it is `grr`) the bound of
hubbub.privacy.amplification holds, which is up to 9 times looser for many values, and twice for
two. Sources: the decomposition is the privacy blanket of Balle, Bell, Gascon, Nissim (CRYPTO 2019),
section 4, summed here exactly instead of bounded; the ratio of histograms as in Feldman, McMillan,
Talwar (FOCS 2021), section 3, for this one mechanism.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import exp, expm1, log
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import binomial_tail, likely_ends, pmf
from hubbub.errors import BadParameter
from hubbub.mechanisms.probability import MAX_EPSILON
from hubbub.privacy.amplification import MIN_DELTA
from hubbub.privacy.few_lies_account import FewLies
from hubbub.privacy.noise_dummies_account import NoisyCounts
from hubbub.privacy.shuffled_epoch import FFT_ERROR, ShuffledEpoch
from hubbub.privacy.two_values_account import FLOAT_ERROR, TAILS, OneCount, SeveralCounts

# Blocks of T at most: more are no nearer to the truth by a two thousandth.
_BLOCKS: Final = 256
# So wide is a block beside T at least: a quarter of it is what epsilon is too large by.
_BLOCK: Final = 1e-3
# Numbers that are worked with at once: many, and yet a few megabytes.
_AT_ONCE: Final = 1 << 17
_CLOSE: Final = 1e-5
# The same beside noise dummies, where each step may take long.
_NOISY_CLOSE: Final = 1e-3
_FINE: Final = 2e-5
# How finely a local epsilon is found where lies are few: each step may take a second.
_STEP: Final = 0.01


@lru_cache(maxsize=1024)
def central_epsilon(crowd: ShuffledEpoch, delta: float) -> float:
    """Smallest proven epsilon of one person of the crowd at `delta`, in nats.

    Never above the local one, which holds for every observer; infinite if nothing is hidden. Raises
    BadParameter for a delta out of range.
    """
    _check(delta)
    analysis = _counts_of(crowd, delta)
    most = min(crowd.epsilon_local, 2.0 * MAX_EPSILON)
    log_ratio = log(analysis.delta(most) / delta)
    if log_ratio <= 0:
        close = _NOISY_CLOSE if crowd.noise_dummies and crowd.lie else _CLOSE
        most = _min_epsilon(
            lambda central: log(analysis.delta(central) / delta), most, log_ratio, close
        )
    elif most < crowd.epsilon_local:
        return crowd.epsilon_local
    if (of_lies := _crowd_of_lies(crowd)) is not None:
        most = min(most, central_epsilon(of_lies, delta))
    few_lies = FewLies.of(crowd, delta)
    return min(few_lies.epsilon(delta, 0.0, most), most) if few_lies else most


def _crowd_of_lies(crowd: ShuffledEpoch) -> ShuffledEpoch | None:
    """The crowd without noise dummies, if its lies hide more than they do; otherwise None."""
    noise = crowd.noise_dummies
    hide = noise is not None and crowd.others * crowd.lie >= noise.variance
    return replace(crowd, noise_dummies=None) if hide else None


def _min_epsilon(
    function: Callable[[float], float], most: float, last: float, close: float
) -> float:
    """Root of a decreasing function, from above; `most` if it is not far above.

    By chords, halved if an end stays (the Illinois rule): the logarithm of delta is nearly
    straight, and bisection would need three times as many calls. `last` is the function at `most`.
    """
    low, high = most / 16, most
    while (first := function(low)) <= 0:
        if low < 1e-9:  # noqa: PLR2004 nothing, to any eye
            return low
        low, high, last = low / 16, low, first
    stayed = 0
    while high - low > close * high:
        middle = high + (high - low) * last / (first - last)
        middle = min(max(middle, low + close * high / 2), high - close * high / 2)
        excess = function(middle)
        if excess <= 0:
            high, last = middle, excess
            first, stayed = (first / 2, 1) if stayed == 1 else (first, 1)
        else:
            low, first = middle, excess
            last, stayed = (last / 2, -1) if stayed == -1 else (last, -1)
    return high


def profile(crowd: ShuffledEpoch, least: float) -> Callable[[float], float]:
    """Proven delta as a function of the central epsilon, valid down to `least`."""
    delta = _counts_of(crowd, least).delta
    if (of_lies := _crowd_of_lies(crowd)) is None:
        return delta
    delta_of_lies = profile(of_lies, least)
    return lambda central: min(delta(central), delta_of_lies(central))


@lru_cache(maxsize=1024)
def keeps(crowd: ShuffledEpoch, central: float, delta: float) -> bool:
    """Whether a crowd provably reveals at most `central` at `delta`."""
    _check(delta)
    if crowd.epsilon_local <= central or _counts_of(crowd, delta).delta(central) <= delta:
        return True
    if (of_lies := _crowd_of_lies(crowd)) is not None and keeps(of_lies, central, delta):
        return True
    few_lies = FewLies.of(crowd, delta)
    return few_lies is not None and few_lies.epsilon(delta, central, central) <= central


@lru_cache(maxsize=1024)
def largest_local(crowd: ShuffledEpoch, central: float, delta: float) -> float:
    """Largest local epsilon, up to the crowd's own, that reveals at most `central`; .001 less.

    Up to .01 less if lies are few, since every case of what the others hold is computed. `central`
    itself if so small a crowd adds nothing. Raises BadParameter for a number out of range.
    """
    _check(delta)

    def hides(epsilon: float) -> bool:
        return keeps(replace(crowd, epsilon_local=epsilon), central, delta)

    def log_excess(epsilon: float) -> float:
        return log(_counts_of(replace(crowd, epsilon_local=epsilon), delta).delta(central) / delta)

    most = crowd.epsilon_local
    low, high, close = min(central, most), most, 5e-4
    if hides(high):
        return high
    if log_excess(low) < 0:  # then the logarithm, nearly straight, finds it sooner than halving
        from scipy.optimize import brentq  # noqa: PLC0415 25 MB that a service never needs

        local_epsilon = max(float(brentq(log_excess, low, high, xtol=_FINE)) - 2 * _FINE, low)
        if hides(local_epsilon):
            if not FewLies.of(replace(crowd, epsilon_local=local_epsilon), delta):
                return local_epsilon
            low, high, close = local_epsilon, local_epsilon + _STEP, _STEP
            while high < most and hides(high):
                low, high = high, high + 2 * (high - local_epsilon)
            high = min(high, most)
    while high - low > close:
        middle = (low + high) / 2
        low, high = (middle, high) if hides(middle) else (low, middle)
    return low


def _check(delta: float) -> None:
    if not MIN_DELTA <= delta < 1:
        raise BadParameter(f"delta {delta} is outside [{MIN_DELTA}, 1)")


@lru_cache(maxsize=1)
def _counts_of(
    crowd: ShuffledEpoch, delta: float
) -> "_Counts | OneCount | SeveralCounts | NoisyCounts":
    """The account; a plan's last one is asked for again."""
    if crowd.noise_dummies:
        return NoisyCounts.of(crowd, delta)
    if crowd.categories > 2:  # noqa: PLR2004 two values
        return _Counts.of(crowd, delta)
    return SeveralCounts.of(crowd, delta) if crowd.each % 1 else OneCount.of(crowd, delta)


@dataclass(frozen=True)
class _Counts:
    """Two counts of three or more values: blocks of T, the least of each, and their weights."""

    crowd: ShuffledEpoch
    totals: Floats
    weights: Floats
    cut: float

    @classmethod
    def of(cls, crowd: ShuffledEpoch, delta: float) -> "_Counts":
        cut = delta * TAILS + (FFT_ERROR if crowd.each % 1 else 0.0)
        noise, chances = crowd.noise(cut)
        block_size = max(-(-len(noise) // _BLOCKS), int(noise[0] * _BLOCK))
        starts = np.arange(0, len(noise), block_size)
        return cls(crowd, noise[starts] + 1, np.add.reduceat(chances, starts), cut)

    @cached_property
    def _joint_blocks(self) -> list[tuple[Floats, Floats, Floats]]:
        """For groups of blocks: T, the number on both values, and the joint probability."""
        share = 2 / self.crowd.categories
        first, last = likely_ends(self.totals - 1, share, self.cut)
        lengths = (last - first + 2).astype(np.intp)  # one more may be the person's own
        ends = np.cumsum(lengths)
        laws: list[tuple[Floats, Floats, Floats]] = []
        for block in np.split(np.arange(len(ends)), np.flatnonzero(np.diff(ends // _AT_ONCE)) + 1):
            some_lengths = lengths[block]
            n, weights, begins = (
                np.repeat(column[block], some_lengths)
                for column in (self.totals, self.weights, first - (ends - lengths))
            )
            s = begins + np.arange(ends[block[0]] - some_lengths[0], ends[block[-1]])
            laws.append((n, s, weights * pmf(s, n, share)))
        return laws

    def delta(self, central: float) -> float:
        """Hockey-stick divergence at exp(central), rounded up."""
        t, d = exp(central), self.crowd.categories
        q = self.crowd.lie
        truth = 1 - d * q
        result = 0.0
        for total, s, chances in self._joint_blocks:
            hidden = q * total * expm1(central)  # what x must pass by
            edge = np.floor((t * s + hidden / truth) / (1 + t)) + 1 if truth > 0 else s + 1
            mask = edge <= s
            n, x, hidden = s[mask], edge[mask], hidden[mask]
            # Blocks share most pairs of n and x, whose chances would take most of the time.
            pairs = n.astype(np.int64) << 32 | x.astype(np.int64)
            pairs, places = np.unique(pairs, return_inverse=True)
            pair_n, pair_x = (number.astype(np.float64) for number in np.divmod(pairs, 1 << 32))
            at_edge = pmf(pair_x - 1, pair_n - 1, 0.5)[places]
            tail = binomial_tail(pair_x - 2, pair_n - 1, 0.5)[places]  # x - 1 or more
            gain = truth * n / 2 * t * at_edge + hidden * at_edge / 2
            loss = truth * n / 2 * expm1(central) * tail + hidden * tail
            error = FLOAT_ERROR * np.abs(gain - loss) + 1e-11 * gain
            excess = np.maximum(gain - loss, 0) + error
            result += d * float((excess * chances[mask] / total[mask]).sum())
        return result + 4 * self.cut
