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

and w the same with p and q exchanged: hubbub.privacy.two_values_account sums what v exceeds w
by. The last term is a report that names a third value. It is g times as likely as on average for
the counts of all third values together: for each it is P(z - 1) / P(z), and g is their mean, which
is a number of d - 2 draws that are above the mean of P or not. Where g is small, epsilon is large;
delta is convex in g, so chords between some g are an upper bound. For three values or more
hubbub.privacy.lies_and_dummies_account gives less of S away, and more of who lied; the smaller of
both counts. With two values S would give too much away: there a of the m hold v, and those who lie
move from one to the other; all a are computed, in blocks, as in hubbub.privacy.two_values_account.
If the steps of a mean have further dummies (hubbub.sealing.dummy_laws), the sum of all
dummies' steps is a third secret number, drawn from D and moved by at most d - 1: with B the delta
above,

    delta = sum over s of D(s) B(epsilon - log(D(s) / D(s - d + 1)))

and lies are ignored, which rounds up.
What the dummies hide needs nobody's honesty; `honest` counts whose lies are noise too.
All rounding is up: numbers S are taken in blocks, each as if it were its least.
Sources: Murakami, Sei, Eriguchi (IEEE S&P 2025), section 4, for dummies without lies; the rest is
hubbub's own, proven above; tests enumerate small epochs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import exp, inf
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import laws, likely, pmf
from hubbub.privacy.lies_and_dummies_account import NoisyLies
from hubbub.privacy.shuffled_epoch import ShuffledEpoch, convolved
from hubbub.privacy.two_values_account import TAILS, TwoCounts, fits, splits
from hubbub.sealing.dummy_laws import CountNoise

# Each chance is a product of a few that are right to 1e-10.
_ROUNDING: Final = 1e-9
# Blocks of S at most: each counts as its least.
_BLOCKS: Final = 96
# Of two values, how much of what hides a person blocks of splits may leave out: twice what epsilon
# is too large by.
_SPLIT: Final = 0.015
# Of a report, the chance that it is a lie; and of the dummies' variance, the lies on two values.
_FEW_LIES: Final = 0.01
# Where so many draws are each gone through; how many chords there are of more, fewer where g
# spreads by less than so many times _NEAR; and over how many standard deviations they reach.
_FEW: Final = 6
_CHORDS: Final = 10
_NEAR: Final = 0.01
_FAR: Final = 12.0
# Steps of the loss of a sum of dummies, from none to the largest.
_SUM_STEPS: Final = 24

_Case = list[tuple[TwoCounts, float]]
"""Laws of the others' reports that the adversary may see, with their weights."""


@dataclass(frozen=True, kw_only=True)
class NoisyCounts:
    """The account of one epoch.

    Args:
        keep, lie: probabilities that a report names the true value, and a given other one.
        cases: of what the others may hold, of which the worst counts; none if lies are ignored,
            which rounds up.
        neither: probabilities that a report names a third value, times some g.
        weights: those of these g.
        sum_losses: of a secret sum, its losses with their probabilities; none without.
        lying: the crowd, of three values or more, if another account of its lies may gain.
        wanted: what is asked about; `delta` is no nearer than that needs.
    """

    noise: CountNoise
    keep: float = 1.0
    lie: float = 0.0
    cases: tuple[_Case, ...] = ()
    neither: Floats = field(default_factory=lambda: np.zeros(1))
    weights: Floats = field(default_factory=lambda: np.ones(1))
    sum_losses: tuple[tuple[float, float], ...] = ()
    lying: ShuffledEpoch | None = None
    wanted: float

    @classmethod
    def of(cls, crowd: ShuffledEpoch, delta: float) -> "NoisyCounts":
        """The account of a crowd with noise dummies, valid down to `delta`."""
        noise, cut = crowd.noise_dummies, delta * TAILS
        assert noise is not None  # noqa: S101 it is asked of these alone
        if crowd.sum_noise:
            losses = sum_losses(crowd.sum_noise, int(crowd.categories) - 1)
            return cls(noise=noise, sum_losses=losses, wanted=delta)
        if crowd.lie == 0:
            return cls(noise=noise, wanted=delta)
        d, keep, lie = crowd.categories, crowd.keep, crowd.lie
        if d == 2:  # noqa: PLR2004 two values
            cases = _two_value_cases(crowd, noise, cut)
            return cls(noise=noise, keep=keep, lie=lie, cases=cases, wanted=delta)
        nodes, weights = zip(*_thirds(noise, int(d) - 2), strict=True)
        # Else the other account gains less than half a percent, and takes long.
        has_many = max(d * lie, 2 * crowd.others * lie / noise.variance) > _FEW_LIES
        return cls(
            noise=noise,
            keep=keep,
            lie=lie,
            cases=_many_value_cases(crowd, noise, cut),
            neither=(d - 2) * lie * np.array(nodes),
            weights=np.array(weights),
            lying=crowd if has_many else None,
            wanted=delta,
        )

    def delta(self, central: float) -> float:
        """Hockey-stick divergence at exp(central), rounded up."""
        if self.sum_losses:
            return sum(
                chance * (1.0 if loss == inf else bare_delta(self.noise, central - loss))
                for loss, chance in self.sum_losses
            )
        least = bare_delta(self.noise, central)
        if self.cases and least > self.wanted:
            # The same if it is shown how many others lied into the two values.
            t, worst = exp(central), 0.0
            for weighted_counts in self.cases:
                deltas = sum(
                    chance * counts.delta(t, self.keep, self.lie, self.neither)
                    for counts, chance in weighted_counts
                )
                worst = max(worst, float(self.weights @ deltas))
            least = min(least, worst + 8 * TAILS * self.wanted)
        if least > self.wanted and (lies := self._lies):  # last: it may take much longer
            least = min(least, lies.delta(central, self.wanted))
        return least

    @cached_property
    def _lies(self) -> NoisyLies | None:
        return NoisyLies.of(self.lying, law_of(self.noise), self.wanted) if self.lying else None


