"""Percentiles beside the best published law, HaarHRR, which is built here alone: as a reference.

HaarHRR (Cormode, Kulkarni, Srivastava, VLDB 2019): a report tells one coefficient of one level of
the Haar tree by Hadamard response, so that a coefficient has the variance of levels over reports
and over tanh(epsilon/2)^2, and a share below an edge is a sum of one coefficient a level.
"""

from itertools import product
from math import log2, tanh
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hubbub.analysis.estimators.distribution import chances
from hubbub.analysis.percentiles import percentile_shifts, percentiles_of, shares_below
from hubbub.analysis.ranks import ranks_of
from hubbub.analysis.ranks.ranks_by_fit import IndexRanks
from hubbub.authoring.auto_mechanism import choose
from hubbub.mechanisms import Totals, build
from tests.statistics.calibration.percentiles import SHAPES, draw_ranks

Floats = npt.NDArray[np.float64]

PARTS, RUNS, PERCENTILES = 64, 30, (10.0, 25.0, 50.0, 75.0, 90.0, 95.0)
MANY = 1_000_000
BOUNDS = {0.5: 1.86, 1.0: 1.58, 2.0: 1.07, 4.0: 0.42}
"""By epsilon, the least error of a share below an edge, for numbers of the smooth shape, in errors
of HaarHRR; root mean square over the edges."""
FEW = [(1.0, 1000, "spiky"), (1.0, MANY, "smooth"), (4.0, 30_000, "smooth")]
ALL = [
    (epsilon, reports, shape)
    for place, (epsilon, reports) in enumerate(product(BOUNDS, (1000, 30_000, MANY)))
    for shape in tuple(SHAPES)[place % 2 :: 2]
]


