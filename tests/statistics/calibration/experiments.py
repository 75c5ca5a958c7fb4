"""Experiments: the interval of an effect, which holds at every look, and the check of arms' sizes.

People are new in each epoch, or the same all the time, each with an answer of their own.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from math import hypot, inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from hubbub.analysis.answering import answer_tiers
from hubbub.analysis.comparisons.effect import (
    ArmEstimate,
    Effect,
    detectable_effect,
    effect_confidence,
    effects,
    ratio_p_value,
)
from hubbub.analysis.families import draw
from hubbub.analysis.families.joint_errors import Joint
from hubbub.analysis.funnels_retention_and_rates import conversions, rate_of
from hubbub.analysis.ranks import ranks_of
from hubbub.mechanisms import AnyMechanism, Totals, build
from tests.statistics.calibration.percentiles import SHAPES, Floats
from tests.statistics.calibration.statement import Counted, Setting, Statement, mistake

EFFECT = Statement(
    "95% interval of an effect, at all of 12 looks",
    0.95,
    tuple(f"EffectRow.{name}" for name in ("low", "high", "difference", "measured")),
)
FALSE_EFFECT = mistake(
    "arms alike, and an effect is shown at any of 12 looks", 0.05, ("EffectRow.shown",)
)
POWER = Statement("an effect as large as is detectable is shown", 0.75, ("EffectRow.detectable",))
PLANNED = Statement("an effect as large as is planned is shown", 0.75, POWER.fields)
RATIO = mistake(
    "arms of their weights, and p < .05 at any of 12 looks",
    0.05,
    ("Experimented.ratio_p_value", "Experimented.ratio_fits"),
)
LOOKS, FEWEST = 12, 100
_MOST_VALUES = 4  # more are parts of a range


def _estimate(
    mechanism: AnyMechanism,
    totals: Totals,
    edges: Sequence[float],
    confidence: float,
    repeats: int,
    *,
    steps: Sequence[str] = (),
) -> ArmEstimate:
    tiers = [(mechanism, totals)]
    if mechanism.VALUES == "vectors":
        reports, rate = totals.reports, rate_of(tiers, repeats)
        figure = rate.figure("", below="", dates="", reports=reports, confidence=confidence)
        return ArmEstimate(figures={"rate": figure.bounds}, most=inf)
    if steps:
        rows = conversions(Joint(tiers, repeats), steps, repeats, "", confidence)
        return ArmEstimate(figures={row.figure: row.bounds for row in rows})
    values = [f"v{number}" for number in range(getattr(mechanism, "categories", 0))] or None
    ranks = ranks_of(tiers, edges, repeats=repeats, population=True) if edges else None
    return ArmEstimate(answer=answer_tiers(tiers, values, (), confidence, repeats), ranks=ranks)


class Arms(NamedTuple):
    """Two arms. codes: what is reported. populations: the chance of each. truths: the effects.

    same: whether the same people report in each epoch. steps: of a funnel.
    """

    mechanism: AnyMechanism
    codes: Sequence[Any]
    populations: tuple[Sequence[float], Sequence[float]]
    truths: Sequence[float]
    same: bool
    steps: Sequence[str] = ()


def _looked(arms: Arms, people: int, chance: np.random.Generator) -> Iterator[Counted]:
    """Twelve epochs of so many people an arm, and a look after each."""
    mechanism, truths = arms.mechanism, arms.truths
    edges = list(range(len(arms.codes) + 1)) if len(arms.codes) > _MOST_VALUES else []
    totals: list[Totals | None] = [None, None]
    missed = shown_effects = False
    ratio = 1.0
    counts = [chance.multinomial(people, shares) for shares in arms.populations]
    for look in range(1, LOOKS + 1):
        sizes = chance.multinomial(2 * people, [0.5, 0.5])
        for arm, shares in enumerate(arms.populations):
            if not arms.same:
                counts[arm] = chance.multinomial(sizes[arm], shares)
            drawn = draw(mechanism, arms.codes, counts[arm].tolist(), chance)
            totals[arm] = _sum(totals[arm], drawn)
        live = [arm_totals for arm_totals in totals if arm_totals]
        reports = (live[0].reports, live[1].reports)
        surer = effect_confidence(0.95, len(truths), reports, look, FEWEST)
        first, second = (
            _estimate(mechanism, arm_totals, edges, surer, look, steps=arms.steps)
            for arm_totals in live
        )
        rows = effects(first, second, surer)
        pairs = list(zip(rows, truths, strict=True))
        missed |= any(not row.low <= truth <= row.high for row, truth in pairs)
        shown_effects |= any(row.shown for row in rows)
        ratio = min(ratio, ratio_p_value(reports, (1, 1)))
    yield EFFECT, not missed, 1
    if not any(truths):
        yield FALSE_EFFECT, shown_effects, 1
    if not arms.same:
        yield RATIO, ratio < 0.05, 1


def _sum(before: Totals | None, more: Totals) -> Totals:
    if before is None:
        return more
    cells = np.add(before.cells, more.cells).tolist()
    return Totals(cells=cells, reports=before.reports + more.reports)


def _powered(
    mechanism: AnyMechanism, shares: Sequence[float], people: int, chance: np.random.Generator
) -> Iterator[Counted]:
    """One look at an effect as large as an arm's interval says would be shown in 4 of 5 cases.

    And at one as large as the plan says. The last value gains from the first.
    """
    rows = len(shares) if len(shares) > 2 else 1
    surer = effect_confidence(0.95, rows, (people, people), 1, FEWEST)
    towards = np.zeros(len(shares))
    towards[0], towards[-1] = -1, 1

    def row(effect: float) -> Effect:
        arms = [
            draw(mechanism, range(len(shares)), chance.multinomial(people, own).tolist(), chance)
            for own in (shares, (shares + effect * towards).tolist())
        ]
        first, second = (_estimate(mechanism, totals, [], surer, 1) for totals in arms)
        return effects(first, second, surer)[-1]

    yield POWER, row(row(0.0).detectable).shown, 1

    if mechanism.FAMILY == "mean":
        return

    def stderr_at(effect: float) -> float:
        share = shares[-1] + min(effect, shares[0])
        stderr = sqrt(mechanism.variance(people * share, people)) / people
        return hypot(stderr, sqrt(share * (1 - share) / people))

    planned = detectable_effect(stderr_at, rows, people, FEWEST)
    yield PLANNED, row(planned).shown, 1


def _shifted(
    mechanism: AnyMechanism, shares: Floats, people: int, chance: np.random.Generator
) -> Iterator[Counted]:
    """The same of p95, by which all numbers of an arm move up."""
    edges = np.arange(len(shares) + 1.0)
    below = np.append(0.0, np.cumsum(shares / shares.sum()))
    surer = effect_confidence(0.95, 2, (people, people), 1, FEWEST)

    def arm(move: float) -> ArmEstimate:
        moved = np.diff(np.interp(edges - move, edges, below, left=0.0, right=1.0))
        counts = chance.multinomial(people, moved / moved.sum()).tolist()
        totals = draw(mechanism, range(len(shares)), counts, chance)
        return _estimate(mechanism, totals, edges.tolist(), surer, 1)

    def row(effect: float) -> Effect:
        return effects(arm(0.0), arm(effect), surer)[-1]

    yield POWER, row(row(0.0).detectable).shown, 1


def _converted(
    mechanism: AnyMechanism, people: int, chance: np.random.Generator
) -> Iterator[Counted]:
    """The same of a conversion, of which 1 in 15 devices reach the last step."""
    surer = effect_confidence(0.95, 3, (people, people), 1, FEWEST)

    def row(effect: float) -> Effect:
        later = 0.3 * (1 / 15 + effect)
        arms = [
            draw(
                mechanism,
                range(3),
                chance.multinomial(people, [0.7, 0.3 - last, last]).tolist(),
                chance,
            )
            for last in (0.02, later)
        ]
        first, second = (
            _estimate(mechanism, totals, [], surer, 1, steps=("visit", "cart", "paid"))
            for totals in arms
        )
        [answer] = (row for row in effects(first, second, surer) if "cart to" in row.measure)
        return answer

    yield POWER, row(row(0.0).detectable).shown, 1


EVEN = [1 / 16] * 16
SLOPE = [2 * (n + 0.5) / 256 for n in range(16)]
PERCENTILES = [16 * 0.5**0.5 - 8, 16 * 0.95**0.5 - 16 * 0.95]
_RR = ([0.7, 0.3], [0.7, 0.3])
_CASES: Sequence[tuple[str, int, Arms]] = [
    ("rr 1, alike, new people", 60, Arms(build("rr", epsilon=1.0), (0, 1), _RR, [0.0], same=False)),
    ("rr 4, alike, the same", 60, Arms(build("rr", epsilon=4.0), (0, 1), _RR, [0.0], same=True)),
    (
        "grr 2, 4 values alike, new people",
        50,
        Arms(
            build("grr", epsilon=2.0, categories=4),
            range(4),
            ([0.1, 0.2, 0.3, 0.4],) * 2,
            [0.0] * 4,
            same=False,
        ),
    ),
    (
        "mean.table 1, alike, the same",
        50,
        Arms(
            build("mean.table", epsilon=1.0, low=0.0, high=1.0),
            (0.0, 1.0),
            ([0.5, 0.5],) * 2,
            [0.0],
            same=True,
        ),
    ),
    (
        "grr 4, percentiles of 16 parts, new people",
        30,
        Arms(
            build("grr", epsilon=4.0, categories=16),
            range(16),
            (EVEN, SLOPE),
            PERCENTILES,
            same=False,
        ),
    ),
    (
        "grr 2, a funnel, new people",
        50,
        Arms(
            build("grr", epsilon=2.0, categories=3),
            range(3),
            ([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]),
            [0.6 - 0.5, 0.5 - 0.4, 0.3 - 0.2],
            same=False,
            steps=("visit", "cart", "paid"),
        ),
    ),
    (
        "rr 1, a funnel from 0 to 1, new people",
        50,
        Arms(
            build("rr", epsilon=1.0),
            range(2),
            ([1.0, 0.0], [0.0, 1.0]),
            [1.0],
            same=False,
            steps=("visit", "paid"),
        ),
    ),
    (
        "vector.codes 4, a rate, the same",
        20,
        Arms(
            build("vector.codes", epsilon=4.0, dimensions=2, books=16, max_length=30.0),
            ([5.0, 20.0], [0.0, 20.0]),
            ([0.5, 0.5],) * 2,
            [0.0],
            same=True,
        ),
    ),
]
SETTINGS: Sequence[Setting] = [
    *(Setting(f"effect, {name}", runs, partial(_looked, arms, 400)) for name, runs, arms in _CASES),
    *(
        Setting(f"effect, as large as is detectable{label}", runs, partial(_powered, *mechanism_of))
        for label, runs, mechanism_of in (
            ("", 150, (build("rr", epsilon=2.0), [0.6, 0.4], 20_000)),
            (", of 2%", 300, (build("rr", epsilon=6.0), [0.98, 0.02], 1000)),
            *(
                (
                    f", of the mean of 3% at the far end, {name}",
                    300,
                    (build(name, epsilon=6.0, low=0.0, high=1.0), [0.97, 0.03], 300),
                )
                for name in ("mean.one_bit", "mean.table")
            ),
            (
                ", of one of 20 rare values",
                300,
                (build("grr", epsilon=8.0, categories=20), [0.43, *[0.03] * 19], 1000),
            ),
            (
                ", of one of 20 rare values, unary.oue 3",
                300,
                (build("unary.oue", epsilon=3.0, categories=20), [0.43, *[0.03] * 19], 2000),
            ),
        )
    ),
    Setting(
        "effect on p95, as large as is detectable, grr 4",
        300,
        partial(_shifted, build("grr", epsilon=4.0, categories=16), SHAPES["smooth"](16), 2000),
    ),
    Setting(
        "effect on a conversion, as large as is detectable, grr 6",
        300,
        partial(_converted, build("grr", epsilon=6.0, categories=3), 1000),
    ),
]
