"""The planner: before launch, which mechanism, how many reports, which epsilon.

For every mechanism that suits a question: the exact standard error of its estimates (its family's
`expected`), and the smallest share that will be detected. A value is detected if its estimate is
significantly above zero at 5%, corrected for the number of values; the smallest detectable share is
detected with a probability of 95%. For few reports of listed values both use the exact law by which
answers are judged, in whole reports. The recommendation is the rule of `mechanism = "auto"`: among
mechanisms within 5% of the least variance, the shortest payload, then the fewest cells.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import ceil, floor, inf, log10, sqrt
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.special import ndtri

from hubbub.analysis.arrays import Floats
from hubbub.analysis.binomials import binomial_tail, likely, pmf
from hubbub.analysis.families import family_for
from hubbub.analysis.families.joint_errors import coin_variances
from hubbub.analysis.uncertainty import intervals
from hubbub.analysis.uncertainty.limit_search import crossing
from hubbub.authoring.auto_mechanism import EQUAL
from hubbub.errors import BadParameter
from hubbub.mechanisms import AnyMechanism, Memoized, build
from hubbub.mechanisms.number_range import PLACES
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON
from hubbub.mechanisms.pure_protocols import Pure
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.metric_draft import MEANS, MetricDraft

Target = Callable[["Row"], float]
"""What of a row is to come down to something: its standard error, or its detectable share."""

CONFIDENCE: Final = 0.95
_NORMAL: Final = NormalDist()
MAX_REPORTS: Final = 1e15
_TRIES: Final = 50
PRECISION: Final = 4e-5
"""Precision of a number of reports or an epsilon that is computed, as a power of ten: .01%."""
# So many reports that a place of a range is nearly a whole number of them.
_MANY: Final = 1000
# As many as a retention over a year has; a covariance is their number cubed.
_MAX_RATIO_VALUES: Final = 54
# Estimates of either of two numbers by which a power is averaged.
_NODES: Final = 9
# Probability left out when a distribution is summed.
_CUT: Final = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One mechanism for a question. Errors are shares of all reports, or of a mean's range.

    Args:
        stderr: root mean square over all values, if all are equally frequent; of a mean, the
            largest.
        population: the same for the population, with sampling error; of a mean, the largest.
        rare: of a value that nobody holds.
        detectable: smallest share that is detected with a probability of 95%; of a mean, half the
            population's 95% interval; infinite if none is.
    """

    mechanism: str
    parameters: Mapping[str, Any]
    epsilon: float
    permanent_epsilon: float | None
    reports: float
    stderr: float
    population: float
    rare: float
    detectable: float
    payload_bytes: int
    cells: int


def plan(question: MetricDraft, epsilon: float, reports: float) -> list[Row]:
    """A row per mechanism, the best first. Raises BadParameter for a number out of range."""
    _check_reports(reports)
    rows = [
        row(question, name, parameters, reports)
        for name, parameters in question.suitable(epsilon, reports).items()
    ]
    return ranked(rows, lambda item: item.stderr**2)


def ranked(rows: Sequence[Row], cost: Target) -> list[Row]:
    """The recommended row, with the shortest payload among the cheapest; then others by cost."""
    least = min(map(cost, rows))
    equal = [row for row in rows if cost(row) <= EQUAL * least]
    best = min(equal, key=lambda item: (item.payload_bytes, item.cells, cost(item)))
    return [best, *sorted((row for row in rows if row is not best), key=cost)]


