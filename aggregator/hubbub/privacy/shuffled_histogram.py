"""The shuffled histogram: what a whole epoch of `grr` reports says about one person, exactly.

Who sees one whole epoch shuffled sees how many reports name each value, and may know what everybody
else holds. A report of `grr` is the truth with chance p - q and otherwise any of the d values, all
alike; so of the n - 1 honest others Bin(n - 1, d q) reports are noise, spread evenly. Let the
adversary know which of the others were not noise, and take those away: T reports remain, the
person's own among them and all the rest evenly spread, whatever the others hold. With x of them on
the person's value v, and y on another value w that it might be,

    P(counts | v) / P(counts | w) = ((p - q) x + q T) / ((p - q) y + q T)

and delta at t = exp(epsilon) is a sum over T, over s = x + y, which is Bin(T, 2/d), and over x,
which is Bin(s, 1/2): in closed form but for two sums. Dummies, evenly spread too, are so many more
of T. The more of T there are the less is said, so a block of neighbouring T counts as its least.

Two values are a case of their own. There is one count and not two, and what the others hold
matters: those who hold v hide the person by not naming it, those who hold w by naming it, and the
noise N is Bin(b, q) - Bin(a, q) for a + b others. All splits are gone through, in blocks: a block
counts as if only those noised whom every split in it has. It is worst, where that was tried, if all
hold the same. The chances of N are log-concave, as those of all sums of coins are, so who tells v
from w best looks whether the count passes some k, and

    delta = max over k of (p - t q) P(N = k) - (t - 1) min(P(N > k), P(N < k))

Where reports show one of several groups that they are in, drawn evenly whatever the value is (the
hash function of `local_hash`), only those of the person's own group hide it: each of the others is
in it, and noise, with chance d q / groups, and all else is as it was.

All rounding is up. With one epsilon alone (not knowing that it is `grr`) the bound of
hubbub.privacy.amplification holds, up to 9 times looser where values are many, and at two values
twice.

Sources: the decomposition is the privacy blanket of Balle, Bell, Gascon, Nissim (CRYPTO 2019),
section 4, summed here exactly and not bounded; the ratio of histograms as in Feldman, McMillan,
Talwar (FOCS 2021), section 3, for this one mechanism.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp, expm1, floor, inf, log, sqrt
from typing import Final

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import above, laws, likely, pmf
from hubbub.errors import BadParameter
from hubbub.mechanisms.probability import MAX_EPSILON

MAX_REPORTS: Final = 10**9
MAX_CATEGORIES: Final = 1 << 24
_MIN_DELTA: Final = 1e-15
# Of delta: what is spent on tails that are not summed.
_TAILS: Final = 1e-4
# Blocks of T at most: more are no nearer to the truth by a two thousandth.
_BLOCKS: Final = 256
# So wide is a block beside T at least: a quarter of it is what epsilon is too large by.
_BLOCK: Final = 1e-3
# Of the others: how many more hold v in the last split of a block than in its first.
_SPLIT: Final = 0.002
_FIRST_SPLIT: Final = 0.0005
# Where noise takes so many numbers, blocks are wider: epsilon is too large by half of it.
_MUCH_NOISE: Final = 3000.0
_WIDE_SPLIT: Final = 0.01
_DIRECT: Final = 3000
# Numbers that are worked with at once: many, and yet a few megabytes.
_AT_ONCE: Final = 1 << 17
# Binomial chances come out right to 1e-8 for a thousand million; differences lose two digits.
_FLOAT_ERROR: Final = 1e-5
_FFT_ERROR: Final = 1e-14
_CLOSE: Final = 1e-5
_FINE: Final = 2e-5


@dataclass(frozen=True, slots=True)
class ShuffledEpoch:
    """One epoch of `grr` that leaves the shuffler whole.

    Or of hashed strings, whose reports show by which of so many functions they were hashed.

    reports: all that it has, without the dummies. categories: how many values there are.
    epsilon_local: of one report alone, in nats; infinite if nobody lies. honest: the share of the
    reports that lie as they should; all others are taken for known. dummies: reports that hold a
    value drawn evenly, added by somebody who is trusted for it; their number is public. groups: of
    how many a report shows which it is in; then `categories` are those of one group.

    Raises:
        BadParameter: a number out of range.
    """

    reports: int
    categories: int
    epsilon_local: float
    honest: float = 1.0
    dummies: int = 0
    groups: int = 1

    def __post_init__(self) -> None:
        if not (isinstance(self.reports, int) and 1 <= self.reports <= MAX_REPORTS):
            raise BadParameter(f"reports {self.reports} is outside [1, {MAX_REPORTS}]")
        if not (isinstance(self.categories, int) and 2 <= self.categories <= MAX_CATEGORIES):  # noqa: PLR2004 two values at least
            raise BadParameter(f"categories {self.categories} is outside [2, {MAX_CATEGORIES}]")
        if not (0 < self.epsilon_local <= MAX_EPSILON or self.epsilon_local == inf):
            raise BadParameter(
                f"local epsilon {self.epsilon_local} is outside (0, {MAX_EPSILON}]; "
                "inf where nobody lies"
            )
        if not 0 < self.honest <= 1:
            raise BadParameter(f"honest {self.honest} is outside (0, 1]")
        if not (isinstance(self.dummies, int) and 0 <= self.dummies <= MAX_REPORTS):
            raise BadParameter(f"dummies {self.dummies} is outside [0, {MAX_REPORTS}]")
        if not (isinstance(self.groups, int) and 1 <= self.groups <= MAX_CATEGORIES):
            raise BadParameter(f"groups {self.groups} is outside [1, {MAX_CATEGORIES}]")
        if self.groups > 1 and (self.categories == 2 or self.dummies):  # noqa: PLR2004 two values
            raise BadParameter(
                "several groups, as of hash functions, are accounted for with three categories or "
                "more and no dummies"
            )

    @property
    def others(self) -> int:
        """Honest reports beside the person's own."""
        return max(floor(self.reports * self.honest * (1 + 1e-12)) - 1, 0)

    @property
    def lie(self) -> float:
        """The chance of naming one given wrong value, rounded down: less noise hides less."""
        if self.epsilon_local == inf:
            return 0.0
        return 1 / (exp(self.epsilon_local) + self.categories - 1) * (1 - 2**-48)

    @property
    def hiding(self) -> float:
        """The chance that one of the others is noise, and in the person's group."""
        return min(self.categories * self.lie, 1.0) / self.groups

    @property
    def keep(self) -> float:
        """The chance of naming the true one."""
        return 1 - (self.categories - 1) * self.lie

    def stderr(self, share: float) -> float:
        """The standard error of the estimate of a value that this share of people holds, reports.

        The estimate is (count - n q - m/d) / (p - q), of n reports and m dummies; n and m are
        known. Of a string, in several groups too: of its buckets, before what collisions add.
        """
        p, q, n = self.keep, self.lie, self.reports
        lies = n * q * (1 - q) + n * share * (p * (1 - p) - q * (1 - q))
        return sqrt(lies + self.dummies / self.categories * (1 - 1 / self.categories)) / (p - q)


