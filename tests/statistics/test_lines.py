"""Lines through days are nearer to the truth than the days, with weekdays, steps and gaps."""

from math import sqrt

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.analysis.arrays import Floats
from hubbub.analysis.trends.smoothed_line import MIN_POINTS, line_through
from tests.statistics.calibration.lines import (
    Panel,
    estimate_one_day_per_person,
    everything,
    flat,
    rising,
    seasonal,
    stepping,
    walking,
)

pytestmark = pytest.mark.thorough

PEOPLE, DAYS = 100_000, 128
FIRST = 20_000


def _errors(panel: Panel, people: int, epsilon: float, runs: int) -> tuple[float, float]:
    """Root of the mean square error of a day's share: of the line, and of the days alone."""
    chance = np.random.default_rng(11)
    lines, days = [], []
    for _ in range(runs):
        truth = panel(DAYS, chance)
        estimates, variances = estimate_one_day_per_person(truth, people, epsilon, chance)
        line = line_through(range(FIRST, FIRST + DAYS), estimates, variances, 0.95)
        lines.append(((line.middle - truth) ** 2).mean())
        days.append(((estimates - truth) ** 2).mean())
    return sqrt(np.mean(lines)), sqrt(np.mean(days))


@pytest.mark.parametrize(("panel", "most"), [(rising, 0.0125), (everything, 0.0145)])
def test_one_day_per_period_with_a_line_has_the_promised_error(panel: Panel, most: float) -> None:
    line, days = _errors(panel, PEOPLE, 1.0, runs=6)
    assert line <= most  # beside .381 for an epsilon that is split over the days
    assert 0.036 < days < 0.043


@pytest.mark.parametrize("panel", [flat, rising, walking, seasonal, stepping])
@pytest.mark.parametrize("people", [20_000, 1_000_000])
def test_a_line_is_never_worse_than_the_days(panel: Panel, people: int) -> None:
    line, days = _errors(panel, people, 4.0, runs=2)
    assert line <= days


def test_weekday_effects_are_estimated() -> None:
    chance, effects = np.random.default_rng(3), np.array([-0.04, -0.04, 0, 0, 0, 0.04, 0.04])
    days = np.arange(FIRST, FIRST + 70)
    truth = 0.3 + effects[(days + 3) % 7]
    estimates = truth + chance.normal(0, 0.01, len(days))
    line = line_through(days.tolist(), estimates, np.full(len(days), 1e-4), 0.95)
    assert line.weekdays == pytest.approx(effects, abs=0.02)
    assert not line_through(
        days.tolist(), estimates, np.full(len(days), 1e-4), 0.95, weekly=False
    ).weekdays


def test_days_that_are_missing_leave_a_gap_that_the_line_bridges() -> None:
    chance = np.random.default_rng(4)
    days = [*range(FIRST, FIRST + 30), *range(FIRST + 60, FIRST + 90)]
    truth = 0.2 + 0.002 * (np.array(days) - FIRST)
    estimates = truth + chance.normal(0, 0.02, len(days))
    line = line_through(days, estimates, np.full(len(days), 4e-4), 0.95)
    assert ((line.low <= truth) & (truth <= line.high)).mean() > 0.9
    assert not line.steps


@pytest.mark.parametrize("size", [0.05, -0.4, 0.9])
@pytest.mark.parametrize("error", [1e-4, 0.01])
def test_a_step_is_found_on_its_day_however_large(size: float, error: float) -> None:
    chance = np.random.default_rng(5)
    truth: Floats = np.full(60, 0.5 - size / 2)
    truth[25:] += size
    estimates = truth + chance.normal(0, error, 60)
    line = line_through(range(FIRST, FIRST + 60), estimates, np.full(60, error**2), 0.95)
    [step] = line.steps
    assert step.first <= 25 <= step.last
    assert step.low <= size <= step.high
    assert step.high - step.low < 0.03


@pytest.mark.parametrize(("days", "walk"), [(20, 1.0), (90, 0.1)])
def test_a_walk_that_looks_most_like_a_step_shows_one_in_a_hundred(days: int, walk: float) -> None:
    """`walk` is the variance of its moves, in those of a day's error."""
    chance, runs, finds = np.random.default_rng(13), 100, 0
    for _ in range(runs):
        level = np.cumsum(chance.normal(0, sqrt(walk), days))
        estimates = level + chance.normal(0, 1, days)
        finds += bool(
            line_through(range(FIRST, FIRST + days), estimates, np.ones(days), 0.95).steps
        )
    assert finds <= binom.isf(1e-6, runs, 0.01)


def test_the_smallest_number_of_days_gives_a_line() -> None:
    estimates = np.linspace(0.2, 0.3, MIN_POINTS)
    line = line_through(
        range(FIRST, FIRST + MIN_POINTS), estimates, np.full(MIN_POINTS, 1e-4), 0.95
    )
    assert np.isfinite([line.middle, line.low, line.high]).all()
    assert (line.low < line.high).all()


def test_a_step_that_may_be_on_any_day_of_few_leaves_none_to_search() -> None:
    chance = np.random.default_rng(1)
    for _ in range(20):
        estimates = np.repeat([0.0, chance.uniform(3, 8)], MIN_POINTS // 2)
        estimates += chance.normal(size=MIN_POINTS)
        days = range(FIRST, FIRST + MIN_POINTS)
        line = line_through(days, estimates, np.ones(MIN_POINTS), 0.95, weekly=False)
        assert np.isfinite([line.middle, line.low, line.high]).all()


def test_a_day_unlike_all_others_is_inside_its_band() -> None:
    """In 80% of 60 days with one that is 3.4 errors away; 5 errors are a calibration's."""
    chance, truth = np.random.default_rng(1), np.full(60, 0.2)
    truth[30] += 3.4 * 0.049
    holds = 0
    for _ in range(40):
        estimates = truth + chance.normal(0.0, 0.049, 60)
        line = line_through(range(18_000, 18_060), estimates, np.full(60, 0.049**2), 0.95)
        holds += bool(line.low[30] <= truth[30] <= line.high[30])
    assert holds >= binom.ppf(1e-6, 40, 0.8)