def _haar_widths(
    true_counts: Floats, epsilon: float, chance: np.random.Generator
) -> dict[float, int]:
    """By percentile, how many parts its interval has, by the same rule as ours."""
    parts, reports, levels = len(true_counts), true_counts.sum(), int(log2(len(true_counts)))
    deviation = np.sqrt(levels / reports) / tanh(epsilon / 2)
    edges = np.arange(parts + 1)
    shares, variances = np.append(0.0, np.cumsum(true_counts)) / reports, np.zeros(parts + 1)
    for level in range(levels):
        node = parts >> level
        inside = edges % node / node
        weights = np.minimum(inside, 1 - inside)
        coefficients = chance.normal(0, deviation, 1 << level)
        shares = shares + weights * coefficients[np.minimum(edges // node, len(coefficients) - 1)]
        variances += weights**2
    shares = np.clip(shares, 0.0, 1.0)
    shares = (np.maximum.accumulate(shares) + np.minimum.accumulate(shares[::-1])[::-1]) / 2
    reach = 1.96 * deviation * np.sqrt(variances)
    widths = {}
    for percentile in PERCENTILES:
        below = shares + reach < percentile / 100
        above = shares - reach > percentile / 100
        below[0], below[-1], above[-1] = True, False, True
        low = int(np.argmin(below)) - 1
        high = parts - int(np.argmin(above[::-1])) + 1
        widths[percentile] = max(high - low, 1)
    return widths


@pytest.mark.parametrize(
    ("parts", "epsilon", "reports", "shape"),
    [
        *((PARTS, *case) for case in FEW),
        *(pytest.param(PARTS, *c, marks=pytest.mark.thorough) for c in ALL if c not in FEW),
        *(pytest.param(128, 1.0, 100_000, s, marks=pytest.mark.thorough) for s in SHAPES),
    ],
)
def test_intervals_are_at_most_a_tenth_wider_than_those_of_the_best_published_law(
    parts: int, epsilon: float, reports: int, shape: str
) -> None:
    """By the mechanism that `auto` chooses: `wave`, or `haar` of many reports."""
    chance = np.random.default_rng([parts, reports, int(10 * epsilon), len(shape)])
    counts = SHAPES[shape](parts)
    parameters = {"low": 0.0, "high": float(parts), "buckets": parts}
    name = choose(epsilon, None, {**parameters, "reports": reports}).best.mechanism
    mechanism = build(name, epsilon=epsilon, **parameters)
    width = best = 0.0
    for _ in range(RUNS):
        true_counts = chance.multinomial(reports, counts / counts.sum()).astype(np.float64)
        ranks = draw_ranks(mechanism, true_counts, chance)
        width += sum(row.high - row.low for row in percentiles_of(ranks, PERCENTILES, 0.95))
        best += sum(_haar_widths(true_counts, epsilon, chance).values())
    assert width <= 1.1 * best


def test_a_share_by_a_fit_is_at_most_a_tenth_wider_than_by_the_best_published_law() -> None:
    """Near the peak, with two degrees of freedom, which held in .993, it was 1.22 times as wide."""
    chance, widths = np.random.default_rng(2), []
    mechanism = build("wave", epsilon=2.0, low=0.0, high=float(PARTS), buckets=PARTS)
    shape = SHAPES["heavy-tailed"](PARTS)
    for _ in range(10):
        counts = chance.multinomial(10_000, shape / shape.sum()).astype(float)
        ranks = draw_ranks(mechanism, counts, chance)
        widths += [row.high - row.low for row in shares_below(ranks, [1.0, 3.0, 9.0], 0.95)]
    assert isinstance(ranks, IndexRanks)
    assert np.mean(widths) < 1.1 * 2 * 1.96 * ranks._haar_error


def test_a_share_by_haar_has_the_interval_of_least_squares() -> None:
    """By the deviance of a fit, 95% intervals beside spikes held in 91 to 96% of 120 drawings."""
    chance = np.random.default_rng(1)
    mechanism = build("haar", epsilon=1.0, low=0.0, high=float(PARTS), buckets=PARTS)
    shape = SHAPES["spiky"](PARTS)
    ranks = draw_ranks(
        mechanism, chance.multinomial(10_000, shape / shape.sum()).astype(float), chance
    )
    assert isinstance(ranks, IndexRanks)
    estimates, stderrs = ranks._squares
    for row in shares_below(ranks, [10.0, 20.0, 40.0], 0.95):
        estimate, reach = estimates[int(row.below)], 1.96 * stderrs[int(row.below)]
        assert row.low == pytest.approx(min(row.share, estimate - reach), abs=1e-4)
        assert row.high == pytest.approx(max(row.share, estimate + reach), abs=1e-4)


@pytest.mark.thorough
def test_an_interval_holds_where_only_empty_parts_follow_that_of_the_percentile() -> None:
    """By the law of least squares; by means alone it held in 93%, and in 90% of 256 parts."""
    chance, place, runs = np.random.default_rng(45), PARTS // 2 - 1, 2000
    mechanism: Any = build("haar", epsilon=1.0, low=0.0, high=float(PARTS), buckets=PARTS)
    counts = np.zeros(PARTS)
    counts[[place, -1]] = 15_003, 14_997
    drawn = draw_ranks(mechanism, counts, chance)
    assert isinstance(drawn, IndexRanks)
    shares, (_, weights) = np.append(0.0, np.cumsum(counts / counts.sum())), drawn._linear
    holds = 0
    for _ in range(runs):
        ranks = IndexRanks(drawn.tiers, 0, 0.0)
        errors = weights @ chance.normal(size=weights.shape[1])
        object.__setattr__(ranks, "_linear", (shares + errors, weights))
        [row] = percentiles_of(ranks, [50.0], 0.95)
        holds += row.low <= place and place + 1 <= row.high
    assert holds / runs > 0.96 - 4.8 * (0.96 * 0.04 / runs) ** 0.5  # 1e-6 by chance


@pytest.mark.thorough
def test_a_shift_holds_wherever_in_a_wide_part_the_numbers_are() -> None:
    """From the low end of the median's part to its high end, the median moves by a whole part."""
    mechanism, chance = build("grr", epsilon=2.0, categories=4), np.random.default_rng(8)
    counts = np.array([1000, 2000, 1500, 500])
    before, after = (draw_ranks(mechanism, counts, chance) for _ in range(2))
    [shift] = percentile_shifts(before, after, [50.0], 0.95)
    assert shift.low <= -1 < 1 <= shift.high


def test_shares_of_many_parts_by_haar_lean_to_no_side() -> None:
    """The mean error of p95 over 50 drawings is within 5 of its standard errors: 6e-7.

    A fit that is not below zero leaked to the empty parts at the other end: by 6 of them.
    """
    parts, chance = 256, np.random.default_rng(4)
    mechanism = build("haar", epsilon=2.0, low=0.0, high=float(parts), buckets=parts)
    counts = np.rint(100_000 * SHAPES["smooth"](parts) / SHAPES["smooth"](parts).sum())
    below = np.cumsum(counts) / counts.sum()
    part = int(np.searchsorted(below, 0.95))
    errors = []
    for _ in range(50):
        ranks = draw_ranks(mechanism, counts, chance)
        assert isinstance(ranks, IndexRanks)
        errors.append((ranks.shares[part + 1] - below[part]) / ranks._squares[1][part + 1])
    assert abs(np.mean(errors)) < 5 / 50**0.5


@pytest.mark.parametrize("epsilon", BOUNDS)
def test_least_squares_reach_the_cramer_rao_bound_of_wave(epsilon: float) -> None:
    """Where its intervals are wider than HaarHRR's, the reason is the law, not the estimator."""
    mechanism: Any = build("wave", epsilon=epsilon, low=0.0, high=float(PARTS), buckets=PARTS)
    shares = SHAPES["smooth"](PARTS) / SHAPES["smooth"](PARTS).sum()
    rows = chances(mechanism)
    inverse = np.linalg.inv(rows.T @ (rows / (rows @ shares)[:, None]))
    below = np.tri(PARTS + 1, PARTS, -1)[1:-1]
    # The information of one report on the reporters' shares: the people's own chance is none.
    least = below @ (inverse - np.diag(shares)) @ below.T
    ranks = draw_ranks(mechanism, MANY * shares, np.random.default_rng(1))
    assert isinstance(ranks, IndexRanks)
    stderrs = ranks._squares[1][1:-1]
    assert np.square(stderrs).mean() == pytest.approx(np.trace(least) / len(least) / MANY, rel=0.01)
    haar = ranks._haar_error
    assert np.sqrt(np.square(stderrs).mean()) / haar == pytest.approx(BOUNDS[epsilon], abs=0.03)


@pytest.mark.parametrize("parts", [2, 4])
def test_the_stated_error_of_a_share_below_an_edge_holds_with_few_buckets(parts: int) -> None:
    """Squared scores of 600 drawings at the truth: their mean is within 5 sigma of 1.

    Of estimates that err against each other; as if they did not, it would be 2 and 1.33.
    """
    mechanism: Any = build("grr", epsilon=1.0, categories=parts)
    chance = np.random.default_rng(6)
    p, q, each = float(mechanism.channel.p), float(mechanism.channel.q), 2000 // parts
    rows = np.where(np.eye(parts), p, q)
    squares = []
    for _ in range(600):
        cells = np.sum([chance.multinomial(each, row / row.sum()) for row in rows], axis=0)
        totals = Totals(cells=cells.tolist(), reports=parts * each)
        ranks = ranks_of([(mechanism, totals)], range(parts + 1))
        assert ranks
        squares.append(ranks.score(parts // 2, 0.5) ** 2)
    assert abs(np.mean(squares) - 1) < 5 * (2 / 600) ** 0.5
