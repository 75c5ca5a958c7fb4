"""From totals to answers: intervals, detections, decoded strings. Seeds are fixed."""

import math
import random
from collections import Counter

import numpy as np
import pytest

from hubbub.analysis import answer, decode, discoveries, interval
from hubbub.errors import BadParameter, BatchTooSmall, ShapeMismatch
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
    low, high = interval(100.0, 10.0)
    assert math.isclose(high - 100, 19.59964, abs_tol=1e-5)
    assert math.isclose(100 - low, high - 100)
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(BadParameter):
            interval(0, 1, wrong)


def test_discoveries_follow_benjamini_and_hochberg() -> None:
    """Their worked example of 15 p-values (1995, section 3.1): four are found at 5%."""
    from statistics import NormalDist

    p_values = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
        0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0 - 1e-12,
    ]  # fmt: skip
    scores = [NormalDist().inv_cdf(1 - p) for p in p_values]
    assert discoveries(scores, [1.0] * 15).tolist() == [True] * 4 + [False] * 11
    assert discoveries([], []).tolist() == []
    assert discoveries([0.0, 1.0], [0.0, 0.0]).tolist() == [False, True]


def test_decoded_intervals_cover_the_truth_as_often_as_they_say(mechanism: Rappor) -> None:
    """12 collections x 300 strings at 95%: sigma of the share is under .7% even if each
    collection's estimates were correlated fourfold; 5.2 sigma, false alarm 2e-7."""
    covered = 0
    for seed in range(12):
        totals, truth = _collected(mechanism, 4000, seed)
        found = decode(mechanism, totals, STRINGS)
        for name, estimate, stderr in zip(STRINGS, found.estimates, found.stderrs, strict=True):
            low, high = interval(float(estimate), float(stderr))
            covered += low <= truth[name] <= high
    assert abs(covered / (12 * len(STRINGS)) - 0.95) < 5.2 * 0.0073


def test_the_strongest_strings_are_detected_and_absent_ones_are_not(mechanism: Rappor) -> None:
    totals, truth = _collected(mechanism, 20_000, 99)
    absent = [f"nobody-{n}.example" for n in range(300)]
    found = decode(mechanism, totals, STRINGS + absent)
    detected = {name for name, yes in zip(STRINGS + absent, found.detected, strict=True) if yes}
    assert {name for name, _ in truth.most_common(3)} <= detected
    assert len(detected & set(absent)) <= 2


def test_a_decode_needs_candidates_reports_and_its_own_totals(mechanism: Rappor) -> None:
    totals, _ = _collected(mechanism, 2000, 1)
    for wrong in ([], ["a", "a"]):
        with pytest.raises(BadParameter, match="at least one string, none twice"):
            decode(mechanism, totals, wrong)
    with pytest.raises(ShapeMismatch):
        decode(mechanism, Totals([0], 0), ["a"])
    with pytest.raises(BatchTooSmall, match="leave a cohort empty"):
        decode(mechanism, Totals([0] * mechanism.layout.size, 0), ["a"])


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
    with pytest.raises(BadParameter, match="cannot be decoded"):
        answer(build("rr", epsilon=1.0), Totals([1, 2], 3), None, ["no"])
    assert len(answer(mechanism, totals, None, STRINGS[:5]).values) == 5


@pytest.mark.parametrize("name", ["grr", "unary.sue", "unary.oue", "rappor.basic"])
def test_estimates_at_a_real_size_are_as_near_as_their_variance_says(name: str) -> None:
    """100,000 reports over 100 values, coins fixed. The sum of squared z-scores over 100 cells
    is near 100 with sigma ~ 14.2 (cells are nearly independent); 6 sigma, false alarm < 1e-6."""
    parameters = {"f": 0.5, "p": 0.25, "q": 0.75} if name == "rappor.basic" else {"epsilon": 1.0}
    categories, reports = 100, 100_000
    built = build(name, categories=categories, **parameters)
    weights = 1 / np.arange(1, categories + 1)
    truth = np.floor(weights / weights.sum() * reports).astype(int)
    truth[0] += reports - truth.sum()
    coins = KeyedBits(name.encode().ljust(32, b"."))
    payloads = (built.randomize(v, coins) for v, n in enumerate(truth.tolist()) for _ in range(n))
    estimates = built.estimate(tally(built.layout, payloads))
    spread = [built.variance(float(true), reports) for true in truth]
    scores = (np.array(estimates.values) - truth) / np.sqrt(spread)
    assert abs((scores**2).sum() - categories) < 6 * math.sqrt(2 * categories)
    assert np.abs(scores).max() < 5.8
