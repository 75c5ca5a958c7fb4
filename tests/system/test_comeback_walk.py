"""Devices over six weeks: who came back, together and by first week, beside the truth."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hubbub.aggregator.query import EpochRange, EstimateQuery, QueryEngine
from hubbub.aggregator.query.derived_answers import figures
from hubbub.client import Client, MemoryState
from hubbub.client.testing import FakeClock, FakeShuffler
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.keys.opening_keys import OPENING, read_opening_keys
from hubbub.mechanisms import Totals
from hubbub.sealing.hpke import open_sealed, seal_info
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.fakes import MemoryStore
from tests.support.waiting import HANG_SECONDS

WEEK = 7 * DAY
START = 714 * 4 * WEEK
FIRST = START // WEEK
DEVICES, WEEKS, COHORTS = 600, 6, 3
BACK = (1.0, 0.6, 0.45, 0.3, 0.25, 0.2)
CATALOG = catalog_toml(
    metric_toml(
        "comeback",
        'kind = "retention"\nweeks = 3',
        epoch="week",
        mechanism="grr",
        epsilon=4.0,
        min_batch=20,
        lifetime_epsilon=500.0,
    )
)


@pytest.mark.parametrize("by_cohort", [False, True])
async def test_shares_that_came_back_are_near_the_truth(tmp_path: Path, *, by_cohort: bool) -> None:
    signed, chance = make_signed(tmp_path, CATALOG, start=START), np.random.default_rng(4)
    clock, shuffler = FakeClock(float(START)), FakeShuffler()
    came: Counter[tuple[int, int]] = Counter()
    for device in range(DEVICES):
        cohort = device % COHORTS
        clock.set(float(START + cohort * WEEK))
        state = MemoryState(chance.bytes(32))
        client = Client(signed.bundle, state, shuffler, hold_seconds=None, clock=clock)
        weeks = [w for w in range(WEEKS - cohort) if chance.random() < BACK[w]]
        for week in weeks:
            clock.set(float(START + (cohort + week) * WEEK + chance.integers(1, WEEK // 2)))
            client.report("comeback")
            client.report("comeback")
            client.flush(HANG_SECONDS)
            came[cohort, week] += 1
        spent = {metric.name: metric.spent for metric in client.ledger().metrics}
        assert spent["comeback"] == pytest.approx(4.0 * len(weeks)), "charged once a week"
        client.close(0)
    figured = await figures(
        QueryEngine(
            signed.bundle,
            await _counted(signed.keys, shuffler),
            clock=lambda: float(START + 20 * WEEK),
        ),
        "comeback",
        EstimateQuery(range=EpochRange(epochs="all")),
        by_cohort=by_cohort,
    )
    compared = 0
    for row in figured.values:
        week = int(row.figure.split()[-1])
        dates = {cohort: epoch_date(FIRST + cohort, WEEK) for cohort in range(COHORTS)}
        cohorts = [cohort for cohort in dates if not by_cohort or dates[cohort] == row.dates]
        if cohorts and row.estimate is not None and row.high is not None:
            truth = sum(came[c, week] for c in cohorts) / sum(came[c, 0] for c in cohorts)
            # Two and a half times as far as 95%: outside with a chance below 1e-6.
            assert abs(row.estimate - truth) < 2.5 * (row.high - row.low) / 2, row
            compared += 1
    assert compared == (3 * COHORTS if by_cohort else 3)


async def _counted(keys: Path, shuffler: FakeShuffler) -> MemoryStore:
    """Totals of what the devices sent, opened as the aggregator does."""
    metric_keys = {key.id: key.load() for key in read_opening_keys(keys / OPENING)}
    payloads: dict[Window, list[bytes]] = {}
    for report in shuffler.reports():
        info = seal_info(report.stream, report.epoch)
        payload = open_sealed(report.sealed, metric_keys[report.key_id], info)
        payloads.setdefault(Window(report.stream, report.epoch), []).append(payload)
    store = MemoryStore()
    for window, of_window in payloads.items():
        cells = Counter(payload[0] for payload in of_window)
        totals = Totals(cells=[cells[cell] for cell in range(5)], reports=len(of_window))
        await store.count(window, totals)
    return store