@lru_cache(maxsize=1024)
def central_epsilon(crowd: ShuffledEpoch, delta: float) -> float:
    """The least epsilon that is proven for one person of the crowd at `delta`, in nats.

    Never above the local one, which holds whoever looks; infinite where nothing is hidden.

    Raises:
        BadParameter: a delta out of range.
    """
    _check(delta)
    seen = _seen(crowd, delta)
    most = min(crowd.epsilon_local, 2.0 * MAX_EPSILON)
    over = log(seen.delta(most) / delta)
    if over > 0:
        return crowd.epsilon_local
    return _least(lambda central: log(seen.delta(central) / delta), most, over)


def _least(over: Callable[[float], float], most: float, last: float) -> float:
    """Where a falling function is 0, from above: `most` if it is not far above.

    By chords, halved where an end stays (the Illinois rule): the logarithm of delta is nearly
    straight, and bisection would ask three times as often. last: the function at `most`.
    """
    low, high = most / 16, most
    while (first := over(low)) <= 0:
        if low < 1e-9:  # noqa: PLR2004 nothing, to any eye
            return low
        low, high, last = low / 16, low, first
    stayed = 0
    while high - low > _CLOSE * high:
        at = high + (high - low) * last / (first - last)
        at = min(max(at, low + _CLOSE * high / 2), high - _CLOSE * high / 2)
        found = over(at)
        if found <= 0:
            high, last = at, found
            first, stayed = (first / 2, 1) if stayed == 1 else (first, 1)
        else:
            low, first = at, found
            last, stayed = (last / 2, -1) if stayed == -1 else (last, -1)
    return high


