"""Noise dummies: what an epoch reveals of one person if each value has a secret number of dummies.

Two epochs differ in one report, which names v in one and w in the other. Without lies all other
reports are known, so only dummies are uncertain: with x of them on v, y on w, and P the law of a
value's number,

    delta = sum over (x, y) of max(P(x - 1) P(y) - e^epsilon P(x) P(y - 1), 0)

It is the same in either direction, and other values reveal nothing.

If devices lie, each of the m others names v or w, evenly, with probability 2 q, whatever it holds,
and otherwise something independent of that choice. Let the adversary know of everybody else whether
it did, and what the rest named. S reports remain, Bin(m, 2 q), split evenly over v and w. With
N(x, y) the joint law of these and the dummies, and p, q the probabilities of a report, v gives

    p N(x - 1, y) + q N(x, y - 1) + (d - 2) q g N(x, y)

and w the same with p and q exchanged. The last term is a report that names a third value. It is g
times as likely as on average for the counts of all third values together: for each it is
P(z - 1) / P(z), and g is their mean, which is a number of d - 2 draws that are above the mean of P
or not. Where g is small, epsilon is large; delta is convex in g, so chords between some g are an
upper bound. For three values or more hubbub.privacy.noisy_lies gives less of S away, and more of
who lied; the smaller of both counts. With two values S would give too much away: there a of the m
hold v, and those who lie move from one to the other; all a are computed as in
hubbub.privacy.one_count.
What the dummies hide needs nobody's honesty; `honest` counts whose lies are noise too.
All rounding is up: numbers S are taken in blocks, each as if it were its least.
Sources: Murakami, Sei, Eriguchi (IEEE S&P 2025), section 4, for dummies without lies; the rest is
hubbub's own, proven above; tests enumerate small epochs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import exp
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import laws, likely, pmf
from hubbub.privacy.noisy_lies import NoisyLies
from hubbub.privacy.one_count import TAILS, WIDE_SPLIT, splits
from hubbub.privacy.shuffled_epoch import ShuffledEpoch, convolved
from hubbub.sealing import CountNoise

# Each chance is a product of a few that are right to 1e-10.
_ROUNDING: Final = 1e-9
# Blocks of S at most: each counts as its least.
_BLOCKS: Final = 96
# How much wider blocks of splits are where finer ones are too many: up to 2.5% of epsilon too much.
_WIDER: Final = (1, 2, 5)
# Numbers that are worked with; past them lies are left out, which rounds up.
_MOST: Final = 6_000_000
# Where so many draws are each gone through, and how many chords there are of more.
_FEW: Final = 6
_CHORDS: Final = 13
_FAR: Final = 12.0

# Of two values: there is no third.
_ONE: Final = ((0.0, 1.0),)

_Views = tuple[Floats, Floats, Floats]
"""Of all (x, y) the chances of v and of w without a third value, and N."""


@dataclass(frozen=True, kw_only=True)
class NoisyCounts:
    """The account of one epoch.

    Args:
        cases: possible views, of which the worst counts; none if lies are ignored, which rounds up.
        thirds: some g and their weights.
        third: probability that a report names a third value.
        lies: another account, of three values or more.
        wanted: what is asked about; `delta` is no nearer than that needs.
    """

    noise: CountNoise
    cases: tuple[_Views, ...] = ()
    thirds: tuple[tuple[float, float], ...] = ()
    third: float = 0.0
    lies: NoisyLies | None = None
    wanted: float

    @classmethod
    def of(cls, crowd: ShuffledEpoch, delta: float) -> "NoisyCounts":
        """The account of a crowd with noise dummies, valid down to `delta`."""
        noise, cut = crowd.noise_dummies, delta * TAILS
        assert noise is not None  # noqa: S101 it is asked of these alone
        if crowd.lie == 0:
            return cls(noise=noise, wanted=delta)
        d = crowd.categories
        if d == 2:  # noqa: PLR2004 two values
            return cls(noise=noise, cases=_of_two(crowd, noise, cut), thirds=_ONE, wanted=delta)
        return cls(
            noise=noise,
            cases=_of_many(crowd, noise, cut),
            thirds=_thirds(noise, int(d) - 2),
            third=(d - 2) * crowd.lie,
            lies=NoisyLies.of(crowd, law_of(noise), delta),
            wanted=delta,
        )

    def delta(self, central: float) -> float:
        """Hockey-stick divergence at exp(central), rounded up."""
        least = bare_delta(self.noise, central)
        if self.cases:
            least = min(least, self._shown(central))
        if self.lies and least > self.wanted:
            least = min(least, self.lies.delta(central, self.wanted))
        return least

    def _shown(self, central: float) -> float:
        """The same if it is shown how many others lied into the two values."""
        t, worst = exp(central), 0.0
        for first, other, neither in self.cases:
            over = first * (1 + _ROUNDING) - t * other * (1 - _ROUNDING)
            mask = over > 0
            over, beside = over[mask], (t - 1) * self.third * neither[mask]
            worst = max(
                worst,
                sum(
                    weight * float(np.maximum(over - g * beside, 0).sum())
                    for g, weight in self.thirds
                ),
            )
        return worst + 8 * TAILS * self.wanted


@lru_cache(maxsize=64)
def law_of(noise: CountNoise) -> Floats:
    """Probabilities of 0, 1, 2, ... dummies of one value."""
    whole = sum(noise.weights)
    return np.array([weight / whole for weight in noise.weights])


def bare_delta(noise: CountNoise, central: float) -> float:
    """Hockey-stick divergence if nobody lies, rounded up."""
    law, t = law_of(noise), exp(central) * (1 - _ROUNDING)
    one_more, number = np.append(0.0, law), np.append(law, 0.0)
    with np.errstate(divide="ignore"):
        likelier = number / one_more  # of y, as w has one more of it
        edge = t * number / one_more  # of x, what y's must pass by
    order = np.argsort(-likelier)
    gains = np.append(0.0, np.cumsum(number[order]))
    losses = np.append(0.0, np.cumsum(one_more[order]))
    passed = np.searchsorted(-likelier[order], -edge)
    over = one_more * gains[passed] - t * number * losses[passed]
    return float(np.maximum(over, 0.0).sum()) * (1 + _ROUNDING)


def _thirds(noise: CountNoise, number: int) -> tuple[tuple[float, float], ...]:
    """Some g, with weights whose sum of a convex function is at least its mean over all g."""
    # A value that nobody names adds nothing to g; the others are as likely as ever. Where there may
    # be two such values, g is 0 at worst.
    none = number * float(law_of(noise)[0])
    return (
        *_chords(noise, number, number),
        *((g, none * weight) for g, weight in _chords(noise, number - 1, number)),
        (0.0, none**2 / 2),
    )


def _chords(noise: CountNoise, drawn: int, number: int) -> Iterator[tuple[float, float]]:
    """Yields some g, and weights, if `drawn` of the `number` values add to g."""
    law = law_of(noise)
    up = float((law[: noise.reach] / law[1 : noise.reach + 1]).min())
    down = float((law[noise.reach : -1] / law[noise.reach + 1 :]).min())
    chance = float(law[noise.reach + 1 :].sum())
    counts = likely(drawn, chance, float(law[0]) / 4)
    g = (counts * down + (drawn - counts) * up) / number
    chances = pmf(counts, drawn, chance)
    nodes = g
    if drawn > _FEW:
        mean = float(g @ chances)
        spread = float(np.sqrt(chances @ (g - mean) ** 2))
        inner = mean + spread * np.linspace(-_FAR / 2, _FAR / 2, _CHORDS - 1)
        nodes = np.unique(np.clip([g[0], *inner, g[-1]], g[0], g[-1]))
    weights = [float(chances @ np.interp(g, nodes, unit)) for unit in np.eye(len(nodes))]
    yield 0.0, max(0.0, 1 - sum(weights))
    yield from zip(nodes.tolist(), weights, strict=True)


def _of_many(crowd: ShuffledEpoch, noise: CountNoise, cut: float) -> tuple[_Views, ...]:
    """For three values or more: all blocks of S together are one case."""
    law, q = law_of(noise), crowd.lie
    numbers = likely(crowd.others, 2 * q, cut)
    wide = -(-len(numbers) // _BLOCKS)
    starts = np.arange(0, len(numbers), wide)
    weights = np.add.reduceat(pmf(numbers, crowd.others, 2 * q), starts)
    widths = [len(likely(int(n), 0.5, cut)) + len(law) for n in numbers[starts]]
    if sum(width**2 for width in widths) > _MOST:  # then as if nobody else lied
        if (len(law) + 1) ** 2 > _MOST:
            return ()
        numbers, starts, weights = np.zeros(1), np.zeros(1, dtype=np.intp), np.ones(1)
    parts: list[_Views] = []
    for n, weight in zip(numbers[starts].tolist(), weights.tolist(), strict=True):
        split = likely(int(n), 0.5, cut)
        parts.append(_likelier_view(crowd, weight * pmf(split, n, 0.5), law))
    return (tuple(np.concatenate(column) for column in zip(*parts, strict=True)),)  # type: ignore[return-value]


def _of_two(crowd: ShuffledEpoch, noise: CountNoise, cut: float) -> tuple[_Views, ...]:
    """For two values: a case for each block of how many of the others hold v."""
    law = law_of(noise)
    for wider in _WIDER:
        pairs = zip(*splits(crowd, wider * WIDE_SPLIT), strict=True)
        stay, move = (laws(n, crowd.lie, cut) for n in pairs)
        moved = [convolved(own, other[::-1]) for own, other in zip(move, stay, strict=True)]
        if sum((len(moves) + len(law)) ** 2 for moves in moved) <= _MOST:
            break
    else:
        return ()
    return tuple(
        _likelier_view(crowd, direction, law)
        for moves in moved
        for direction in (moves, moves[::-1])
    )


def _likelier_view(crowd: ShuffledEpoch, split: Floats, law: Floats) -> _Views:
    """The view where v is likelier than w; `split` is the law of the others' reports on v."""
    both = _on_both(split, law)
    up, side = both[:-1, 1:], both[1:, :-1]
    p, q = crowd.keep, crowd.lie
    first, other = p * up + q * side, q * up + p * side
    mask = first > other
    return first[mask], other[mask], both[1:, 1:][mask]


def _on_both(split: Floats, law: Floats) -> Floats:
    """Joint law of x and y, if reports not on v are on w; with room for one more of either."""
    wide, size = len(split), len(law)
    on_v = np.zeros((wide + size + 1, wide))
    on_w = np.zeros((wide, wide + size + 1))
    for place, chance in enumerate(split.tolist()):
        on_v[place + 1 : place + 1 + size, place] = chance * law
        on_w[place, wide - place : wide - place + size] = law
    return on_v @ on_w
