"""From totals to answers: intervals, detections, decoded strings. Seeds are fixed."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from hubbub.analysis import answer, discoveries, interval, p_values
from hubbub.analysis.intervals import selected_interval
from hubbub.errors import BadParameter
from hubbub.mechanisms import KeyedBits, Rappor, Totals, build, tally

STRINGS = [f"site-{n}.example" for n in range(300)]


def _collected(mechanism: Rappor, reports: int, seed: int) -> tuple[Totals, Counter[str]]:
    """Zipf-distributed strings of STRINGS, randomized with known coins."""
    chance = random.Random(seed)
    weights = [1 / rank for rank in range(1, len(STRINGS) + 1)]
    values = chance.choices(STRINGS, weights, k=reports)
    coins = KeyedBits(seed.to_bytes(32, "big"))
    payloads = (mechanism.randomize(value, coins) for value in values)
    return tally(mechanism.layout, payloads), Counter(values)


@pytest.fixture(scope="module")
def mechanism() -> Rappor:
    built = build("rappor", bits=32, hashes=2, cohorts=16, f=0.25, p=0.2, q=0.8)
    assert isinstance(built, Rappor)
    return built


def test_an_interval_is_symmetric_and_of_its_level() -> None:
    low, high = interval(np.array([100.0]), np.array([10.0]))
    assert math.isclose(high[0] - 100, 19.59964, abs_tol=1e-5)
    assert math.isclose(100 - low[0], high[0] - 100)
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(BadParameter):
            interval(np.zeros(1), np.ones(1), wrong)


def test_discoveries_spend_the_whole_rate() -> None:
    """The worked example of 15 p-values of Benjamini and Hochberg (1995, section 3.1): their own
    procedure finds four at 5%, the adaptive one eight."""
    found = discoveries(np.array([
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
        0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0,
    ]))  # fmt: skip
    assert found.tolist() == [True] * 8 + [False] * 7
    assert discoveries(np.zeros(0)).tolist() == []
    assert discoveries(np.full(9, 0.5)).tolist() == [False] * 9
    assert discoveries(np.full(9, 1e-9)).tolist() == [True] * 9
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(BadParameter):
            discoveries(np.ones(1), wrong)


def test_p_values_are_the_upper_tail_of_the_normal_law() -> None:
    np.testing.assert_allclose(
        p_values(np.array([0.0, 1.6448536269514722, -1.6448536269514722, 10.0])),
        [0.5, 0.05, 0.95, 7.61985302416e-24],
        rtol=1e-9,
    )


@pytest.mark.parametrize("truth", [0.0, 1.0, 2.5, 4.0, 9.0])
def test_selected_intervals_hold_the_truth_among_the_selected(truth: float) -> None:
    """50,000 selected scores each: sigma .001, table steps .0005; 5.2 sigma, false alarm 1e-6."""
    cut, chance = 2.5, np.random.default_rng(31)
    scores = truth + chance.normal(size=20_000_000 if truth == 0 else 1_000_000)
    scores = scores[scores >= cut][:50_000]
    low, high = selected_interval(scores, cut)
    assert (low <= scores).all()
    assert (scores <= high).all()
    holds = ((low <= truth + 1e-9) & (truth <= high)).mean()
    assert abs(holds - 0.95) < 5.2 * 0.95 * 0.05**0.5 / len(scores) ** 0.5 + 0.003


def test_far_above_the_cut_selection_says_nothing() -> None:
    low, high = selected_interval(np.array([30.0]), 2.5)
    np.testing.assert_allclose([30 - low[0], high[0] - 30], 1.959964, rtol=1e-6)


def test_an_answer_has_the_estimators_own_numbers() -> None:
    grr = build("grr", epsilon=1.0, categories=3)
    totals = Totals([500, 300, 200], 1000)
    found = answer(grr, totals, ["a", "b", "c"])
    estimates = grr.estimate(totals)
    assert [value.estimate for value in found.values] == list(estimates.values)
    assert [value.stderr for value in found.values] == [math.sqrt(v) for v in estimates.variances]
    assert math.isclose(sum(value.share for value in found.values), 1)
    assert found.values[0].detected
    assert found.values[0].low < found.values[0].estimate < found.values[0].high


def test_an_answer_asks_for_what_fits_the_metric(mechanism: Rappor) -> None:
    totals, _ = _collected(mechanism, 2000, 2)
    with pytest.raises(BadParameter, match="say which to look for"):
        answer(mechanism, totals, None)
    with pytest.raises(BadParameter, match="leave candidates out"):
        answer(build("rr", epsilon=1.0), Totals([1, 2], 3), ["no", "yes"], ["no"])
    with pytest.raises(BadParameter, match="answers listed values"):
        answer(build("rr", epsilon=1.0), Totals([1, 2], 3), None)
    assert len(answer(mechanism, totals, None, STRINGS[:5]).values) == 5
