"""Alarms: false ones no oftener than promised, in a thousand epochs drawn from the exact law."""

import asyncio
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.aggregator.query.alert_verdicts import judge
from hubbub.authoring import read_catalog
from hubbub.catalog.alerts import Alert
from hubbub.errors import BadParameter, CatalogInvalid
from tests.support.alerting_metrics import BELOW, CATALOG, FIRST, SHARES, engine_of, signed_in
from tests.support.bundles import DAY, make_signed

EPOCHS = 1000
RUN = 20
CHANCE_OF_FAILURE = 1e-6


@pytest.mark.thorough
def test_of_a_thousand_epochs_without_cause_as_many_are_alarms_as_promised(tmp_path: Path) -> None:
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


async def test_what_has_a_cause_is_called(tmp_path: Path) -> None:
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
    assert verdict.sentence.endswith("the limit is 5")


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
        ("", "must be a text"),
    ],
)
def test_a_rule_that_is_none_is_refused_with_what_is_one(when: str, message: str) -> None:
    with pytest.raises(BadParameter, match=message):
        Alert(when)


def test_a_rule_fits_its_metric(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    for old, new, message in (
        ("share of x", "share of z", "'z' is not one of the metric's values"),
        ("share of x above .3", "mean above 3", "only numbers have a mean"),
        ("mean below 5", "share of x below .5", "numbers have no shares"),
        ("mean below 5", "p95 below 5", "only numbers with buckets have percentiles"),
        ("share of x above .3", "p95 above 3", "only numbers with buckets have percentiles"),
        ("confidence = 0.9 ", "confidence = 1.0 ", "confidence must be a level in"),
        ('when = "change"', "", "must hold when"),
    ):
        path.write_text(CATALOG.replace(old, new))
        with pytest.raises(CatalogInvalid, match=message):
            read_catalog(path)
