"""Few reports, each randomized by the shipping code: nothing is said too surely, nor too weakly.

Beside the best valid test: the score test of both counts, and Benjamini and Hochberg on its
p-values. And beside the width that is needed: that of the normal law at the value's own error.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import binom, false_discovery_control

from hubbub.analysis.answer import Answer
from hubbub.analysis.answering import answer_tiers
from hubbub.analysis.arrays import Floats
from hubbub.analysis.comparisons.change import changes
from hubbub.mechanisms import AnyMechanism, KeyedBits, Totals, tally
from tests.statistics.calibration.changes import ANY, DIFFERENCE, SMALL_P, SUREST
from tests.statistics.calibration.listed import judge_rows
from tests.statistics.calibration.shapes import built
from tests.statistics.calibration.statement import Counted, Setting, Statement, mistake

# Power and width are a part of the best there is, and not a chance: 1.15 times as wide is .87.
POWER = Statement("power beside the score test's", 0.95, ("Change.p_value", "Change.stderr"))
MARKS = Statement("marks beside those of its p-values", 0.95, ("Change.changed",))
NARROW = Statement("a difference as narrow as it may be", 0.87, ("Change.low", "Change.high"))
DETECTED_VALUES = Statement(
    "values marked beside those of the exact test", 0.95, ("ValueAnswer.detected",)
)
ROW = Statement("a row as narrow as it may be", 0.87, ("ValueAnswer.low", "ValueAnswer.high"))
TINY_P = mistake("no change, and p < .01", 0.01, ("Change.p_value", "Change.stderr"))


def randomized(
    mechanism: AnyMechanism, counts: Sequence[int], chance: np.random.Generator
) -> Totals:
    """The totals of devices of which so many hold each value."""
    coins = KeyedBits(chance.bytes(32))
    payloads = [
        mechanism.randomize(value, coins)
        for value, people in enumerate(counts)
        for _ in range(people)
    ]
    return tally(mechanism.layout, payloads)


def _answered(
    mechanism: AnyMechanism, shares: Sequence[float], reports: int, chance: np.random.Generator
) -> tuple[Answer, list[int]]:
    counts = chance.multinomial(reports, shares).tolist()
    names = [str(value) for value in range(len(counts))]
    return answer_tiers([(mechanism, randomized(mechanism, counts, chance))], names), counts


def score_test(mechanism: AnyMechanism, before: Answer, after: Answer) -> Floats:
    """Two-sided p-values of two counts of supports, were they of one population."""
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)  # type: ignore[attr-defined]
    sizes = np.array([before.reports, after.reports], dtype=np.float64)
    estimates = np.array([[row.estimate for row in answer.values] for answer in (before, after)])
    counts = estimates * (p - q) + sizes[:, None] * q
    both = counts.sum(axis=0) / sizes.sum()
    off = counts[1] / sizes[1] - counts[0] / sizes[0]
    error = np.sqrt(np.maximum(both * (1 - both), 1e-12) * (1 / sizes).sum())
    p_values: Floats = 2 * ndtr(-np.abs(off) / error)
    return p_values


def _exact_test(mechanism: AnyMechanism, answer: Answer) -> Floats:
    """One-sided p-values of supports, of values that nobody holds: binomial."""
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)  # type: ignore[attr-defined]
    estimates = np.array([row.estimate for row in answer.values])
    counts = np.rint(estimates * (p - q) + answer.reports * q)
    p_values: Floats = binom.sf(counts - 1, answer.reports, q)
    return p_values


def _moved_share(
    mechanism: AnyMechanism,
    sizes: tuple[int, int],
    share: float,
    later: float,
    chance: np.random.Generator,
) -> Iterator[Counted]:
    """The first value's share moves, or does not; all others are alike."""
    populations = [_with_equal_rest(fraction, mechanism.categories) for fraction in (share, later)]  # type: ignore[attr-defined]
    before, after = (
        _answered(mechanism, population, size, chance)[0]
        for population, size in zip(populations, sizes, strict=True)
    )
    result, true = changes(before, after), np.subtract(np.array(populations[1]), populations[0])
    holds = [change.low <= by <= change.high for change, by in zip(result, true, strict=True)]
    yield DIFFERENCE, sum(holds), len(holds)
    yield SUREST, holds[min(range(len(result)), key=lambda place: result[place].p_value)], 1
    if share == later:
        yield SMALL_P, result[0].p_value < 0.05, 1
        yield TINY_P, result[0].p_value < 0.01, 1
        yield ANY, any(change.changed for change in result), 1
        return
    best = score_test(mechanism, before, after)
    yield POWER, result[0].p_value < 0.001, bool(best[0] < 0.001)
    yield MARKS, result[0].changed, bool(false_discovery_control(best)[0] <= 0.05)
    marked = [change for change in result if change.changed]
    # Benjamini and Yekutieli (2005): of those that are picked, as many.
    reach = -float(ndtri(0.025 * max(len(marked), 1) / len(result)))
    needed = sum(2 * reach * change.stderr for change in marked)
    yield NARROW, needed, sum(change.high - change.low for change in marked)


