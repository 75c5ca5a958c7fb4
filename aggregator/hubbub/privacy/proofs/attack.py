"""A distinguishing attack: how well real reports of two values can be told apart.

The same number of observations is drawn for each value. On the first half, the attacker searches
for the event that distinguishes the values best: a likelihood ratio above a threshold, one payload,
one cell, two equal reports. On the other half, which is independent of that choice, Clopper-Pearson
bounds on the event's frequency give a lower bound on epsilon:

    ln( lowest P[event | one] / highest P[event | other] )

It exceeds the true epsilon with a probability below `alarm`, whatever the mechanism. So a bound
above the claim refutes the claim; a bound below it proves nothing: enumeration.py proves. Source:
Jagielski, Ullman, Oprea (NeurIPS 2020), section 4; Clopper and Pearson (1934).
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from math import exp, inf, log
from typing import Any, Final

from scipy.special import betaincinv

from hubbub.mechanisms import AnyMechanism, Layout

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
    features: list[list[dict[str, Any]]] = [[], []]
    half = observations // 2

    @lru_cache(_REMEMBERED)
    def score(payload: bytes) -> float:
        """The log-likelihood ratio of a payload, cached since payloads repeat."""
        cells = mechanism.layout.cells(payload)
        likelihood, other = (mechanism.likelihood(value, cells) for value in values)
        return log(likelihood / other) if likelihood and other else inf if likelihood else -inf

    for _ in range(2 * half):
        for place, value in enumerate(values):
            features[place].append(_features(draw(value), mechanism.layout, score))
        yield None
    best = Attacked(-inf, -inf, "nothing")
    for first, other, sign in ((0, 1, 1), (1, 0, -1)):
        event, label = _choose(features[first][:half], features[other][:half], sign, alarm / 4)
        hits, others = (sum(map(event, features[place][half:])) for place in (first, other))
        lower = _bound(hits, others, half, alarm / 4)
        likely = min(round(half / 2), round(half * min(1.0, exp(-claim))))
        reach = _bound(min(half, round(likely * exp(claim))), likely, half, alarm / 4)
        if lower > best.lower:
            best = Attacked(lower, reach, label)
    yield best


def _features(reports: Reports, layout: Layout, score: Callable[[bytes], float]) -> dict[str, Any]:
    """Features of one person's reports that an attacker may use."""
    last = reports[-1]
    trait: set[Hashable] = {("cell", cell) for cell in layout.cells(last)}
    trait.add(("payload", last))
    if any(report == other for report, other in pairwise(reports)):
        trait.add("two reports in a row are alike")
    return {"score": sum(map(score, reports)), "traits": trait}


Event = Callable[[dict[str, Any]], bool]


def _has(features: dict[str, Any], trait: Hashable, present: bool) -> bool:  # noqa: FBT001 or absent
    return (trait in features["traits"]) is present


def _passes(features: dict[str, Any], sign: int, cut: float) -> bool:
    return bool(sign * features["score"] >= cut)


def _choose(
    first: list[dict[str, Any]], other: list[dict[str, Any]], sign: int, alarm: float
) -> tuple[Event, str]:
    """The event that distinguishes best on these observations, and its name."""
    half = len(first)
    counts, other_counts = (
        Counter(t for features in part for t in features["traits"]) for part in (first, other)
    )
    options: list[tuple[float, Event, str]] = []
    for trait in counts.keys() | other_counts.keys():
        name = trait if isinstance(trait, str) else f"one {trait[0]}"
        hits, others = counts[trait], other_counts[trait]
        for present, prefix in ((True, ""), (False, "not ")):
            bound = _bound(hits, others, half, alarm)
            options.append((bound, partial(_has, trait=trait, present=present), prefix + name))
            hits, others = half - hits, half - others
    scores = sorted(sign * features["score"] for features in (*first, *other))
    for cut in sorted({scores[i] for i in range(0, 2 * half, max(1, half // _THRESHOLDS))}):
        passing = partial(_passes, sign=sign, cut=cut)
        bound = _bound(sum(map(passing, first)), sum(map(passing, other)), half, alarm)
        options.append((bound, passing, "a likelihood ratio past a threshold"))
    best = max(options, key=lambda option: option[0])
    return best[1], best[2]


def _bound(hits: int, other: int, trials: int, alarm: float) -> float:
    """Log of the lowest probability of the event divided by the highest of the other."""
    if not hits:
        return -inf
    lowest = float(betaincinv(hits, trials - hits + 1, alarm))
    highest = float(betaincinv(other + 1, trials - other, 1 - alarm)) if other < trials else 1.0
    return log(lowest / highest) if lowest > 0 else -inf
