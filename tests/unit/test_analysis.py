"""From totals to answers: intervals, detections, decoded strings. Seeds are fixed."""

import math
import random

import numpy as np
import pytest

from hubbub.analysis.answering import answer
from hubbub.analysis.families import draw
from hubbub.analysis.uncertainty.intervals import discoveries
from hubbub.analysis.value_estimates import ValueEstimates, with_interval
from hubbub.errors import BadParameter
from hubbub.mechanisms import KeyedBits, Totals, build, tally
from hubbub.mechanisms.rappor import Rappor

STRINGS = [f"site-{n}.example" for n in range(300)]


def _listed(estimates: list[float], absent: float, growth: float) -> ValueEstimates:
    """A list of values with one error of those that nobody holds, and its growth by a report."""
    errors = np.full(len(estimates), absent)
    return ValueEstimates(
        estimates=np.array(estimates),
        stderrs=errors,
        absent=errors,
        growth=np.full(len(estimates), growth),
        of_counts=False,
    )


@pytest.fixture(scope="module")
def mechanism() -> Rappor:
    built = build("rappor", bits=32, hashes=2, cohorts=16, f=0.25, p=0.2, q=0.8)
    assert isinstance(built, Rappor)
    return built


def test_an_interval_is_symmetric_and_of_its_level() -> None:
    mean = with_interval(100.0, 10.0, 0.95, (0.0, 1000.0))
    assert math.isclose(mean.high - 100, 19.59964, abs_tol=1e-5)
    assert math.isclose(100 - mean.low, mean.high - 100)
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(BadParameter):
            with_interval(0.0, 1.0, wrong, (0.0, 1000.0))


def test_discoveries_spend_the_whole_rate() -> None:
    """The worked example of 15 p-values of Benjamini and Hochberg (1995, section 3.1): their own
    procedure finds four at 5%, the adaptive one eight."""
    flags = discoveries(np.array([
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
        0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0,
    ]))  # fmt: skip
    assert flags.tolist() == [True] * 8 + [False] * 7
    assert discoveries(np.zeros(0)).tolist() == []
    assert discoveries(np.full(9, 0.5)).tolist() == [False] * 9
    assert discoveries(np.full(9, 1e-9)).tolist() == [True] * 9
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(BadParameter):
            discoveries(np.ones(1), wrong)


def test_a_single_value_has_the_textbook_interval() -> None:
    """Far from its ends, and of an error that does not grow: the textbook's."""
    low, high, detected = _listed([500.0], 10.0, 0.0).ranked(1000)
    np.testing.assert_allclose([low[0], high[0]], [500 - 19.59964, 500 + 19.59964], atol=1e-5)
    assert detected.tolist() == [True]


def test_interval_ends_use_the_error_at_the_true_value() -> None:
    """Wilson's: the estimate lies 1.96 of their own standard errors from both."""
    absent, growth = 10.0, 0.5
    low, high, _ = _listed([80.0], absent, growth).ranked(1000)
    for end in (low[0], high[0]):
        stderr = math.sqrt(absent**2 + growth * end)
        assert math.isclose(abs(80 - end), 1.959964 * stderr, rel_tol=1e-6)


def test_no_end_of_an_interval_is_impossible() -> None:
    low, high, detected = _listed([1500.0, 400.0, -3.0, -900.0], 60.0, 1.0).ranked(1239)
    assert (low >= 0).all()
    assert (high <= 1239).all()
    assert (low < high).all()
    assert detected.tolist() == [True, True, False, False]
    assert (low[detected] > 0).all()


def test_the_first_rows_have_the_lower_lows() -> None:
    """The r-th of m near each other as if it were asked at a confidence r/m as doubtful."""
    estimates = np.linspace(9e5 + 0.4, 9e5, 40)
    low, _, _ = _listed(estimates.tolist(), 1.0, 0.0).ranked(1e6)
    reach = estimates - low
    np.testing.assert_allclose(reach[[0, 19, 39]], [3.227218, 2.241403, 1.959964], rtol=1e-6)


def test_a_row_far_from_all_others_has_a_plain_low() -> None:
    """Chance put it before nobody."""
    estimates = np.linspace(9e5, 5e5, 40)
    low, _, _ = _listed(estimates.tolist(), 1.0, 0.0).ranked(1e6)
    np.testing.assert_allclose(estimates - low, 1.959964, rtol=1e-6)


def test_an_answer_has_exactly_the_estimators_numbers() -> None:
    grr = build("grr", epsilon=1.0, categories=3)
    totals = Totals(cells=[500, 300, 200], reports=1000)
    result = answer(grr, totals, ["a", "b", "c"])
    estimates = grr.estimate(totals)
    assert [value.estimate for value in result.values] == list(estimates.values)
    assert [value.stderr for value in result.values] == [math.sqrt(v) for v in estimates.variances]
    assert math.isclose(sum(value.share or 0 for value in result.values), 1)
    assert result.values[0].detected
    assert result.values[0].low < result.values[0].estimate < result.values[0].high


def test_an_answer_asks_for_what_fits_the_metric(mechanism: Rappor) -> None:
    # Zipf-distributed strings of STRINGS, randomized with known coins.
    chance = random.Random(2)
    weights = [1 / rank for rank in range(1, len(STRINGS) + 1)]
    values = chance.choices(STRINGS, weights, k=2000)
    coins = KeyedBits((2).to_bytes(32, "big"))
    totals = tally(mechanism.layout, (mechanism.randomize(value, coins) for value in values))
    with pytest.raises(BadParameter, match="name the strings to look for"):
        answer(mechanism, totals, None)
    with pytest.raises(BadParameter, match='leave "candidates" out'):
        answer(build("rr", epsilon=1.0), Totals(cells=[1, 2], reports=3), ["no", "yes"], ["no"])
    with pytest.raises(BadParameter, match="needs listed values"):
        answer(build("rr", epsilon=1.0), Totals(cells=[1, 2], reports=3), None)
    assert len(answer(mechanism, totals, None, STRINGS[:5]).values) == 5


def test_strings_that_set_the_same_bits_are_named_together() -> None:
    """Of eight bits in two cohorts some of forty strings are alike in both."""
    mechanism = build("rappor", bits=8, hashes=1, cohorts=2, f=0.25, p=0.35, q=0.65)
    assert isinstance(mechanism, Rappor)
    strings = [f"string {number}" for number in range(40)]
    totals = draw(mechanism, strings[:4], [500] * 4, np.random.default_rng(5))
    result = answer(mechanism, totals, None, strings)
    bits = {string: mechanism.positions(string) for string in strings}
    alike = {frozenset(s for s in strings if bits[s] == bits[string]) for string in strings}
    assert {frozenset(twin.values) for twin in result.twins} == {a for a in alike if len(a) > 1}
    assert result.twins
    figures = {value.value: (value.estimate, value.low, value.high) for value in result.values}
    for twin in result.twins:
        assert len({figures[name] for name in twin.values}) == 1
