"""Top lists, comparisons and trends: what is said of an order or a change is no more than holds."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from hubbub.analysis.answer import Answer, ValueAnswer
from hubbub.analysis.answering import Followed, answer, answer_tiers, joined_shares
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.comparisons.order_confidence import top
from hubbub.analysis.families import draw, family_for
from hubbub.analysis.value_estimates import mean_of
from hubbub.errors import BadParameter
from hubbub.mechanisms import REGISTRY, AnyMechanism, Totals, build
from hubbub.privacy.proofs.enumeration import distribution

SMALL: list[AnyMechanism] = [
    build(name, **parameters)
    for name, kind in REGISTRY.items()
    for parameters in kind.SMALL
    if kind.VALUES == "categories" or name in {"buckets", "haar", "wave"}
]


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_the_covariance_of_estimates_is_within_its_bound(
    mechanism: AnyMechanism,
) -> None:
    """By exact enumeration of the shipping randomizer: of one report from each value."""
    most = family_for(mechanism).correlation(mechanism)
    if most == 1:
        return  # nothing is said
    for value in mechanism.probes():
        chances = distribution(partial(mechanism.randomize, value))
        payloads = list(chances)
        weights = np.array([float(chances[payload]) for payload in payloads])
        rows = np.array([_single_estimate(mechanism, payload) for payload in payloads])
        off = rows - weights @ rows
        covariance = off.T @ (off * weights[:, None])
        spread = np.sqrt(np.diag(covariance))
        assert (covariance >= -most * np.outer(spread, spread) - 1e-9).all()


def _single_estimate(mechanism: AnyMechanism, payload: bytes) -> list[float]:
    cells = [0] * mechanism.layout.size
    for cell, number in mechanism.layout.cells(payload).items():
        cells[cell] += number
    return list(mechanism.estimate(Totals(cells=cells, reports=1)).values)


def _answer(pairs: list[tuple[float, float]]) -> Answer:
    order = sorted(range(len(pairs)), key=lambda i: -pairs[i][0])
    values = tuple(
        ValueAnswer(
            value=f"v{i}",
            estimate=e,
            stderr=s,
            low=e - 2 * s,
            high=e + 2 * s,
            share=e / 1000,
            rank=order.index(i) + 1,
            detected=True,
        )
        for i, (e, s) in enumerate(pairs)
    )
    return Answer(kind="values", reports=1000, confidence=0.95, values=values)


def test_distant_values_have_a_certain_order_and_equal_ones_do_not() -> None:
    sure = top(_answer([(500, 10), (300, 10), (100, 10)]), 2, 0.0)
    assert [value.value.value for value in sure.values] == ["v0", "v1"]
    assert sure.order_confidence == pytest.approx(1, abs=1e-12)
    assert top(_answer([(300, 10), (300, 10)]), 1, 0.0).values[0].ahead_confidence == 0.5
    # 28.28 apart at standard errors of 10: two of the difference's own.
    some = top(_answer([(300, 10), (300 - 20 * math.sqrt(2), 10)]), 1, 0.0)
    assert some.values[0].ahead_confidence == pytest.approx(0.977250, abs=1e-6)
    worse = top(_answer([(300, 10), (300 - 20 * math.sqrt(2), 10)]), 1, 1.0)
    assert worse.values[0].ahead_confidence == pytest.approx(0.921350, abs=1e-6)


def test_a_top_set_may_be_certain_without_its_order() -> None:
    result = top(_answer([(500, 10), (499, 10), (100, 10), (90, 10)]), 2, 0.0)
    assert result.set_confidence > 0.999
    assert 0.5 < result.order_confidence < 0.6
    everything = top(_answer([(5, 1), (4, 1)]), 10, 0.0)
    assert [value.ahead_confidence is None for value in everything.values] == [False, True]
    assert everything.set_confidence == 1


@pytest.mark.thorough
def test_the_order_of_a_top_list_holds_as_often_as_stated() -> None:
    """2,000 drawings of six values close to each other; 5 standard errors: 3e-7, one-sided."""
    mechanism = build("grr", epsilon=1.0, categories=6)
    counts = [3000, 2700, 2500, 1000, 500, 300]
    chance = np.random.default_rng(3)
    names, against = [str(i) for i in range(6)], family_for(mechanism).correlation(mechanism)
    confidences, right, said_ahead, ahead = [], 0, [], 0
    for _ in range(2000):
        totals = draw(mechanism, range(6), counts, chance)
        result = top(answer(mechanism, totals, names), 3, against)
        actual = [counts[int(value.value.value)] for value in result.values]
        right += actual == counts[:3]
        confidences.append(result.order_confidence)
        first = result.values[0]
        after = result.values[1].value.value
        assert first.ahead_confidence is not None
        said_ahead.append(first.ahead_confidence)
        ahead += counts[int(first.value.value)] > counts[int(after)]
    for claimed, times in ((confidences, right), (said_ahead, ahead)):
        assert times / 2000 >= np.mean(claimed) - 5 * math.sqrt(0.25 / 2000)


def test_a_top_list_needs_a_number_and_values() -> None:
    with pytest.raises(BadParameter, match="request at least 1"):
        top(_answer([(1, 1)]), 0, 0.0)
    mean = build("mean.one_bit", epsilon=1.0, low=0, high=1)
    result = answer(mean, draw(mean, [0.5], [1000], np.random.default_rng(1)), None)
    with pytest.raises(BadParameter, match="a mean or a rate has no most frequent values"):
        top(result, 3, 0.0)


def test_ends_of_unchanged_values_spend_the_whole_error_rate() -> None:
    """However much the end nearer to 0 leaves; so many reports are normal, and no end is at 0."""
    mechanism = build("unary.oue", epsilon=1.0, categories=5)
    chance = np.random.default_rng(6)
    before, after = (
        answer(mechanism, draw(mechanism, range(5), [20_000] * 5, chance), list("abcde"))
        for _ in range(2)
    )
    result = changes(before, after)
    assert not any(change.changed for change in result)
    for change in result:
        reaches = np.array([change.difference - change.low, change.high - change.difference])
        assert ndtr(-reaches / change.stderr).sum() == pytest.approx(0.05, rel=0.02)


def test_a_change_of_a_mean_is_in_its_own_unit() -> None:
    mechanism = build("mean.piecewise", epsilon=2.0, low=0, high=600)
    chance = np.random.default_rng(5)
    before, after = (
        answer(mechanism, draw(mechanism, [number], [50_000], chance), None)
        for number in (100.0, 160.0)
    )
    [change] = changes(before, after)
    assert abs(change.difference - 60) < 6 * change.stderr
    assert change.changed
    with pytest.raises(BadParameter, match="different questions"):
        changes(before, _answer([(1, 1)]))


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("name", ["wave", "haar", "buckets"])
def test_the_mean_of_ranges_is_unbiased_with_the_error_it_states(name: str, epsilon: float) -> None:
    """400 drawings; a number counts as its range's middle: 1, 7, 21.

    6 standard errors; and an error within 18%, five times what 400 drawings leave open.
    """
    parameters: dict[str, Any] = {"epsilon": epsilon, "low": 0, "high": 24, "buckets": 12}
    parameters |= {"sampled": 3} if name == "buckets" else {}
    mechanism = build(name, **parameters)
    chance = np.random.default_rng(6)
    errors, stderrs = [], []
    for _ in range(400):
        totals = draw(mechanism, [0.0, 7.9, 20.5], [1200, 600, 200], chance)
        family = family_for(mechanism)
        figures = family.figures(mechanism, totals, [])
        assert figures.place
        mean = mean_of(figures.place, family.ends(mechanism) or (0.0, 0.0), totals.reports, 0.95)
        assert mean is not None
        errors.append(mean.estimate - (0.6 * 1 + 0.3 * 7 + 0.1 * 21))
        stderrs.append(mean.stderr)
    assert answer(mechanism, totals, None).mean == mean
    [population] = joined_shares([Followed([(mechanism, totals)], [])])
    assert mean is not None
    assert population.estimate == mean.estimate
    assert population.stderr >= mean.stderr
    rms = math.sqrt(np.mean(np.square(errors)))
    assert abs(np.mean(errors)) < 6 * rms / math.sqrt(400)
    assert rms == pytest.approx(np.mean(stderrs), rel=0.18)


def test_permanent_lies_that_are_repeated_widen_the_interval() -> None:
    mechanism = build("long.grr", epsilon=1.0, permanent_epsilon=2.0, categories=3)
    totals = draw(mechanism, range(3), [500, 300, 200], np.random.default_rng(7))
    names = ["a", "b", "c"]
    once, often = (answer_tiers([(mechanism, totals)], names, repeats=n) for n in (1, 9))
    for value, other in zip(once.values, often.values, strict=True):
        assert other.estimate == value.estimate
        # The permanent part nine times over; what is fresh is not.
        assert 1.5 * value.stderr < other.stderr < 2.9 * value.stderr
    fresh = build("grr", epsilon=1.0, categories=3)
    once, often = (answer_tiers([(fresh, totals)], names, repeats=n) for n in (1, 9))
    assert often.values == once.values == answer(fresh, totals, names).values


def test_shares_of_a_trend_are_those_of_the_answer() -> None:
    mechanism = build("grr", epsilon=1.0, categories=3)
    totals = draw(mechanism, range(3), [500, 300, 200], np.random.default_rng(8))
    result = answer(mechanism, totals, ["a", "b", "c"])
    for share, place in zip(
        joined_shares([Followed([(mechanism, totals)], [2, 0])]), (2, 0), strict=True
    ):
        value = result.values[place]
        assert share.estimate == value.share
        assert value.share is not None
        others = value.share * (1 - value.share) / 1000  # who reported is chance as well
        assert share.stderr == pytest.approx(math.hypot(value.stderr / 1000, math.sqrt(others)))
        # Of the population's shares at the ends, so many supports or more, or less, are a doubt of
        # 2.5%: they are one binomial number (Clopper and Pearson 1934).
        channel: Any = mechanism.channel  # type: ignore[attr-defined]
        low, high = (float(channel.q) + end * channel.gap for end in (share.low, share.high))
        supports = totals.cells[place]
        assert binom.sf(supports - 1, 1000, low) == pytest.approx(0.025, rel=0.01)
        assert binom.cdf(supports, 1000, high) == pytest.approx(0.025, rel=0.01)
    sketch = build("cms", epsilon=2.0, hashes=4, width=16)
    drawn = draw(sketch, ["x", "y"], [700, 300], np.random.default_rng(9))
    [first] = joined_shares([Followed([(sketch, drawn)], [1])], ["y", "x"])
    assert first.estimate == answer(sketch, drawn, None, ["y", "x"]).values[1].share
    bloom = build("rappor", bits=16, hashes=1, cohorts=2, f=0.25, p=0.2, q=0.8)
    counted = draw(bloom, ["x", "y"], [700, 300], np.random.default_rng(9))
    [second] = joined_shares([Followed([(bloom, counted)], [0])], ["x", "y"])
    assert second.estimate == answer(bloom, counted, None, ["x", "y"]).values[0].share
