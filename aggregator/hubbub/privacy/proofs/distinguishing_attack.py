"""Distinguishing attacks: how well reports of two values, or two whole epochs, can be told apart.

The same number of observations is drawn for each value. On the first half, the attacker searches
for the event that distinguishes the values best: a likelihood ratio above a threshold, one payload,
one cell, two equal reports. On the other half, which is independent of that choice, Clopper-Pearson
bounds on the event's frequency give a lower bound on epsilon:

    ln( lowest P[event | one] / highest P[event | other] )

It exceeds the true epsilon with a probability below `alarm`, whatever the mechanism. So a bound
above the claim refutes the claim; a bound below it proves nothing: enumeration.py proves. Source:
Jagielski, Ullman, Oprea (NeurIPS 2020), section 4; Clopper and Pearson (1934).

Two whole epochs differ in one person, who holds v in one and w in the other. Everybody else holds a
third value (if there are two values: w), which is worst if lies are many, or w too, which is worse
if they are few. Reports not counted as honest are known, and removed. So is, for strings, the hash
function of the person's report. For codes, v and w are opposite vectors, no word is near both, and
a report names the one that its word is near. Of noise dummies those of v and w are drawn.

The attacker counts how many more reports name v than w; if everybody else holds w, how many name v,
since the others make w's count noisy. If further dummies fix a sum, a second attacker has all
counts, of dummies as the shuffler draws them, knows who lied, and weighs the counts of two steps
and the sum of all by their laws. The bound is then of epsilon at delta:

    ln( (lowest P[passed | v] - delta) / highest P[passed | w] )

At a delta of 1e-8 no feasible number of epochs comes near the claim; at one hundredth it does, and
the account is the same. The probabilities are the shipping mechanism's; numpy draws with them,
which protects nobody. Source: with a delta as in Nasr et al. (IEEE S&P 2021), section 3.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from math import exp, inf, log
from typing import Any, Final

import numpy as np
from scipy.special import betaincinv

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families import family_for
from hubbub.analysis.families.draw_totals import Counts
from hubbub.mechanisms import AnyMechanism
from hubbub.privacy.noise_dummies_account import law_of
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.sealing.dummy_laws import ValueNoise

_THRESHOLDS: Final = 64
_REMEMBERED: Final = 1 << 16  # payloads

Reports = tuple[bytes, ...]
"""What is seen of one person: payloads, in order."""
Draw = Callable[[Any], Reports]


@dataclass(frozen=True, slots=True)
class Attacked:
    """Result of the best attack: a lower bound on epsilon, in nats, and its event.

    `reach` is the bound that would have resulted if this event alone reached the claim; if it is
    far below the claim, there were too few observations.
    """

    lower: float
    reach: float
    event: str


def attack(
    mechanism: AnyMechanism,
    values: tuple[Any, Any],
    draw: Draw,
    *,
    observations: int,
    claim: float,
    alarm: float,
) -> Iterator[Attacked | None]:
    """Attacks in both directions; yields None per observation, for progress, then the result.

    `draw` returns one person's reports for a value; `observations` is their number per value;
    `alarm` bounds the probability of a bound above the truth.
    """
    views: list[list[dict[str, Any]]] = [[], []]
    half = observations // 2

    @lru_cache(_REMEMBERED)
    def score(payload: bytes) -> float:
        """The log-likelihood ratio of a payload, cached since payloads repeat."""
        cells = mechanism.layout.cells(payload)
        likelihood, other = (mechanism.likelihood(value, cells) for value in values)
        return log(likelihood / other) if likelihood and other else inf if likelihood else -inf

    for _ in range(2 * half):
        for place, value in enumerate(values):
            reports = draw(value)
            last = reports[-1]
            trait: set[Hashable] = {("cell", cell) for cell in mechanism.layout.cells(last)}
            trait.add(("payload", last))
            if any(report == other for report, other in pairwise(reports)):
                trait.add("two reports in a row are alike")
            views[place].append({"score": sum(map(score, reports)), "traits": trait})
        yield None
    best = Attacked(-inf, -inf, "nothing")
    for first, other, sign in ((0, 1, 1), (1, 0, -1)):
        event, label = _choose(views[first][:half], views[other][:half], sign, alarm / 4)
        count, other_count = (sum(map(event, views[place][half:])) for place in (first, other))
        lower = _bound(count, other_count, half, alarm / 4)
        likely = min(round(half / 2), round(half * min(1.0, exp(-claim))))
        reach = _bound(min(half, round(likely * exp(claim))), likely, half, alarm / 4)
        if lower > best.lower:
            best = Attacked(lower, reach, label)
    yield best


Event = Callable[[dict[str, Any]], bool]


def _has(view: dict[str, Any], trait: Hashable, present: bool) -> bool:  # noqa: FBT001 or absent
    return (trait in view["traits"]) is present


def _passes(view: dict[str, Any], sign: int, cut: float) -> bool:
    return bool(sign * view["score"] >= cut)


def _choose(
    first: list[dict[str, Any]], other: list[dict[str, Any]], sign: int, alarm: float
) -> tuple[Event, str]:
    """The event that distinguishes best on these observations, and its name."""
    half = len(first)
    counts, other_counts = (
        Counter(t for view in part for t in view["traits"]) for part in (first, other)
    )
    options: list[tuple[float, Event, str]] = []
    for trait in counts.keys() | other_counts.keys():
        name = trait if isinstance(trait, str) else f"one {trait[0]}"
        count, other_count = counts[trait], other_counts[trait]
        for present, prefix in ((True, ""), (False, "not ")):
            bound = _bound(count, other_count, half, alarm)
            options.append((bound, partial(_has, trait=trait, present=present), prefix + name))
            count, other_count = half - count, half - other_count
    scores = sorted(sign * view["score"] for view in (*first, *other))
    for cut in sorted({scores[i] for i in range(0, 2 * half, max(1, half // _THRESHOLDS))}):
        passing = partial(_passes, sign=sign, cut=cut)
        bound = _bound(sum(map(passing, first)), sum(map(passing, other)), half, alarm)
        options.append((bound, passing, "a likelihood ratio past a threshold"))
    best = max(options, key=lambda option: option[0])
    return best[1], best[2]


def _bound(count: int, other: int, trials: int, alarm: float) -> float:
    """Log of the lowest probability of the event divided by the highest of the other."""
    if not count:
        return -inf
    lowest = float(betaincinv(count, trials - count + 1, alarm))
    highest = float(betaincinv(other + 1, trials - other, 1 - alarm)) if other < trials else 1.0
    return log(lowest / highest) if lowest > 0 else -inf


_CUTS: Final = 256
# Of more steps the person holds no end.
_FEW_STEPS: Final = 4
_AT_ONCE: Final = 1 << 18  # epochs: tens of megabytes
COUNTS: Final = "how many name the one value"
SUM: Final = "how many name two steps, and the sum of all steps"
"""What an attacker decides by."""
# Losses of numbers of dummies are compared in millionths of a nat; impossible ones count as this.
_FINE: Final = 1e6
_CERTAIN: Final = 50.0


Neighbours = tuple[Counts, Counts]
"""The attacker's counts, for epochs in which the person holds v, and as many with w."""