def row(question: MetricDraft, name: str, parameters: Mapping[str, Any], reports: float) -> Row:
    """The figures of one mechanism with these parameters."""
    mechanism = _build_cached(name, tuple(sorted(parameters.items())))
    values, even_shares = question.values(), question.even()
    uniform = np.full(len(values), 1 / len(values))
    errors = family_for(mechanism).expected(mechanism, values, uniform, reports)
    rare = float(errors.absent.max())
    variances = errors.stderrs**2
    if question.kind == "mean":
        # Of numbers that are alike on both sides of the middle, the variance is largest.
        coins = [mechanism.variance(place * _MANY, _MANY) / _MANY for place in PLACES]
        squares = [coin + (x - 0.5) ** 2 for coin, x in zip(coins, PLACES, strict=True)]
        total = np.full(1, max(squares) / reports)
    else:
        # `absent` has squares of all coordinates of 1 together, the most there are.
        total = variances + intervals.sampled(even_shares, 1) / reports
        total = errors.absent**2 if question.kind == "vector" else total
    population = float(np.sqrt(total.mean()))
    if question.kind in MEANS:
        smallest = _NORMAL.inv_cdf((1 + CONFIDENCE) / 2) * population
    else:
        # In ranges, errors differ between parts; take the largest.
        smallest = _detectable(question, mechanism, reports, int(np.argmax(errors.absent)))
    return Row(
        mechanism=name,
        parameters=parameters,
        epsilon=mechanism.privacy_loss(),
        permanent_epsilon=(mechanism.permanent_loss() if isinstance(mechanism, Memoized) else None),
        reports=reports,
        stderr=float(np.sqrt(variances.mean())),
        population=population,
        rare=rare,
        detectable=smallest,
        payload_bytes=mechanism.layout.payload_bytes,
        cells=mechanism.layout.size,
    )


def reports_for(
    question: MetricDraft,
    name: str,
    parameters: Mapping[str, Any],
    target: Target,
    most: float,
    *,
    precision: float = PRECISION,
) -> Row:
    """The fewest reports with which `target` is at most `most`; infinite if none suffice.

    `precision` is that of the number, as a power of ten.
    """
    if not target(last := row(question, name, parameters, MAX_REPORTS)) <= most:
        return replace(last, reports=inf)

    def excess(power: float) -> float:
        return _excess(target(row(question, name, parameters, ceil(10**power))), most)

    # Most errors halve with four times the reports.
    enough, _ = crossing(excess, log10(MAX_REPORTS), 0.0, precision, slope=-0.5)
    return row(question, name, parameters, ceil(10**enough))


def epsilon_for(
    question: MetricDraft,
    name: str,
    reports: float,
    target: Target,
    most: float,
    *,
    precision: float = PRECISION,
) -> Row | None:
    """The smallest epsilon with which `target` is at most `most`; None if none up to 16 suffices.

    `precision` is that of epsilon, as a power of ten. Raises BadParameter if `reports` is out of
    range.
    """
    _check_reports(reports)

    def row_at(epsilon: float) -> Row | None:
        try:
            return row(question, name, question.suitable(epsilon, reports)[name], reports)
        except BadParameter:  # no such parameters there, as a permanent epsilon below epsilon
            return None

    def excess(power: float) -> float:
        candidate = row_at(10**power)
        return inf if candidate is None else _excess(target(candidate), most)

    # A permanent epsilon bounds a report's from above.
    ends = MIN_EPSILON, min(MAX_EPSILON, (question.permanent_epsilon or inf) * 0.999)
    low, high = map(log10, ends)
    if excess(high) > 0:
        return None
    enough, _ = crossing(excess, high, low, precision)
    return row_at(10**enough)


def _excess(figure: float, most: float) -> float:
    """By how many powers of ten a figure is above the most that it may be."""
    return log10(figure / most) if figure > 0 else -inf


def moved_error(question: MetricDraft, plan_row: Row, effect: float) -> float:
    """The population's standard error of one estimate that an effect moves from its even share.

    It moves towards one half, where the error grows; of a mean the error is an upper bound of all.
    """
    if question.kind in MEANS:
        return plan_row.population
    mechanism, even_share = _row_mechanism(plan_row), float(question.even()[0])
    share = (
        even_share + min(effect, 1 - even_share)
        if 2 * even_share < 1
        else even_share - min(effect, even_share)
    )
    values, shares = question.holding(0, share)
    coins = family_for(mechanism).expected(mechanism, values, shares, plan_row.reports).stderrs[0]
    drawn = float(intervals.sampled(np.full(1, share), plan_row.reports)[0])
    return sqrt(float(coins) ** 2 + drawn)