def _rows(
    mechanism: AnyMechanism, share: float, reports: int, chance: np.random.Generator
) -> Iterator[Counted]:
    """The first row's width beside that of the first of so many."""
    size = mechanism.categories  # type: ignore[attr-defined]
    answer, counts = _answered(mechanism, _with_equal_rest(share, size), reports, chance)
    yield from judge_rows(answer.values, counts)
    first = answer.values[0]
    needed = (1.96 - float(ndtri(0.025 / size))) * first.stderr
    yield ROW, needed, first.high - first.low
    best = false_discovery_control(_exact_test(mechanism, answer)) <= 0.05
    marked = np.array([bool(value.detected) for value in answer.values])
    yield DETECTED_VALUES, int((marked & best).sum()), int(best.sum())


def _with_equal_rest(share: float, size: int) -> list[float]:
    return [share, *[(1 - share) / (size - 1)] * (size - 1)]


MOVES = (
    ("grr", 8.0, 8, (300, 300), 0.60, 0.75),
    ("grr", 8.0, 100, (120, 120), 0.40, 0.70),
    ("rr", 8.0, 2, (200, 200), 0.90, 0.78),
    ("unary.oue", 8.0, 16, (300, 300), 0.30, 0.50),
    ("grr", 8.0, 8, (100, 1000), 0.30, 0.50),
    ("subset", 6.0, 30, (300, 300), 0.20, 0.35),
    ("grr", 10.0, 4, (80, 80), 0.50, 0.78),
    ("unary.sue", 8.0, 64, (200, 600), 0.10, 0.22),
    ("grr", 8.0, 16, (1000, 1000), 0.02, 0.05),
)

SETTINGS: Sequence[Setting] = [
    *(
        Setting(
            f"{name} {epsilon:g}, {size} values, {old} and {new} reports, {share:.0%} to {to:.0%}",
            20,
            partial(_moved_share, built(name, epsilon, size), (old, new), share, to),
        )
        for name, epsilon, size, (old, new), share, later in MOVES
        for to in (share, later)
    ),
    *(
        Setting(
            f"{name} {epsilon:g}, {size} values, {reports} reports, {share:.0%} hold the first",
            20,
            partial(_rows, built(name, epsilon, size), share, reports),
        )
        for name, epsilon, size, reports, share in (
            ("grr", 8.0, 8, 300, 0.6),
            ("grr", 4.0, 40, 2000, 0.05),
            ("unary.oue", 3.0, 60, 800, 0.1),
            ("grr", 8.0, 100, 120, 0.4),
            ("grr", 6.0, 20, 400, 0.3),
            ("unary.oue", 8.0, 16, 300, 0.3),
        )
    ),
]
