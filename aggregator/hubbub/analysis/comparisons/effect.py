"""Effect of an experiment's arm, with intervals that hold at every look.

Reports of two arms are independent, and the difference of their estimates varies from look to look
like a Brownian motion in the information 1 / variance, whatever the sizes of the arms. A normal
mixture (`intervals`, Robbins 1970; Howard and others 2021) bounds it at all looks at once. Of a
conversion or a rate that holds for numerator - ratio * denominator, of which the true ratio has the
mean 0: Fieller's interval of each arm, of which the difference follows (`difference_of`). The
error rate is divided among all rows (Bonferroni): with the requested confidence, every interval of
every row contains the truth at every look. A device that reports in several epochs is assumed to
repeat its value, which is the worst case for a difference between people (`sampled`).

A mixture of multinomials over other shares tests whether the arms' sizes fit their weights (Lindon
and Malek 2022): with true weights the p-value is below p at any look with probability at most p.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, lgamma, log, sqrt
from typing import Final

import numpy as np
from scipy.special import ndtri

from hubbub.analysis.answer import CONFIDENCE, OF_NUMBERS, Answer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.percentiles import (
    divided_ends,
    max_difference,
    percentile_shifts,
    percentiles_of,
)
from hubbub.analysis.ranks import Ranks
from hubbub.analysis.uncertainty.intervals import (
    Bounds,
    anytime_confidence,
    difference_of,
    reach_of,
)

EFFECT_PERCENTILES: Final = (50.0, 95.0)
"""Of numbers in parts, what an effect is on if the metric names no percentiles."""
SHOWN_POWER: Final = 0.8
"""Probability with which a detectable effect is shown."""
_POWER_REACH: Final = float(ndtri(SHOWN_POWER))
"""An effect that is this many standard errors beyond its interval's end is shown in 80%."""
_TWO: Final = 2
# From which on an effect changes by less than a thousandth: each at least halves what is left.
_ROUNDS: Final = 12
# Less than any variance of a difference: a fit of one near an end of its range may be below 0.
_LEAST: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One measure of a metric in the control arm and in another, and the difference.

    Args:
        measure: "share of VALUE", "mean", "mean of COORDINATE", or a percentile as "p50"; of a
            funnel "share from STEP to STEP", of a rate "EVENT per EVENT".
        of_share: whether that is a share, and not a number in the metric's unit.
        difference: measured minus control.
        low, high: of the population's difference; valid at every look, for all rows together.
        shown: whether the interval excludes 0.
        detectable: smallest difference that this many reports show with a probability of 80%. The
            error is that of the share, ratio or mean with the difference, towards the middle of its
            range; of a percentile it is that of an arm whose numbers all move by the difference.
        reaches: end of the range that a percentile's interval reaches, beyond which the truth may
            lie: "low", "high" or "both"; "" for none.
    """

    measure: str
    of_share: bool
    control: float
    measured: float
    difference: float
    low: float
    high: float
    shown: bool
    detectable: float
    reaches: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmEstimate:
    """The estimates of one arm: an answer, or of a funnel or a rate its figures by measure.

    `ranks` are of the population, None without parts of a range; their `percentiles` are compared.
    A figure without bounds is None, and `most` is the largest possible one.
    """

    answer: Answer | None = None
    ranks: Ranks | None = None
    figures: Mapping[str, Bounds | None] = field(default_factory=dict)
    most: float = 1.0
    percentiles: Sequence[float] = EFFECT_PERCENTILES


def rows_of(estimate: ArmEstimate) -> int:
    """Number of measures that are compared."""
    if estimate.ranks:
        return len(estimate.percentiles)
    return len(_measures(estimate.answer) if estimate.answer else estimate.figures)


def _measures(answer: Answer) -> list[tuple[int, str]]:
    """The place of each compared value, and the name of its measure."""
    values = [value.value for value in answer.values]
    if answer.kind == "mean":
        return [(0, "mean")]
    if answer.kind == "vector":
        return [(place, f"mean of {value}") for place, value in enumerate(values)]
    # With two values, one share follows from the other.
    first = 1 if len(values) == _TWO else 0
    return [(place, f"share of {value}") for place, value in enumerate(values)][first:]


def effect_confidence(
    confidence: float, rows: int, reports: tuple[float, float], repeats: int, fewest: int
) -> float:
    """The confidence of plain intervals that hold at every look, for all rows together.

    `confidence` is of the whole experiment, which has so many `rows`; `reports` are of both arms.
    An arm had `fewest` at the first look, and a device sends `repeats` at most.
    """
    harmonic = 2 / (1 / max(reports[0], 1) + 1 / max(reports[1], 1))
    growth = harmonic / fewest
    # With repeated answers the variance falls more slowly than reports grow: between these bounds.
    growths = (max(growth / repeats, 1e-3), max(growth, 1e-3))
    return anytime_confidence(1 - (1 - confidence) / rows, growths, 1)


def detectable_effect(
    stderr_at: Callable[[float], float], rows: int, reports: float, fewest: int
) -> float:
    """Smallest effect that two such arms show with a probability of 80%, in the errors' unit.

    `stderr_at` returns the standard error of the population's figure, from the `reports` of one
    arm, each from another person, if an effect moved the figure by its argument; `rows` and
    `fewest` are as in `effect_confidence`.
    """
    reach = reach_of(effect_confidence(CONFIDENCE, rows, (reports, reports), 1, fewest))
    control = stderr_at(0.0) ** 2

    def growth(effect: Floats) -> Floats:
        return np.array([stderr_at(float(effect[0])) ** 2 - control])

    return float(_detectable(np.array([reach * sqrt(2 * control)]), reach, growth)[0])


def _detectable(halves: Floats, reach: float, growth: Callable[[Floats], Floats]) -> Floats:
    """Smallest differences that are shown with a probability of 80%.

    `halves` are half the widths of the differences' intervals, and `growth` returns by how much the
    variances of differences of such sizes are larger than those of these.
    """
    variances = (halves / reach) ** 2

    def differences(start: Floats, errors: float) -> Floats:
        effect = start
        for _ in range(_ROUNDS):
            effect = start + errors * np.sqrt(np.maximum(variances + growth(effect), _LEAST))
        return effect

    return differences(differences(np.zeros_like(halves), reach), _POWER_REACH)


def effects(control: ArmEstimate, other: ArmEstimate, confidence: float) -> list[Effect]:
    """Differences of bounded measures between two arms, whose `effect_confidence` is given."""
    rows, reach = list(_differences(control, other, confidence)), reach_of(confidence)
    answer = control.answer
    of_share = not control.ranks and (
        answer.kind not in OF_NUMBERS if answer else control.most == 1
    )
    halves = np.array([(high - low) / 2 for _, _, _, (_, low, high), _ in rows])
    before, after = control.answer, other.answer
    if before and after and (before.figures or before.place) and not control.ranks:
        variances, growth = _variances(before, after)
        # An interval that ends at 0 is narrower than its error.
        halves = np.maximum(halves, reach * np.sqrt(variances))
    elif control.figures and rows:
        growth = _ratio_growth(control.figures, other.figures, reach)
    else:
        growth = np.zeros_like
    if control.ranks and other.ranks:
        arms = control.ranks, other.ranks
        detectable = np.array([_min_shift(*arms, each, confidence) for each in control.percentiles])
    else:
        detectable = _detectable(halves, reach, growth)
    return [
        Effect(
            measure=measure,
            of_share=of_share,
            control=before,
            measured=after,
            difference=difference,
            low=low,
            high=high,
            shown=low > 0 or high < 0,
            detectable=smallest,
            reaches=reaches,
        )
        for (measure, before, after, (difference, low, high), reaches), smallest in zip(
            rows, detectable.tolist(), strict=True
        )
    ]


def _min_shift(control: Ranks, other: Ranks, percentile: float, confidence: float) -> float:
    """Smallest difference of a percentile that is shown with a probability of 80%, up and down.

    Both arms then err against it by what has a probability of 20%: an arm whose shares below all
    edges are too small by an error has the interval of the percentile that is larger by it.
    """
    arms = control, other
    rows = [percentiles_of(ranks, [percentile], confidence)[0] for ranks in arms]
    widths = [
        np.ptp(np.interp([row.low, row.high], ranks.edges, ranks.shares))
        for ranks, row in zip(arms, rows, strict=True)
    ]
    errors = np.array(widths) / (2 * reach_of(confidence))
    shifts = 100 * _POWER_REACH * errors**2 / max(float(np.hypot(*errors)), _LEAST)
    erring = [
        [
            divided_ends(ranks, percentiles_of(ranks, [moved], confidence)[0])
            for ranks, moved in zip(
                arms,
                np.clip(percentile + sign * shifts, _LEAST, 100 - _LEAST).tolist(),
                strict=True,
            )
        ]
        for sign in (1, -1)
    ]
    differences = []
    for lower, upper in ((0, 1), (1, 0)):
        (_, highs), (lows, _) = erring[0][lower], erring[1][upper]
        apart = rows[upper].estimate - rows[lower].estimate
        differences.append(apart + max_difference(lows, highs))
    return max(differences)


def _variances(control: Answer, other: Answer) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Variances of the differences of shares or a mean, and their growth by such an effect."""
    low, high = control.span if control.place and control.span else (0.0, 1.0)

    def arm_variance(answer: Answer) -> tuple[Floats, Callable[[Floats], Floats]]:
        """The clipped shares of one arm, and the variances of shares."""
        places = [place for place, _ in _measures(answer)]
        reports, figures = max(answer.reports, 1), answer.figures
        if answer.place:
            law = answer.place.of_population(reports, answer.repeats)
        else:
            assert figures is not None  # noqa: S101 as `effects` has it
            law = figures.of_shares(reports, answer.repeats)
        shares = np.clip(law.estimates[places] / reports, 0.0, 1.0)
        absent, rise = law.absent[places] / reports, law.growth[places] / reports
        return (
            shares,
            lambda share: (high - low) ** 2 * (absent**2 + rise * share - law.curvature * share**2),
        )

    (before, control_variance), (after, variance) = arm_variance(control), arm_variance(other)

    def growth(effect: Floats) -> Floats:
        moved = before + np.where(before < 1 / 2, effect, -effect) / (high - low)
        return variance(np.clip(moved, 0.0, 1.0)) - variance(after)

    return np.maximum(control_variance(before) + variance(after), 0.0), growth