def check_ratio(question: MetricDraft, ratio: tuple[float, float]) -> None:
    """Raises BadParameter for a question without ratios, or for shares or means that are none."""
    numerator, denominator = ratio
    if question.kind == "vector" and question.size == 2:  # noqa: PLR2004 of a rate
        is_ratio = numerator >= 0 and 0 < denominator <= 1
        figures = "a mean of at least 0 and then one in (0, 1], as shares of LENGTH"
    elif question.kind == "values" and question.size <= _MAX_RATIO_VALUES:
        is_ratio = 0 < numerator <= denominator <= 1
        figures = "two shares in (0, 1], the numerator's and then the larger denominator's"
    else:
        raise BadParameter(
            f"--ratio needs --values, {_MAX_RATIO_VALUES} at most, or --vector 2 LENGTH"
        )
    if not is_ratio:
        raise BadParameter(f"--ratio: write {figures}: --ratio 0.1 0.4")


def ratio_error(
    question: MetricDraft, plan_row: Row, ratio: tuple[float, float], *, is_apart: bool
) -> float:
    """The standard error of a ratio of listed values, or of the two means of a vector.

    `ratio` has the shares of the reports that the numerator and the denominator have, the first
    within the second; of a vector, their means as shares of its length. `is_apart` means that they
    are of two epochs with as many reports each.
    """
    numerator, denominator = ratio
    share = numerator / denominator
    if question.kind == "vector" or not is_apart:
        variance, _ = _ratio_variances(question, plan_row, share, denominator)
        return sqrt(float(polyval(share, variance))) / denominator
    first, second = np.eye(question.size)[:2]
    centred = first - first.mean(), second - second.mean()
    none, _, square = coin_variances(_row_mechanism(plan_row), 1, *centred)
    coins = none @ _rest_even(numerator, first) + share**2 * (
        square @ _rest_even(denominator, second)
    )
    drawn = denominator * share * (1 - share)
    return sqrt(float(coins) + drawn) / (denominator * sqrt(plan_row.reports))


def _ratio_variances(
    question: MetricDraft, plan_row: Row, ratio: float, denominator: float
) -> tuple[Floats, Floats]:
    """Variances of shares of the reports, for a ratio of listed values; or of a vector's two means.

    Returns that of numerator - ratio * denominator, whatever the true ratio, as coefficients of a
    polynomial in it; and the covariance of numerator and denominator if `ratio` is the true one.
    """
    if question.kind == "vector":
        # Errors are shares of the range, which is twice the length.
        square_error = (2 * plan_row.population) ** 2
        return np.array([square_error, 0.0, square_error]), square_error * np.eye(2)
    size, first = question.size, np.eye(question.size)[0]
    base = np.ones(size)
    if denominator < 1 and size > 2:  # noqa: PLR2004 others have none of both
        base[2:] = 0
    rest, others = base - first, 1 - base
    coins = coin_variances(_row_mechanism(plan_row), 1, first - first.mean(), base - base.mean())
    step = denominator * (first - rest / rest.sum())
    start = denominator * rest / rest.sum() + (1 - denominator) * others / max(others.sum(), 1.0)
    cubic = np.append(coins @ start, 0.0) + np.append(0.0, coins @ step)
    cubic += denominator * np.array([0.0, 1.0, -1.0, 0.0])
    none, mixed, square = coins @ (start + ratio * step)
    numerator = ratio * denominator
    joint = numerator * (1 - denominator) - mixed / 2
    covariance = np.array(
        [
            [none + numerator * (1 - numerator), joint],
            [joint, square + denominator * (1 - denominator)],
        ]
    )
    return cubic / plan_row.reports, covariance / plan_row.reports