def delta_of(crowd: ShuffledEpoch, central: float) -> float:
    """The delta that is proven for a central epsilon, in [0, 1]; nearest above the exact one."""
    return min(1.0, _seen(crowd, _MIN_DELTA).delta(central))


def profile(crowd: ShuffledEpoch, least: float) -> Callable[[float], float]:
    """The delta that is proven for any central epsilon, to be trusted down to `least`."""
    return _seen(crowd, least).delta


def keeps(crowd: ShuffledEpoch, central: float, delta: float) -> bool:
    """Whether a crowd is proven to say no more than `central` at `delta`."""
    _check(delta)
    return crowd.epsilon_local <= central or _seen(crowd, delta).delta(central) <= delta


@lru_cache(maxsize=1024)
def largest_local(
    reports: int,
    categories: int,
    central: float,
    delta: float,
    *,
    honest: float = 1.0,
    dummies: int = 0,
    groups: int = 1,
    most: float = MAX_EPSILON,
) -> float:
    """The largest local epsilon whose crowd says `central` at most, within .001 below it.

    most: where the search ends. `central` itself, where so small a crowd adds nothing.

    Raises:
        BadParameter: a number out of range.
    """
    _check(delta)

    def crowd_of(epsilon: float) -> ShuffledEpoch:
        return ShuffledEpoch(reports, categories, epsilon, honest, dummies, groups)

    def hides(epsilon: float) -> bool:
        return keeps(crowd_of(epsilon), central, delta)

    def over(epsilon: float) -> float:
        return log(_seen(crowd_of(epsilon), delta).delta(central) / delta)

    low, high = min(central, most), most
    if hides(high):
        return high
    if over(low) < 0:  # then the logarithm, nearly straight, finds it sooner than halving
        from scipy.optimize import brentq  # noqa: PLC0415 25 MB that a service never needs

        found = max(float(brentq(over, low, high, xtol=_FINE)) - 2 * _FINE, low)
        if hides(found):
            return found
    while high - low > 5e-4:  # noqa: PLR2004 half of what is promised
        middle = (low + high) / 2
        low, high = (middle, high) if hides(middle) else (low, middle)
    return low


def _check(delta: float) -> None:
    if not _MIN_DELTA <= delta < 1:
        raise BadParameter(f"delta {delta} is outside [{_MIN_DELTA}, 1)")


def _seen(crowd: ShuffledEpoch, delta: float) -> "_Counts | _OneCount":
    return _OneCount.of(crowd, delta) if crowd.categories == 2 else _Counts.of(crowd, delta)  # noqa: PLR2004 two values