def _ratio_growth(
    control: Mapping[str, Bounds | None], other: Mapping[str, Bounds | None], reach: float
) -> Callable[[Floats], Floats]:
    """How the variances of differences between ratios grow if an effect is so large.

    Both ends of an interval have their own errors (Wilson), so that they show how those grow.
    """
    pairs = [
        (before[0], *after)
        for measure, before in control.items()
        if before and (after := other[measure])
    ]
    old, new, low, high = np.array(pairs).T
    slope = ((high - new) ** 2 - (new - low) ** 2) / np.maximum(high - low, _LEAST) / reach**2
    return lambda effect: np.abs(slope) * effect + slope * (old - new)


def _differences(
    control: ArmEstimate, other: ArmEstimate, confidence: float
) -> Iterator[tuple[str, float, float, Bounds, str]]:
    """Yields measure, control, the other arm, difference, and what a percentile reaches."""
    if control.ranks and other.ranks:
        for row in percentile_shifts(control.ranks, other.ranks, control.percentiles, confidence):
            bounds = row.difference, row.low, row.high
            yield f"p{row.percentile:g}", row.before, row.after, bounds, row.reaches
    elif control.answer and other.answer:
        rows = changes(control.answer, other.answer, together=True)
        for place, measure in _measures(control.answer):
            change = rows[place]
            bounds = change.difference, change.low, change.high
            yield measure, change.before, change.after, bounds, ""
    else:
        for measure, before in control.figures.items():
            if before and (after := other.figures[measure]):
                columns = difference_of(np.array([before, after]).T, (0.0, control.most))
                difference, low, high = map(float, columns)
                yield measure, before[0], after[0], (difference, low, high), ""


def ratio_p_value(reports: Sequence[float], weights: Sequence[int]) -> float:
    """Upper bound on the probability of arm sizes so far from their weights, at any look.

    `reports` are those of each arm, with each device counted once; arms of weight 0 have none.
    """
    live = [(count, weight) for count, weight in zip(reports, weights, strict=True) if weight]
    if any(count for count, weight in zip(reports, weights, strict=True) if not weight):
        return 0.0
    total = sum(weight for _, weight in live)
    pseudo_total = float(len(live))
    prior = [pseudo_total * weight / total for _, weight in live]
    # Log of the likelihood ratio of the counts: best shares against the weights.
    evidence = lgamma(pseudo_total) - lgamma(pseudo_total + sum(count for count, _ in live))
    for (count, weight), pseudo in zip(live, prior, strict=True):
        evidence += lgamma(pseudo + count) - lgamma(pseudo) - count * log(weight / total)
    return exp(-max(evidence, 0.0))
