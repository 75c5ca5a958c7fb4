"""Intervals that hold at every look while an epoch fills, beside plain ones, which do not."""

import asyncio
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.query import EstimateQuery, QueryEngine
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis.families import draw
from hubbub.analysis.uncertainty.intervals import anytime_confidence
from hubbub.conservation import Window
from hubbub.errors import BadParameter
from hubbub.simulation.rehearsal import DrawnStore
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import metric_toml

EPOCH = 20_000
LOOKS = [int(100 * 1.45**look) for look in range(14)]  # up to 12,500 reports
RUNS = 80


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Signed:
    catalog = 'shuffler = "shuffler.example.org:443"\n' + "".join(
        metric_toml(name, more, mechanism=mechanism, epsilon=epsilon, lifetime_epsilon=500.0)
        for name, mechanism, epsilon, more in (
            ("often", "unary.oue", 4.0, 'values = ["a", "b", "c", "d"]'),
            ("hours", "mean.one_bit", 1.0, 'domain = "number"\nlow = 0\nhigh = 10'),
            ("page", "cms", 2.0, 'domain = "string"\nhashes = 16\nwidth = 64'),
        )
    )
    return make_signed(tmp_path_factory.mktemp("anytime"), catalog, start=EPOCH * DAY)


async def _misses(signed: Signed, name: str, chance: np.random.Generator, *, anytime: bool) -> bool:
    """Whether any interval at any look misses what those hold who have reported by then."""
    mechanism: Any = signed.bundle.metric(name).randomizer
    codes: list[Any] = [1.0, 6.0] if name == "hours" else [0, 1, 2, 3]
    parts = [0.5, 0.5] if name == "hours" else [0.6, 0.3, 0.1, 0.0]
    cells, counts, before = np.zeros(mechanism.layout.size, np.int64), np.zeros(len(codes)), 0
    for reports in LOOKS:
        more = chance.multinomial(reports - before, parts)
        cells += np.array(draw(mechanism, codes, more.tolist(), chance).cells)
        counts, before = counts + more, reports
        store = DrawnStore(
            {
                Window(name, EPOCH): WindowTotals(
                    cells=cells.copy(), counted=reports, batch_reports=0, at=0, dummies=0
                )
            }
        )
        query = QueryEngine(signed.bundle, store, clock=lambda: (EPOCH + 0.5) * DAY)
        answer = await query.estimate(name, EstimateQuery(anytime=anytime))
        assert answer.anytime is anytime
        assert answer.confidence == 0.95
        true = [float(counts @ codes) / reports] if name == "hours" else counts.tolist()
        rows = zip(answer.values, true, strict=True)
        # One value of the list, as somebody who watches one line does.
        if not all(value.low <= truth <= value.high for value, truth in list(rows)[:1]):
            return True
    return False


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["often", "hours"])
def test_fourteen_looks_mislead_as_rarely_as_stated(signed: Signed, name: str) -> None:
    """Six standard errors above 5%: a false alarm of 1e-9 or so. Plain intervals miss more."""
    chance = np.random.default_rng(17)

    async def rate(*, anytime: bool) -> float:
        misses = [await _misses(signed, name, chance, anytime=anytime) for _ in range(RUNS)]
        return sum(misses) / RUNS

    assert asyncio.run(rate(anytime=True)) <= 0.05 + 6 * sqrt(0.05 * 0.95 / RUNS)
    assert asyncio.run(rate(anytime=False)) > 0.08


@pytest.mark.parametrize(("growth", "longest"), [(1.0, 1.9), (10.0, 1.6), (1000.0, 1.85)])
def test_intervals_at_every_look_are_less_than_twice_as_long(growth: float, longest: float) -> None:
    surer = anytime_confidence(0.95, (growth, growth), 1)
    assert 1.3 < NormalDist().inv_cdf((1 + surer) / 2) / 1.96 < longest
    assert anytime_confidence(0.95, (growth, growth), 1000) >= surer


def test_metrics_without_intervals_for_every_look_are_refused(signed: Signed) -> None:
    mechanism: Any = signed.bundle.metric("page").randomizer
    totals = draw(mechanism, ["a"], [1000], np.random.default_rng(1))
    store = DrawnStore(
        {
            Window("page", EPOCH): WindowTotals(
                cells=np.array(totals.cells),
                counted=totals.reports,
                batch_reports=0,
                at=0,
                dummies=0,
            )
        }
    )
    query = QueryEngine(signed.bundle, store, clock=lambda: (EPOCH + 0.5) * DAY)
    with pytest.raises(BadParameter, match="no intervals valid at every look: "):
        asyncio.run(query.estimate("page", EstimateQuery(candidates=("a",), anytime=True)))