@dataclass(frozen=True)
class _Counts:
    """Two counts of three values or more: blocks of T, the fewest of each, and their chances."""

    crowd: ShuffledEpoch
    totals: Floats
    weights: Floats
    cut: float

    @classmethod
    def of(cls, crowd: ShuffledEpoch, delta: float) -> "_Counts":
        cut = delta * _TAILS
        noise, chance = likely(crowd.others, crowd.hiding, cut), crowd.hiding
        wide = max(-(-len(noise) // _BLOCKS), int((noise[0] + crowd.dummies) * _BLOCK))
        starts = np.arange(0, len(noise), wide)
        weights = np.add.reduceat(pmf(noise, crowd.others, chance), starts)
        return cls(crowd, noise[starts] + 1 + crowd.dummies, weights, cut)

    @cached_property
    def _both(self) -> list[tuple[Floats, Floats, Floats]]:
        """Of some blocks of T each: T, how many fall on the two values, the chance of both."""
        share = 2 / self.crowd.categories
        found: list[tuple[Floats, Floats, Floats]] = []
        totals: list[Floats] = []
        weights: list[Floats] = []
        both: list[Floats] = []
        for total, weight in zip(self.totals.tolist(), self.weights.tolist(), strict=True):
            spread = likely(int(total) - 1, share, self.cut)
            both.append(np.append(spread, spread[-1] + 1))
            totals.append(np.full(len(both[-1]), total))
            weights.append(np.full(len(both[-1]), weight))
            if total == self.totals[-1] or sum(map(len, both)) > _AT_ONCE:
                n, s = np.concatenate(totals), np.concatenate(both)
                found.append((n, s, np.concatenate(weights) * pmf(s, n, share)))
                totals, weights, both = [], [], []
        return found

    def delta(self, central: float) -> float:
        """The hockey-stick divergence at exp(central), rounded up."""
        t, d = exp(central), self.crowd.categories
        q = self.crowd.lie
        truth = 1 - d * q
        result = 0.0
        for total, s, chances in self._both:
            hidden = q * total * expm1(central)  # what x must pass by
            edge = np.floor((t * s + hidden / truth) / (1 + t)) + 1 if truth > 0 else s + 1
            told = edge <= s
            n, x, hidden = s[told], edge[told], hidden[told]
            at_edge = pmf(x - 1, n - 1, 0.5)
            beyond = above(x - 2, n - 1, 0.5)  # x - 1 or more
            up = truth * n / 2 * t * at_edge + hidden * at_edge / 2
            down = truth * n / 2 * expm1(central) * beyond + hidden * beyond
            error = _FLOAT_ERROR * np.abs(up - down) + 1e-11 * up
            each = np.maximum(up - down, 0) + error
            result += d * float((each * chances[told] / total[told]).sum())
        return result + 3 * self.cut


@dataclass(frozen=True)
class _OneCount:
    """One count of two values: per block of splits, the chances of how many others are in it.

    Of each number its chance, and that of those beyond it, on the side where these are fewer.
    """

    crowd: ShuffledEpoch
    noises: tuple[tuple[Floats, Floats], ...]
    cut: float

    @classmethod
    def of(cls, crowd: ShuffledEpoch, delta: float) -> "_OneCount":
        cut = delta * _TAILS
        held, others = (laws(n, crowd.lie, cut) for n in zip(*_splits(crowd), strict=True))
        [dummies] = laws([crowd.dummies], 0.5, cut)
        lies = map(_convolved, others, (turned[::-1] for turned in held))
        noises = (_convolved(own, dummies) for own in lies)
        return cls(crowd, tuple((noise, _beyond(noise)) for noise in noises), cut)

    def delta(self, central: float) -> float:
        """The largest of all splits, rounded up."""
        t, p, q = exp(central), self.crowd.keep, self.crowd.lie
        worst = wrong = 0.0
        for noise, beyond in self.noises:
            if len(noise) > _DIRECT:  # perhaps a transform's: its errors are not relative
                wrong = _FFT_ERROR * (1 + t)
            worst = max(worst, float(((p - t * q) * noise - expm1(central) * beyond).max()))
        return worst * (1 + _FLOAT_ERROR) + 3 * self.cut + wrong


def _splits(crowd: ShuffledEpoch) -> list[tuple[int, int]]:
    """Of each block: how many hold v in all its splits, and how many w; half, by symmetry."""
    if crowd.lie == 0:
        return [(0, 0)]
    splits, first = [], 0
    much = crowd.others * crowd.lie > _MUCH_NOISE**2 / 16
    while first <= crowd.others // 2:
        wide = (_WIDE_SPLIT if much else _SPLIT) if first else _FIRST_SPLIT
        last = min(first + max(floor(wide * crowd.others), 0), crowd.others // 2)
        splits.append((first, crowd.others - last))
        first = last + 1
    return splits


def _beyond(noise: Floats) -> Floats:
    """Of each number the chance of one above it, or of one below it, which is less."""
    above, below = (np.append(0.0, np.cumsum(one)[:-1]) for one in (noise[::-1], noise))
    fewer: Floats = np.minimum(above[::-1], below)
    return fewer


def _convolved(one: Floats, other: Floats) -> Floats:
    if min(len(one), len(other)) <= _DIRECT:
        return np.convolve(one, other)
    length = len(one) + len(other) - 1
    size = next_fast_len(length, real=True)
    whole: Floats = irfft(rfft(one, size) * rfft(other, size), size)[:length]
    return np.maximum(whole, 0.0)
