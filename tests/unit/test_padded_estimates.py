"""Estimates with dummies among the reports: every outcome of small crowds, with exact chances."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from hubbub.aggregator.query import EpochRange, EstimateQuery, QueryEngine
from hubbub.aggregator.query.cache import TotalsCache, sum_totals
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis.answering import answer
from hubbub.analysis.families.listed_values import Listed, estimates_of
from hubbub.analysis.uncertainty.tails import pure_tail
from hubbub.bundles import Bundle
from hubbub.catalog.crowds.crowd import noise_of
from hubbub.conservation import Window
from hubbub.errors import BatchTooSmall, ShapeMismatch
from hubbub.mechanisms import Totals, build
from hubbub.mechanisms.pure_protocols import Pure
from hubbub.sealing.dummy_laws import ValueNoise
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of
from tests.support.crowds import crowd_of
from tests.support.fakes import MemoryStore
from tests.support.stores import commit_of

CATALOG = catalog_toml(
    metric_toml(
        "theme",
        mechanism="auto",
        values=["a", "b", "c"],
        central_epsilon=1.0,
        crowd=100,
        dummies=500,
        lifetime_epsilon=500.0,
    )
)
TRUE_COUNTS = (0, 1)
"""What the two people hold."""
DUMMIES = 2


def _outcomes(values: int, pure: Pure) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """What two people and two dummies say, and how likely."""
    for responses in product(range(values), repeat=len(TRUE_COUNTS) + DUMMIES):
        chance = Fraction(1, values**DUMMIES)
        for value, response in zip(TRUE_COUNTS, responses[: len(TRUE_COUNTS)], strict=True):
            chance *= pure.p if value == response else pure.q
        yield responses, chance


def _totals(responses: tuple[int, ...], values: int, dummies: int, variance: float = 0.0) -> Totals:
    counts = Counter(responses)
    cells = [counts[value] for value in range(values)]
    return Totals(
        cells=cells, reports=len(responses) - dummies, dummies=dummies, dummies_variance=variance
    )


@pytest.mark.parametrize("values", [2, 3])
@pytest.mark.parametrize("each", [Fraction(1, 2), Fraction(1), Fraction(3, 2)])
def test_with_dummies_of_devices_estimates_are_unbiased_and_their_variance_exact(
    values: int, each: Fraction
) -> None:
    """Every outcome of two devices, each with its report and its dummies.

    Of reports and dummies together a whole number may not be reports: here it need not be whole.
    """
    mechanism: Any = build("grr", epsilon=1.0, categories=values)
    pure, whole, coin = mechanism.channel, int(each), each % 1
    mean, square = np.zeros(values), np.zeros(values)
    for made in range(len(TRUE_COUNTS) + 1 if coin else 1):
        number = len(TRUE_COUNTS) * whole + made
        how_likely = (
            comb(len(TRUE_COUNTS), made) * coin**made * (1 - coin) ** (len(TRUE_COUNTS) - made)
        )
        for responses in product(range(values), repeat=len(TRUE_COUNTS) + number):
            chance = how_likely * Fraction(1, values**number)
            for own, response in zip(TRUE_COUNTS, responses[: len(TRUE_COUNTS)], strict=True):
                chance *= pure.p if own == response else pure.q
            counts = Counter(responses)
            reports = len(responses) / (1 + each)
            floor = reports * pure.q + (len(responses) - reports) / values
            estimates = [float((counts[v] - floor) / (pure.p - pure.q)) for v in range(values)]
            if reports.denominator == 1:
                totals = _of_devices([counts[v] for v in range(values)], each)
                assert np.allclose(estimates, mechanism.estimate(totals).values)
                assert np.allclose(estimates, estimates_of(mechanism, totals)[0])
            mean += float(chance) * np.array(estimates)
            square += float(chance) * np.square(estimates)
    true = np.array([TRUE_COUNTS.count(value) for value in range(values)])
    assert np.allclose(mean, true)
    expected = Totals(
        cells=[0] * values,
        reports=len(TRUE_COUNTS),
        dummies=len(TRUE_COUNTS) * each,  # type: ignore[arg-type]  # what is expected is no whole number
        beside_variance=float(len(TRUE_COUNTS) * coin * (1 - coin) / (1 + each) ** 2),
    )
    more = pure.dummies_variances(true.tolist(), expected)
    variances = [mechanism.variance(true_count, len(TRUE_COUNTS)) for true_count in true.tolist()]
    assert np.allclose(square - mean**2, np.add(variances, more))
    crowd = crowd_of(len(TRUE_COUNTS), values, mechanism.epsilon, each=float(each))
    for share in (0.0, 0.5, 1.0):
        own = mechanism.variance(share * len(TRUE_COUNTS), len(TRUE_COUNTS)) + more[0]
        assert crowd.stderr(share) == pytest.approx(sqrt(own), rel=1e-6)


def _of_devices(cells: list[int], each: Fraction) -> Totals:
    """As they are read: reports and dummies are told together."""
    window = Window("theme", 1)

    async def body() -> Totals:
        store = MemoryStore()
        tags = [bytes([number]) * 16 for number in range(sum(cells))]
        commit = commit_of(tags, np.array(cells), batch_id=bytes(16))
        await store.add(window, commit)
        cache = TotalsCache(store)
        cache.dummies_each = {"theme": float(each)}
        counted = await cache.counted(["theme"])
        return sum_totals(
            list((await cache.read(counted)).values()), len(cells), dummies_each=float(each)
        )

    return asyncio.run(body())


@pytest.mark.parametrize("values", [2, 3, 4])
def test_estimates_are_unbiased_and_their_variance_exact(values: int) -> None:
    mechanism: Any = build("grr", epsilon=1.0, categories=values)
    mean, square = np.zeros(values), np.zeros(values)
    for responses, chance in _outcomes(values, mechanism.channel):
        totals = _totals(responses, values, DUMMIES)
        array = np.array(mechanism.estimate(totals).values)
        assert np.allclose(array, estimates_of(mechanism, totals)[0])
        mean += float(chance) * array
        square += float(chance) * array**2
    true = np.array([TRUE_COUNTS.count(value) for value in range(values)])
    assert np.allclose(mean, true)
    at_truth = mechanism.channel.dummies_variances(
        true.tolist(), _totals(responses, values, DUMMIES)
    )
    variances = [mechanism.variance(true_count, len(TRUE_COUNTS)) for true_count in true.tolist()]
    assert np.allclose(square - mean**2, np.add(variances, at_truth))


@pytest.mark.parametrize("values", [2, 3])
@pytest.mark.parametrize("come", [1, 2, 3])
def test_intervals_of_a_partly_delivered_crowd_are_wide_enough(values: int, come: int) -> None:
    """Some of its reports have come, nobody knows how many of them are dummies: a share counts.

    Estimates are of what those people hold who are expected among them.
    """
    mechanism: Any = build("grr", epsilon=1.0, categories=values)
    everybody = len(TRUE_COUNTS) + DUMMIES
    expected = DUMMIES * come / everybody
    mean, square = np.zeros(values), np.zeros(values)
    for responses, chance in _outcomes(values, mechanism.channel):
        draws = list(combinations(range(everybody), come))
        for drawn in draws:
            cells = Counter(responses[place] for place in drawn)
            counts = [cells[value] for value in range(values)]
            floor = (come - expected) * float(mechanism.channel.q) + expected / values
            estimates = (np.array(counts) - floor) / mechanism.channel.gap
            mean += float(chance) / len(draws) * estimates
            square += float(chance) / len(draws) * estimates**2
    reports = come - expected
    true = (
        reports * np.array([TRUE_COUNTS.count(value) for value in range(values)]) / len(TRUE_COUNTS)
    )
    assert np.allclose(mean, true)
    totals = Totals(
        cells=[0] * values,
        reports=1,
        dummies=0,
        dummies_variance=expected * (1 - expected / DUMMIES),
    )
    more = mechanism.channel.dummies_variances((true / reports).tolist(), totals)
    drawn = expected / values * (1 - 1 / values) / mechanism.channel.gap**2
    shares = true / reports
    spread = [
        reports * (share * mechanism.variance(1, 1) + (1 - share) * mechanism.variance(0, 1))
        for share in shares
    ]
    # Who is drawn of those who hold a value is the sampling of people, which answers leave out.
    sampled = reports * shares * (1 - shares)
    assert (square - mean**2 <= np.add(spread, more) + drawn + sampled + 1e-9).all()


def test_only_a_complete_crowd_has_an_exact_number() -> None:
    def window_of(dummies: int) -> WindowTotals:
        return WindowTotals(
            cells=np.array([40, 60]), counted=100 - dummies, batch_reports=0, at=0, dummies=dummies
        )

    whole = sum_totals([window_of(20), window_of(40)], 2, dummies=20)
    assert (whole.dummies, whole.dummies_variance) == (60, 0)
    coming = sum_totals([window_of(20), window_of(15)], 2, dummies=20)
    assert (coming.dummies, coming.dummies_variance) == (35, 15 * (1 - 15 / 20))


def test_the_tail_of_a_value_that_nobody_holds_is_that_of_both() -> None:
    mechanism: Any = build("grr", epsilon=7.0, categories=16)
    q, reports, dummies = float(mechanism.channel.q), 10_000, 600
    tail = pure_tail(
        mechanism.channel, reports, Totals(cells=[0] * 16, reports=reports, dummies=dummies)
    )
    assert tail is not None
    mean = reports * q + dummies / 16
    deviation = sqrt(reports * q * (1 - q) + dummies / 16 * 15 / 16)
    rng = np.arange(200)
    law = np.convolve(binom.pmf(rng, reports, q), binom.pmf(rng, dummies, 1 / 16))
    for count in (60, 80, 100):
        number = float(tail.of(np.array([(count - mean) / deviation]))[0])
        assert number == pytest.approx(norm.isf(law[count:].sum()), abs=1e-6)


def test_answers_and_honesty_flags_account_for_dummies() -> None:
    mechanism: Any = build("grr", epsilon=7.0, categories=4)
    cells = [1000 + 500, 500, 500, 500]
    result = answer(
        mechanism, Totals(cells=cells, reports=1000, dummies=2000), ["a", "b", "c", "d"]
    )
    values = {value.value: value for value in result.values}
    assert values["a"].estimate == pytest.approx(1000, abs=3)
    assert abs(values["b"].estimate) < 3
    assert values["b"].stderr > sqrt(2000 * 3 / 16)

    def p_value(cells: list[int], reports: int, dummies: int = 0) -> float:
        totals = Totals(cells=cells, reports=reports, dummies=dummies)
        return Listed().plausibility([(mechanism, totals)]).p_value

    assert p_value(cells, 1000, dummies=2000) == 1
    assert p_value(cells, 3000) == 1
    assert p_value([2400, 200, 200, 200], 1000, dummies=2000) < 1e-6


def test_a_mechanism_without_single_values_has_no_dummies() -> None:
    oue = build("unary.oue", epsilon=1.0, categories=4)
    with pytest.raises(ShapeMismatch, match="no single value, but each dummy has one"):
        oue.estimate(Totals(cells=[1, 2, 3, 4], reports=10, dummies=5))


async def test_a_query_below_the_crowd_is_refused() -> None:
    """Neither dummies nor a shuffler that passed on one report make a crowd."""
    metric = promised_catalog_of(CATALOG).metrics["theme"]
    bundle = Bundle(
        metrics={"theme": metric}, keys=(), shuffler="127.0.0.1:1", roots=None, history={}
    )
    for reports, dummies in ((1, 0), (99, 500)):
        store, tags = MemoryStore(), reports + dummies
        every = [number.to_bytes(16, "big") for number in range(tags)]
        commit = commit_of(every, np.array([tags, 0, 0]), batch_id=bytes(16), dummies=dummies)
        await store.add(Window("theme", 7), commit)
        engine = QueryEngine(bundle, store, clock=lambda: 10.0**9)
        with pytest.raises(BatchTooSmall, match=f"{reports} reports? in the requested epochs"):
            await engine.estimate("theme", EstimateQuery(range=EpochRange(epochs="all")))


@pytest.mark.slow
def test_every_part_of_a_crowd_with_noise_dummies_that_has_arrived_is_answered() -> None:
    """224 values: a share of the dummies rounded up would name more of them than have arrived."""
    noise = noise_of(1.9, 58)
    assert noise
    mechanism: Any = build("grr", epsilon=8.0, categories=224)
    dummies = 58 * 224
    for present in range(97, dummies, 97):
        cells = np.bincount(np.arange(2 * present) % 224, minlength=224)
        part = WindowTotals(cells=cells, counted=present, dummies=present, batch_reports=0, at=0)
        totals = sum_totals([part], 224, dummies=dummies, noise=ValueNoise(noise, 224))
        assert totals.evenly() > -1e-6
        assert (Listed().figures(mechanism, totals, ()).stderrs > 0).all()
