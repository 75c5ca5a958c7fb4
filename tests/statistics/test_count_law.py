"""Ends of intervals of few reports, for every number of supports, beside the exact law."""

from dataclasses import replace
from math import exp
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom, hypergeom

from hubbub.analysis.answering import answer_tiers
from hubbub.analysis.arrays import Floats
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.families import family_for
from hubbub.analysis.percentiles import shares_below
from hubbub.analysis.ranks import ranks_of
from hubbub.analysis.uncertainty.tails import CountLaw, equal_chance_scores
from hubbub.mechanisms import Totals
from tests.statistics.calibration.shapes import built

SETTINGS = [
    ("grr", 1.0, 5, 300),
    ("grr", 3.0, 5, 300),
    ("grr", 5.0, 5, 300),
    ("grr", 7.0, 5, 300),
    ("grr", 8.0, 100, 120),
    ("grr", 10.0, 4, 80),
    ("unary.oue", 5.0, 8, 200),
    ("unary.sue", 4.0, 8, 200),
    ("rr", 1.0, 2, 60),
]


def _law(channel: Any, reports: int, *, sampled: bool) -> Floats:
    """How likely each number of supports is, in a row for each number of holders."""
    p, q, counts = float(channel.p), float(channel.q), np.arange(reports + 1)
    if sampled:
        return np.array([binom.pmf(counts, reports, q + t / reports * (p - q)) for t in counts])
    return np.array(
        [
            np.convolve(
                binom.pmf(counts[: t + 1], t, p),
                binom.pmf(counts[: reports - t + 1], reports - t, q),
            )
            for t in counts
        ]
    )


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("doubt", [0.025, pytest.param(0.0025, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("name", "epsilon", "size", "reports"), SETTINGS)
def test_ends_are_those_of_the_exact_law_to_a_report(
    name: str, epsilon: float, size: int, reports: int, doubt: float, *, sampled: bool
) -> None:
    """The least and largest truth whose tail is above the doubt; and none is missed more often."""
    mechanism: Any = built(name, epsilon, size)
    figures = family_for(mechanism).figures(
        mechanism, Totals(cells=[0] * mechanism.layout.size, reports=reports), ()
    )
    figures = figures.of_shares(reports, 1) if sampled else replace(figures, of_counts=False)
    law, worth = _law(mechanism.channel, reports, sampled=sampled), float(-ndtri(doubt))
    truths, upper, lower = np.arange(reports + 1), law[:, ::-1].cumsum(1)[:, ::-1], law.cumsum(1)
    below, above = np.zeros(reports + 1), np.zeros(reports + 1)
    for supports in truths.tolist():
        estimate = (supports - reports * float(mechanism.channel.q)) / mechanism.channel.gap
        figures.estimates[0] = estimate
        low, high = (float(end[0]) for end in figures.between(reports, down=worth, up=worth))
        if not sampled:
            ends = replace(figures, of_counts=True).between(reports, down=worth, up=worth)
            inside = truths[(low <= truths) & (truths <= high)]
            clipped = np.clip(estimate, 0, reports)
            assert ends[0][0] == min(inside[inside <= clipped].tolist(), default=low)
            assert ends[1][0] == max(inside[inside >= clipped].tolist(), default=high)
        below += law[:, supports] * (truths < low - 1e-9)
        above += law[:, supports] * (truths > high + 1e-9)
        if 0 <= estimate <= reports:
            least = int(np.argmax(upper[:, supports] > doubt))
            most = int(reports - np.argmax(lower[::-1, supports] > doubt))
            assert max(least - 1.1, 0) <= low <= least + 0.1
            assert most - 0.1 <= high <= min(most + 1.1, reports)
    assert max(below.max(), above.max()) <= 1.1 * doubt


@pytest.mark.parametrize("edge", [1, 2])
@pytest.mark.parametrize(
    ("epsilon", "reports"), [(6.0, 100), pytest.param(8.0, 300, marks=pytest.mark.thorough)]
)
def test_a_share_below_an_edge_of_few_reports_holds_by_the_exact_law(
    epsilon: float, reports: int, edge: int
) -> None:
    """Of those who reported: without the half of a report it would hold in .82 to .90."""
    mechanism: Any = built("grr", epsilon, 4)
    own, other = (
        float(first + (edge - 1) * mechanism.channel.q)
        for first in (mechanism.channel.p, mechanism.channel.q)
    )
    law = _law(SimpleNamespace(p=own, q=other), reports, sampled=False)
    truths, holds = np.arange(reports + 1), np.zeros(reports + 1)
    for supports in truths.tolist():
        cells = [0] * 4
        cells[edge - 1], cells[edge] = supports, reports - supports
        ranks = ranks_of([(mechanism, Totals(cells=cells, reports=reports))], range(5))
        assert ranks
        [row] = shares_below(ranks, [float(edge)], 0.95)
        is_inside = (row.low * reports <= truths + 1e-9) & (truths - 1e-9 <= row.high * reports)
        holds += law[:, supports] * is_inside
    assert holds.min() >= 0.945


@pytest.mark.thorough
def test_two_values_change_together_and_hardly_ever_by_chance() -> None:
    """Of 100 reports and 10: every pair of counts, at shares on both sides of a half."""
    mechanism, sizes = built("rr", 3.0, 2), (100, 10)
    channel: Any = mechanism.channel  # type: ignore[attr-defined]
    before, after = (
        [
            answer_tiers(
                [(mechanism, Totals(cells=[reports - yes, yes], reports=reports))], ["n", "y"]
            )
            for yes in range(reports + 1)
        ]
        for reports in sizes
    )
    pairs = [[changes(first, second) for second in after] for first in before]
    no, yes = (
        np.array([[row[place].p_value for row in line] for line in pairs]) for place in (0, 1)
    )
    np.testing.assert_allclose(no, yes, rtol=1e-6)
    for share in (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98):
        chance = float(channel.q) + share * channel.gap
        likely = np.outer(*(binom.pmf(np.arange(size + 1), size, chance) for size in sizes))
        for doubt in (0.05, 0.01, 0.001):
            assert likely[yes < doubt].sum() <= 1.05 * doubt


def test_a_change_from_nobody_to_everybody_holds_beside_dummies_by_the_exact_law() -> None:
    """Of 100 reports and 20 dummies, which err more than reports that hardly ever lie."""
    mechanism: Any = built("rr", 8.0, 2)
    counts, lies = np.arange(18), float(mechanism.channel.q)
    law = np.convolve(binom.pmf(counts, 20, 0.5), binom.pmf(counts, 100, lies))[3:18]
    before, after = (
        [
            answer_tiers(
                [(mechanism, Totals(cells=cells[::sign], reports=100, dummies=20))], ["n", "y"]
            )
            for cells in ([120 - count, count] for count in counts[3:].tolist())
        ]
        for sign in (1, -1)
    )
    holds = np.array([[changes(old, new)[1].high >= 1 - 1e-9 for new in after] for old in before])
    assert 0.93 <= np.outer(law, law)[holds].sum() <= 0.98


def test_ends_near_all_of_a_billion_reports_keep_their_digits() -> None:
    p = exp(12) / (exp(12) + 1)
    law = CountLaw(p=p, q=1 - p, reports=10**9, sampled=True)
    low, high = law.between(np.array([10**9 + 6143.25]), down=1.96, up=1.96)
    # All but one support it: fewer than 5.57 or .025 are missing, by the exact law.
    assert (low[0], high[0]) == pytest.approx((1e9 + 6138.7, 1e9 + 6144.2), abs=0.1)


@pytest.mark.parametrize(("before", "after"), [(200, 200), (30, 300), (300, 30)])
def test_differences_of_unequal_groups_are_as_improbable_as_by_the_exact_law(
    before: int, after: int
) -> None:
    """All pairs of supports of rr: never too sure by a tenth, nor with less power than mid-p.

    The score test is up to nine times too sure; with one side's tail of the normal law, a rise from
    a small group was found in .11 of runs instead of .21.
    """
    pair = np.indices((before + 1, after + 1)).reshape(2, -1)
    laws = [CountLaw(p=0.9, q=0.1, reports=n, sampled=True) for n in (before, after)]
    estimates = (pair - 0.1 * np.array([[before], [after]])) / 0.8
    p_values = 2 * ndtr(-equal_chance_scores(laws, estimates))
    total = pair.sum(axis=0)
    least = [
        law(pair[1], before + after, after, total)
        - hypergeom.pmf(pair[1], before + after, after, total) / 2
        for law in (hypergeom.cdf, lambda x, *sizes: hypergeom.sf(x - 1, *sizes))
    ]
    mid = np.minimum(2 * np.minimum(*least), 1)

    def share(p: Floats, level: float, chances: tuple[float, float]) -> float:
        ways = [binom.pmf(x, n, c) for x, n, c in zip(pair, (before, after), chances, strict=True)]
        return float(np.prod(ways, axis=0)[p <= level].sum())

    for chance in (0.2, 0.3, 0.45):
        for level in (0.05, 0.001):
            assert share(p_values, level, (chance, chance)) <= 1.1 * level
            for move in (0.1, -0.08):
                moved = chance, chance + move
                assert share(p_values, level, moved) >= 0.97 * share(mid, level, moved) - 0.003