def ratio_power(
    question: MetricDraft,
    plan_row: Row,
    ratios: tuple[float, float],
    denominator: float,
    reach: float,
) -> float:
    """Probability that the ratios of two arms, with `reports` each, are shown to differ.

    Each arm has its interval by `fieller`, `reach` standard errors to either end, at equally
    probable estimates of numerator and denominator: few reports vary both, and a ratio of listed
    values is at most 1, so that the power is not that of a normal law.
    """
    most = inf if question.kind == "vector" else 1.0
    scores = ndtri((np.arange(_NODES) + 0.5) / _NODES)
    scores /= scores.std()
    along, across = np.repeat(scores, _NODES), np.tile(scores, _NODES)
    arms = []
    for ratio in ratios:
        variance, covariance = _ratio_variances(question, plan_row, ratio, denominator)
        error = sqrt(max(float(covariance[1, 1]), _CUT**2))
        slope = float(covariance[0, 1]) / error
        own_error = sqrt(max(float(covariance[0, 0]) - slope**2, 0.0))
        estimates, low, high = intervals.fieller(
            ratio * denominator + slope * along + own_error * across,
            denominator + error * along,
            variance[:, None],
            np.full_like(along, error**2),
            reach=reach,
            most=most,
        )
        ends = np.array([np.fmin(np.fmax(estimates, low), high), low, high])
        # A ratio without bound shows no difference.
        arms.append(ends[:, np.isfinite(high)])
    control, moved = arms
    sides = np.repeat(control, moved.shape[1], axis=1), np.tile(moved, control.shape[1])
    _, low, high = intervals.difference_of(np.stack(sides, axis=1), (0.0, most))
    return float(((low > 0) | (high < 0)).sum() / len(along) ** 2)


def _row_mechanism(plan_row: Row) -> AnyMechanism:
    return _build_cached(plan_row.mechanism, tuple(sorted(plan_row.parameters.items())))


def _rest_even(share: float, value: Floats) -> Floats:
    """Shares of all values, if one has this share and the others are equally frequent."""
    return share * value + (1 - share) * (1 - value) / (len(value) - 1)


def _detectable(question: MetricDraft, mechanism: Any, reports: float, place: int) -> float:
    """The share s of one value at which s = z(corrected) sigma(0) + z(95%) sigma(s)."""
    corrected = _NORMAL.inv_cdf(1 - intervals.FALSE_DISCOVERY_RATE / question.size)
    if tail := family_for(mechanism).tail(mechanism, int(reports)):
        return _smallest_share(mechanism.channel, int(reports), tail, corrected)
    power = _NORMAL.inv_cdf(CONFIDENCE)

    def errors(share: float) -> tuple[float, float]:
        sample = question.holding(place, share)
        expectation = family_for(mechanism).expected(mechanism, *sample, reports)
        return float(expectation.absent[place]), float(expectation.stderrs[place])

    absent, _ = errors(0.0)
    current = corrected * absent
    for _ in range(_TRIES):
        if not current <= 1:
            return inf
        _, own_stderr = errors(current)
        following = corrected * absent + power * own_stderr
        if abs(following - current) <= 1e-6 * current:
            break
        current = following
    return current


def _smallest_share(channel: Pure, reports: int, tail: intervals.Tail, corrected: float) -> float:
    """The smallest detectable share, in whole reports, by the exact law of supports."""
    p, q = float(channel.p), float(channel.q)
    further = float(tail.reach(np.array([corrected]))[0]) * sqrt(reports * q * (1 - q))
    passing = floor(reports * q + further) + 1

    def chance(count: int) -> float:
        counts = likely(count, p, _CUT)
        return float(
            pmf(counts, count, p) @ binomial_tail(passing - 1 - counts, reports - count, q)
        )

    if chance(reports) < CONFIDENCE:
        return inf
    too_few, enough = 0, reports
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if chance(middle) >= CONFIDENCE else (middle, enough)
    return enough / reports


@lru_cache(maxsize=512)
def _build_cached(name: str, arguments: tuple[tuple[str, Any], ...]) -> AnyMechanism:
    return build(name, **dict(arguments))


def _check_reports(reports: float) -> None:
    if not 1 <= reports <= MAX_REPORTS:
        raise BadParameter(f"reports {reports} is outside [1, {MAX_REPORTS:.0e}]")


_MIN_TREE_CELLS: Final = 4
TREE_CELLS: Final[Any] = next(f.default for f in fields(PrefixTree) if f.name == "cells")
"""The usual cells of a prefix tree."""


def planned_tree(epsilon_of: Callable[[int], float]) -> PrefixTree:
    """The prefix tree with its usual cells, or the most whose totals are not too large.

    `epsilon_of` is the epsilon of a tree with a number of cells. Raises BadParameter if no number
    of cells has totals that are small enough.
    """
    cells = TREE_CELLS
    while True:
        try:
            return PrefixTree(epsilon=epsilon_of(cells), cells=cells)
        except BadParameter:
            if (cells := cells // 2) < _MIN_TREE_CELLS:
                raise