def draw_neighbours(
    mechanism: AnyMechanism,
    crowd: ShuffledEpoch,
    values: tuple[Any, Any, Any],
    epochs: int,
    rng: np.random.Generator,
) -> Neighbours:
    """Draws epochs of a crowd.

    `values` are the person's in the first kind of epoch, in the second, and everybody else's;
    `epochs` is the number of each kind.
    """
    near_chances = family_for(mechanism).near_chances

    def on_both(value: Any, likelier: int = 1) -> list[float]:
        near_shares = [likelier * chance for chance in near_chances(mechanism, value, values[:2])]
        return [*near_shares, max(0.0, 1 - sum(near_shares))]

    are_equal = values[1] == values[2]
    even_shares = [1 / crowd.categories, 1 / crowd.categories, 1 - 2 / crowd.categories]

    def draw_losses(value: Any, epochs: int) -> Counts:
        difference = np.zeros(epochs, dtype=np.int64)
        for reports, chances in (
            (crowd.others, on_both(values[2])),
            (crowd.dummies, even_shares),
            (1, on_both(value, crowd.groups)),
        ):
            if reports:
                counts = rng.multinomial(reports, chances, epochs)
                difference += counts[:, 0] - (0 if are_equal else counts[:, 1])
        if crowd.noise_dummies:
            law = law_of(crowd.noise_dummies)
            on_v, on_w = rng.choice(len(law), (2, epochs), p=law)
            difference += on_v - (0 if are_equal else on_w)
        return difference

    parts = [min(_AT_ONCE, epochs - first) for first in range(0, epochs, _AT_ONCE)]
    v, w = (np.concatenate([draw_losses(value, count) for count in parts]) for value in values[:2])
    return v, w


