"""Alarms: false ones no oftener than promised, in 600 epochs drawn from the exact law."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.aggregator.query import EpochRange, EstimateQuery, QueryEngine
from hubbub.aggregator.query.alert_verdicts import judge
from hubbub.aggregator.query.derived_answers import compare, figures
from hubbub.analysis.families import draw
from hubbub.authoring import read_catalog
from hubbub.catalog.alerts import Alert
from hubbub.conservation import Window
from hubbub.errors import BadParameter, CatalogInvalid
from tests.support.alerting_metrics import BELOW, CATALOG, FIRST, SHARES, engine_of, signed_in
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import metric_toml
from tests.support.fakes import MemoryStore

EPOCHS = 600
RUN = 20
CHANCE_OF_FAILURE = 1e-6
EVERY = EstimateQuery(range=EpochRange(epochs="all"))


@pytest.mark.thorough
def test_the_share_of_false_alarms_is_as_promised(tmp_path: Path) -> None:
    signed, chance = signed_in(tmp_path), np.random.default_rng(5)
    # Per metric, of those with an odd and with an even neighbour before: two that are compared
    # share an epoch with the next, and none with the one after.
    fired: Counter[tuple[str, int]] = Counter()

    async def collection() -> None:
        query = await engine_of(signed, RUN + 1, chance, {})
        for name in SHARES:
            for place in range(1, RUN + 1):
                judgement = await judge(query, signed.bundle.metric(name), FIRST + place)
                assert judgement
                fired[name, place % 2] += judgement.fired

    for _ in range(EPOCHS // RUN):
        asyncio.run(collection())
    for name in SHARES:
        alert = signed.bundle.metric(name).alert
        assert alert
        for half in (0, 1):
            most = binom.isf(CHANCE_OF_FAILURE / 6, EPOCHS // 2, 1 - alert.confidence)
            assert fired[name, half] <= most, (name, fired)
    # And that is not bought by never calling: at its limit a mean calls about as often as it may.
    assert fired["size", 0] >= binom.ppf(CHANCE_OF_FAILURE, EPOCHS // 2, 0.05), fired


async def test_an_alert_is_raised_for_a_real_change(tmp_path: Path) -> None:
    signed, chance = signed_in(tmp_path), np.random.default_rng(6)
    moved = {"colour": [0.2, 0.6, 0.19, 0.01], "shape": [0.2, 0.8], "size": [0.9, 0.1]}
    query = await engine_of(signed, 3, chance, moved)
    result = {
        name: [await judge(query, signed.bundle.metric(name), FIRST + place) for place in range(3)]
        for name in SHARES
    }
    assert result["colour"][0] is None, "there is nothing to compare with"
    last = {}
    for name, alarms in result.items():
        assert [alarm.fired for alarm in alarms[1:] if alarm] == [False, True], name
        assert alarms[2]
        last[name] = alarms[2]
        assert (last[name].date, last[name].epoch) == ("2024-10-06", FIRST + 2)
    assert last["colour"].sentence.startswith("colour, 2024-10-06: since 2024-10-05 ")
    assert last["colour"].values == ["a", "b"]
    assert "the limit is 0.3" in last["shape"].sentence
    assert last["size"].values == ["mean"]


async def test_a_change_of_two_values_is_alerted_at_its_own_p_value(tmp_path: Path) -> None:
    """Both values have the same: twice it, as if they were two, fired in 4 of 5 epochs."""
    change = CATALOG.replace('"unary.oue"', '"rr"').replace(
        '"share of x above .3"', '"change", confidence = 0.8'
    )
    signed = make_signed(tmp_path, change, start=(FIRST - 14) * DAY)
    query, metric = await engine_of(signed, 25, np.random.default_rng(7), {}), "shape"
    for epoch in range(FIRST + 1, FIRST + 25):
        before, this = (EpochRange(epochs=str(each)) for each in (epoch - 1, epoch))
        compared = await compare(query, metric, EstimateQuery(range=before), this)
        verdict = await judge(query, signed.bundle.metric(metric), epoch)
        assert verdict
        assert verdict.fired == (compared.values[0].p_value <= 0.2)


@pytest.mark.parametrize(("shares", "fires"), [([0.1, 0.9], True), ([0.9, 0.1], False)])
async def test_an_alert_follows_a_percentile(
    tmp_path: Path, shares: list[float], *, fires: bool
) -> None:
    median = 'buckets = 10\nalert = { when = "p50 above 5", confidence = 0.9 }'
    catalog = CATALOG.replace('"mean.piecewise"', '"wave"').replace(BELOW, median)
    signed = make_signed(tmp_path, catalog, start=(FIRST - 14) * DAY)
    query = await engine_of(signed, 2, np.random.default_rng(6), {"size": shares})
    verdict = await judge(query, signed.bundle.metric("size"), FIRST + 1)
    assert verdict
    assert verdict.values == ["p50"] * fires
    assert "p50 " in verdict.sentence
    assert verdict.sentence.endswith("with 90% confidence; the limit is 5")


FIGURES: dict[str, tuple[str, str, list[dict[Any, int]], float]] = {
    "checkout": (
        'kind = "funnel"\nsteps = ["visit", "cart", "paid"]',
        "cart to paid",
        [{0: 9000, 1: 1000, 2: 0}, {0: 5000, 1: 3000, 2: 2000}],
        0.4,
    ),
    "crashes": (
        'rate = { of = "crashed", per = "started", most = 20 }',
        "crashed per started",
        [{(0.0, 10.0): 10_000}, {(5.0, 10.0): 10_000}],
        0.5,
    ),
    "comeback": (
        'kind = "retention"\nweeks = 2',
        "back in week 1",
        [{0: 5000, 1: 0, 2: 0, 3: 5000}, {0: 3000, 1: 1500, 2: 0, 3: 5000}],
        0.3,
    ),
}
"""By metric: its fields, a figure, the people of two epochs, and the figure of the second."""


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize(("below", "fires"), [(1.3, True), (0.7, False)])
async def test_an_alert_follows_a_figure(
    tmp_path: Path, name: str, *, below: float, fires: bool
) -> None:
    fields, figure, people, true = FIGURES[name]
    epoch, mechanism = (
        "week" if name == "comeback" else "day",
        "auto" if "rate" in fields else "grr",
    )
    catalog = 'shuffler = "127.0.0.1:1"\n' + metric_toml(
        name,
        f'{fields}\nalert = {{ when = "{figure} below {below * true:g}", confidence = 0.9 }}',
        mechanism=mechanism,
        epoch=epoch,
        epsilon=4.0,
        lifetime_epsilon=500.0,
    )
    first = FIRST // 7 if epoch == "week" else FIRST
    signed, store = make_signed(tmp_path, catalog, start=(FIRST - 14) * DAY), MemoryStore()
    metric, chance = signed.bundle.metric(name), np.random.default_rng(6)
    for place, counts in enumerate(people):
        drawn = draw(metric.randomizer, [*counts], [*counts.values()], chance)
        await store.count(Window(name, first + place), drawn)
    query = QueryEngine(signed.bundle, store, clock=lambda: (FIRST + 60) * DAY)
    assert (await judge(query, metric, first) is None) == (name == "comeback")
    verdict = await judge(query, metric, first + 1)
    assert verdict
    assert verdict.values == [figure] * fires
    assert verdict.sentence.endswith(f"the limit is {below * true:g}")
    shown = {row.figure for row in (await figures(query, name, EVERY)).values}
    assert shown <= {*metric.value_kind.figures(metric)}


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("changes", "is not a rule; write"),
        ("share of a", "is not a rule"),
        ("share of a above", "is not a rule"),
        ("share of a above 1", "outside"),
        ("share of a above nan", "outside"),
        ("share of a above much", "outside"),
        ("mean above inf", "outside"),
        ("p95 above nan", "outside"),
        ("p100 above 5", "percentile is outside"),
        ("p0 above 5", "percentile is outside"),
        ("p9.9.9 above 5", "percentile is outside"),
        ("a to b below 0", "outside the numbers above 0"),
        ("a to b below inf", "outside the numbers above 0"),
        ("", "must be a text"),
    ],
)
def test_an_invalid_alert_rule_is_refused_with_an_example(when: str, message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        Alert(when)


def test_a_rule_fits_its_metric(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    for old, new, message in (
        ("share of x", "share of z", "'z' is not one of the metric's values"),
        ("share of x above .3", "mean above 3", "only numbers have a mean"),
        ("mean below 5", "share of x below .5", "numbers have no shares"),
        ("mean below 5", "means below 5", "'means' is no figure of the metric; write"),
        ("mean below 5", "p95 below 5", "only numbers with buckets have percentiles"),
        ("share of x above .3", "p95 above 3", "only numbers with buckets have percentiles"),
        ("confidence = 0.9 ", "confidence = 1.0 ", "confidence must be a level in"),
        ('when = "change"', "", "must hold when"),
    ):
        path.write_text(CATALOG.replace(old, new))
        with pytest.raises(CatalogInvalid, match=message):
            read_catalog(path)
