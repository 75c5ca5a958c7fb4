"""Codes of directions at real sizes: unbiased, and as near to the optimum as is said."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.vectors import cells_of, codes_at, optimum, squared_error_of
from hubbub.analysis.families.vector import Vectors
from hubbub.analysis.models.descent import moments_from_cells
from hubbub.mechanisms import Totals
from hubbub.mechanisms.vector_codes import VectorCodes

pytestmark = pytest.mark.thorough

REPORTS = 1_000_000
# Of 64 numbers, by the prototype before the product; of others as their number.
BEFORE = {1.0: 425.0, 2.0: 106.6, 4.0: 28.3, 8.0: 8.8}


@pytest.mark.parametrize("dimensions", [16, 64, 256])
def test_the_error_is_the_recorded_one_and_near_the_least(dimensions: int) -> None:
    for epsilon in range(1, 9):
        codes = codes_at(epsilon, dimensions)
        assert 1 < codes.squared_error / optimum(epsilon, dimensions) < 1.06
        if epsilon in BEFORE:
            expected = BEFORE[epsilon] * dimensions / 64
            assert codes.squared_error == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("dimensions", "epsilon"), [(16, 1.0), (16, 8.0), (64, 4.0)])
def test_a_million_reports_of_one_vector_are_unbiased_and_as_far_off(
    dimensions: int, epsilon: float
) -> None:
    """Each coordinate within 6 standard errors, which have that of the finite pool: 2e-7 in all."""
    codes = codes_at(epsilon, dimensions)
    chance = np.random.default_rng(1)
    vector = chance.standard_normal(dimensions)
    vector /= np.linalg.norm(vector)
    cells = cells_of(codes, vector, REPORTS, chance)
    estimate = moments_from_cells(codes, cells)
    assert (np.abs(estimate.mean - vector) < 6 * np.sqrt(estimate.variances)).all()
    error = squared_error_of(codes, vector, cells)
    assert error == pytest.approx(codes.squared_error, rel=0.05)


def test_a_finite_pool_is_no_worse_for_equal_people() -> None:
    """300,000 reports at epsilon 4: what the books err does not add to the mean's error.

    Squared errors over the claimed variance of 3 x 16 coordinates are within 5.2 sigma of 1; the
    books' own error alone would make them 2 to 4 times the least there is.
    """
    codes, people, chance = codes_at(4.0, 16), 300_000, np.random.default_rng(3)
    squares, worth = [], []
    for _ in range(3):
        vector = chance.standard_normal(16)
        vector /= np.linalg.norm(vector)
        cells = cells_of(codes, vector, people, chance).astype(int).tolist()
        figures = Vectors().figures(codes, Totals(cells=tuple(cells), reports=people), ())
        off = 2 * figures.estimates / people - 1 - vector
        squares.append(float(off @ off) * people / optimum(4.0, 16))
        worth.append((off * people / 2 / figures.stderrs) ** 2)
    assert np.mean(squares) < 1.5
    assert np.mean(worth) < 1 + 5.2 * math.sqrt(2 / 48)


@pytest.mark.parametrize(
    ("epsilon", "words", "books", "reports", "directions"),
    [
        (8.0, 256, 256, 7500, 6),
        (4.0, 64, 256, 120_000, 1),
        (4.0, 64, 64, 20_000, 50),
    ],
)
def test_errors_of_shared_books_are_as_large_as_answers_and_the_planner_state(
    epsilon: float, words: int, books: int, reports: int, directions: int
) -> None:
    """People are all alike, or in some directions; 80 pools, each with people of its own.

    A pool's mean square over 16 coordinates varies by three fifths, the mean of 80 by a fifteenth:
    a ratio outside [0.66, 1.5] has a chance of 1e-6. The mean of 20 varies by 13%: these are enough
    where both ratios are within a tenth of 1, which a true one of 1.5 is in 1%.
    """
    codes = VectorCodes(epsilon=epsilon, dimensions=16, words=words, books=books)
    chance, each = np.random.default_rng(11), reports // directions
    squares, claimed, promised, hold = [], [], [], []
    for run in range(80):
        pool = replace(codes, seed=f"{run}")
        people = chance.standard_normal((directions, 16))
        people /= np.linalg.norm(people, axis=1, keepdims=True)
        cells = cells_of(pool, people, each, chance)
        totals = Totals(cells=cells.astype(int).tolist(), reports=each * directions)
        figures = Vectors().figures(pool, totals, ())
        off = figures.estimates / totals.reports - (1 + people.mean(axis=0)) / 2
        stderrs = figures.stderrs / totals.reports
        squares.append((off**2).mean())
        claimed.append((stderrs**2).mean())
        hold.append((np.abs(off) < 1.96 * stderrs).mean())
        shares = np.full(directions, 1 / directions)
        values = [tuple(vector) for vector in people.tolist()]
        expected = Vectors().expected(pool, values, shares, totals.reports)
        promised.append((expected.stderrs**2).mean())
        ratios = [np.mean(stated) / np.mean(squares) for stated in (claimed, promised)]
        if run + 1 in {20, 40, 60} and all(1 / 1.1 < ratio < 1.1 for ratio in ratios):
            break
    assert all(0.66 < ratio < 1.5 for ratio in ratios), ratios
    assert np.mean(hold) > 0.9


@pytest.mark.parametrize("long", [1.0, 0.5])
def test_intervals_hold_for_very_many_equal_people(long: float) -> None:
    """100,000 reports by 64 books at epsilon 8: the books' error exceeds that of coins 90 times.

    40 pools; intervals of 95% hold in .785 of the coordinates at least: 4.8 sigma, if those of one
    pool hold together.
    """
    chance, people = np.random.default_rng(5), 100_000
    hold, squares, claimed = [], [], []
    codes = VectorCodes(epsilon=8.0, dimensions=4, words=128, books=64)
    for run in range(40):
        pool = replace(codes, seed=str(run))
        vector = chance.standard_normal(4)
        vector /= np.linalg.norm(vector)
        ahead = round(people * (1 + long) / 2)
        cells = cells_of(pool, vector, ahead, chance)
        cells += cells_of(pool, -vector, people - ahead, chance)
        totals = Totals(cells=tuple(cells.astype(int).tolist()), reports=people)
        figures = Vectors().figures(pool, totals, ())
        off = figures.estimates / people - (1 + long * vector) / 2
        hold.append((np.abs(off) < 1.96 * figures.stderrs / people).mean())
        squares.append((off**2).mean())
        claimed.append((figures.stderrs**2).mean() / people**2)
    assert np.mean(hold) > 0.785
    assert 0.2 < np.mean(squares) / np.mean(claimed) < 2


def test_the_stated_error_of_a_round_includes_the_error_of_its_books() -> None:
    """100,000 reports of one direction at epsilon 8: coins alone are a twentieth of the error.

    The mean of 12 squared scores is below chi2's millionth, 4.3.
    """
    codes, chance = codes_at(8.0, 12), np.random.default_rng(5)
    vector = chance.standard_normal(12)
    vector /= np.linalg.norm(vector)
    moments = moments_from_cells(codes, cells_of(codes, vector, 100_000, chance))
    assert ((moments.mean - vector) ** 2 / moments.variances).mean() < 4.3