@lru_cache(maxsize=64)
def law_of(noise: CountNoise) -> Floats:
    """Probabilities of 0, 1, 2, ... dummies of one value."""
    total = sum(noise.weights)
    return np.array([weight / total for weight in noise.weights])


def bare_delta(noise: CountNoise, central: float) -> float:
    """Hockey-stick divergence if nobody lies, rounded up."""
    law, t = law_of(noise), exp(central) * (1 - _ROUNDING)
    one_more, number = np.append(0.0, law), np.append(law, 0.0)
    # At the ends of a wide law both chances may be too small for a float, and add nothing.
    with np.errstate(divide="ignore", invalid="ignore"):
        likelier = np.nan_to_num(number / one_more, posinf=inf)  # of y, as w has one more of it
        edge = t * number / one_more  # of x, what y's must pass by
    order = np.argsort(-likelier)
    gains = np.append(0.0, np.cumsum(number[order]))
    losses = np.append(0.0, np.cumsum(one_more[order]))
    passed = np.searchsorted(-likelier[order], -edge)
    excess = one_more * gains[passed] - t * number * losses[passed]
    return float(np.maximum(excess, 0.0).sum()) * (1 + _ROUNDING)


@lru_cache(maxsize=64)
def sum_losses(noise: CountNoise, moved: int) -> tuple[tuple[float, float], ...]:
    """Losses of a number of this law beside one moved by `moved`, in few steps, rounded up.

    Each loss has its probability; it is infinite where the other number is impossible.
    """
    law = law_of(noise)
    other = np.append(np.zeros(moved), law)[: len(law)]
    possible = other > 0
    losses = np.log(law[possible] / other[possible])
    # No number is possible in both where a law is narrower than the move; one, without a loss,
    # where it is as wide.
    most = float(losses.max(initial=_ROUNDING))
    steps = np.ceil(losses / most * _SUM_STEPS * (1 - _ROUNDING)).astype(np.intp)
    chances = np.bincount(steps + _SUM_STEPS, law[possible])
    grid = (np.arange(len(chances)) - _SUM_STEPS) / _SUM_STEPS * most * (1 + _ROUNDING)
    rounded = [(loss, chance) for loss, chance in zip(grid, chances, strict=True) if chance]
    return (*rounded, (inf, float(law[~possible].sum())))


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
    min_rise = float((law[: noise.reach] / law[1 : noise.reach + 1]).min())
    min_fall = float((law[noise.reach : -1] / law[noise.reach + 1 :]).min())
    chance = float(law[noise.reach + 1 :].sum())
    counts = likely(drawn, chance, float(law[0]) / 4)
    g = (counts * min_fall + (drawn - counts) * min_rise) / number
    chances = pmf(counts, drawn, chance)
    nodes = g
    if drawn > _FEW:
        mean = float(g @ chances)
        spread = float(np.sqrt(chances @ (g - mean) ** 2))
        inner_nodes = 2 + min(_CHORDS, int(spread / _NEAR))
        inner = mean + spread * np.linspace(-_FAR / 2, _FAR / 2, inner_nodes)
        nodes = np.unique(np.clip([g[0], *inner, g[-1]], g[0], g[-1]))
    weights = [float(chances @ np.interp(g, nodes, unit)) for unit in np.eye(len(nodes))]
    yield 0.0, max(0.0, 1 - sum(weights))
    yield from zip(nodes.tolist(), weights, strict=True)


def _many_value_cases(crowd: ShuffledEpoch, noise: CountNoise, cut: float) -> tuple[_Case, ...]:
    """For three values or more: all blocks of S together are one case."""
    numbers = likely(crowd.others, 2 * crowd.lie, cut)
    block_size = max(-(-len(numbers) // _BLOCKS), int(_SPLIT * (numbers[0] + 2 * noise.variance)))
    starts = np.arange(0, len(numbers), block_size)
    weights = np.add.reduceat(pmf(numbers, crowd.others, 2 * crowd.lie), starts)
    splits = laws(numbers[starts].astype(np.intp).tolist(), 0.5, cut)
    if not all(fits(split, noise) for split in splits):
        return ()
    counts = [TwoCounts(split, noise, cut) for split in splits]
    return (list(zip(counts, weights.tolist(), strict=True)),)


def _two_value_cases(crowd: ShuffledEpoch, noise: CountNoise, cut: float) -> tuple[_Case, ...]:
    """For two values: a case for each block of how many of the others hold v."""
    lies = crowd.others * crowd.lie
    block_size = _SPLIT * (1 + noise.variance / 2 / lies) if lies else 1.0
    stay, move = (
        laws(holder_counts, crowd.lie, cut)
        for holder_counts in zip(*splits(crowd, min(block_size, 1.0)), strict=True)
    )
    on_v = [convolved(moved_law, other[::-1]) for moved_law, other in zip(move, stay, strict=True)]
    if not all(fits(split, noise) for split in on_v):
        return ()
    return tuple(
        [(TwoCounts(direction, noise, cut), 1.0)]
        for split in on_v
        for direction in (split, split[::-1])
    )