def draw_sums(noise: ValueNoise, epochs: int, rng: np.random.Generator) -> Neighbours:
    """Draws as `draw_neighbours` of a mean with a fixed sum of dummies: losses in place of counts.

    The person holds the first or the last step, or the second or the last but one, if dummies of
    the ends, which further ones hide, are not needed to move the sum.
    """
    assert noise.of_sum  # noqa: S101 it is asked of these alone
    each, of_sum = (np.append(law_of(law), 0.0) for law in (noise.each, noise.of_sum))
    inner = int(noise.values > _FEW_STEPS)
    v, w = inner, noise.values - 1 - inner
    steps = np.arange(noise.values)
    middle = noise.expected * (noise.values - 1) // 2 - noise.of_sum.reach

    def draw_losses(own_value: int) -> Counts:
        numbers = {
            law: iter(rng.choice(len(law_of(law)), number, p=law_of(law)).tolist())
            for law, number in ((noise.each, epochs * noise.values), (noise.of_sum, epochs))
        }
        counts = np.array([noise.draw(lambda law: next(numbers[law])) for _ in range(epochs)])
        counts[:, own_value] += 1
        secret = counts @ steps - middle
        losses = (
            _loss(each, counts[:, v])
            - _loss(each, counts[:, w])
            + _log(of_sum, secret - v)
            - _log(of_sum, secret - w)
        )
        return np.round(np.clip(losses, -_CERTAIN, _CERTAIN) * _FINE).astype(np.int64)

    return draw_losses(v), draw_losses(w)


def _loss(law: Floats, counts: Counts) -> Floats:
    """Of each count, how much likelier it is with the person's report than without."""
    return _log(law, counts - 1) - _log(law, counts)


def _log(law: Floats, numbers: Counts) -> Floats:
    """Logarithms of the probabilities of numbers; of a law whose last probability is 0."""
    is_inside = (numbers >= 0) & (numbers < len(law))
    return np.log(np.maximum(law[np.where(is_inside, numbers, -1)], np.exp(-2 * _CERTAIN)))


def attack_epochs(
    drawn: Neighbours, *, delta: float, claim: float, alarm: float, event: str = COUNTS
) -> Attacked:
    """Attacks in both directions; `event` is what the attacker decides by.

    `claim` is the account's epsilon at `delta`; `alarm` bounds the chance of a false bound.
    """
    v, w = drawn
    half = len(v) // 2
    best = Attacked(-inf, -inf, "nothing")
    for first, other in ((v, w), (-w, -v)):
        thresholds = np.unique(
            np.quantile(first[:half], np.linspace(0, 1, _CUTS), method="nearest")
        )
        passed = _passed_counts(first[:half], thresholds)
        other_passed = _passed_counts(other[:half], thresholds)
        cut = thresholds[[int(np.argmax(_bounds(passed, other_passed, half, delta, alarm / 4)))]]
        trials = len(first) - half
        count, other_count = _passed_counts(first[half:], cut), _passed_counts(other[half:], cut)
        lower = float(_bounds(count, other_count, trials, delta, alarm / 4)[0])
        reached = np.minimum(trials, np.round(trials * delta + exp(claim) * other_count))
        reach = float(_bounds(reached, other_count, trials, delta, alarm / 4)[0])
        if lower > best.lower:
            best = Attacked(lower, reach, event)
    return best


def _passed_counts(counts: Counts, cuts: Counts | Floats) -> Floats:
    """Number of counts that reach each threshold."""
    numbers_below = np.searchsorted(np.sort(counts), cuts, side="left")
    return np.asarray(len(counts) - numbers_below, dtype=np.float64)


def _bounds(
    counts: Floats, other_counts: Floats, trials: int, delta: float, alarm: float
) -> Floats:
    """Log of the lowest probability, minus delta, divided by the highest of the other."""
    lowest = np.where(
        counts > 0, betaincinv(np.maximum(counts, 1), trials - counts + 1, alarm), 0.0
    )
    min_left = np.maximum(trials - other_counts, 1)
    highest = np.where(
        other_counts < trials, betaincinv(other_counts + 1, min_left, 1 - alarm), 1.0
    )
    mask = lowest > delta
    bounds = np.full(len(counts), -inf)
    bounds[mask] = np.log((lowest[mask] - delta) / highest[mask])
    return bounds
