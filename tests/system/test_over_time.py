"""Days from the SDK to the page: each device reports once, sealed, opened, counted, and drawn."""

import hashlib
import secrets
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import expect

from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.client import Client, MemoryState, Outcome, SystemClock
from hubbub.client.testing import FakeShuffler, coins
from hubbub.conservation import Window
from hubbub.keys.opening_keys import read_opening_keys
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.stages import Stages
from tests.interfaces.browser import Watched, chromium
from tests.support import web
from tests.support.bundles import DAY, Signed, make_signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.fakes import MemoryStore
from tests.support.pages import page_over
from tests.support.waiting import HANG_SECONDS

pytestmark = pytest.mark.thorough

CATALOG = catalog_toml(
    metric_toml(
        "theme",
        period="10d",
        report_on="one day",
        mechanism="rr",
        epsilon=4.0,
        values=["light", "dark"],
        min_batch=10,
    ),
    shuffler="shuffler.example.org:443",
)
FIRST, DAYS, DEVICES = 20_000, 10, 400


def _value(device: int, day: int) -> str:
    """A fifth of all have it dark, and from the fifth day on four fifths."""
    return "dark" if (device % 5 == 0) != (day >= DAYS // 2) else "light"


def _sent(signed: Signed) -> dict[int, list[bytes]]:
    """What the shuffler is sent, by day: every device runs every day.

    Secrets and coins are the same in every run: of others one in some 500 has a line beyond the
    bounds below.
    """
    shuffler, today = FakeShuffler(), [FIRST]
    clock = SystemClock(lambda: today[0] * DAY + 60.0)
    for device in range(DEVICES):
        state = MemoryState(hashlib.sha256(b"%d" % device).digest())
        today[0] = FIRST
        with Client(
            signed.bundle,
            state,
            shuffler,
            hold_seconds=None,
            clock=clock,
            coins=coins(str(device)),
        ) as client:
            outcomes = []
            for today[0] in range(FIRST, FIRST + DAYS):
                outcomes.append(client.report("theme", _value(device, today[0] - FIRST)))
                if outcomes[-1] is Outcome.QUEUED:
                    assert client.flush(HANG_SECONDS)
            assert outcomes.count(Outcome.QUEUED) == 1
            assert outcomes.count(Outcome.NOT_ITS_DAY) == DAYS - 1
            [metric] = client.ledger().metrics
            assert metric.spent == metric.epsilon
    by_day: dict[int, list[bytes]] = {}
    for report in shuffler.reports():
        by_day.setdefault(report.epoch, []).append(report.sealed)
    return by_day


def test_a_device_reports_on_one_day_and_the_page_draws_a_line_through_all(tmp_path: Path) -> None:
    signed = make_signed(tmp_path, CATALOG, start=FIRST * DAY)
    sent = _sent(signed)
    assert sum(map(len, sent.values())) == DEVICES
    opener = Opener(read_opening_keys(signed.keys / "opening.keys.json"), 1)

    async def fill(store: MemoryStore) -> None:
        for day, reports in sorted(sent.items()):
            clocks = Clocks(partial(float, day * DAY + 90))
            intake = Intake(signed.bundle, opener, store, Stages(), clocks=clocks)
            key = signed.bundle.keys[0].id
            await intake.apply(Window("theme", day), secrets.token_bytes(16), key, reports)

    try:
        with page_over(signed, fill, (FIRST + DAYS + 3) * DAY + 60.0) as address:
            response = web.get(
                f"{address}/v1/metrics/theme/trend", params={"epochs": "all", "value": "dark"}
            ).json()
            [dark] = response["series"]
            assert sum(point["reports"] for point in dark["points"]) == DEVICES
            assert len(dark["points"]) == DAYS
            first, last = dark["points"][0], dark["points"][-1]
            assert first["line"] < 0.4
            assert last["line"] > 0.6
            assert all(point["line_low"] <= point["line_high"] for point in dark["points"])
            with chromium() as browser, Watched(browser, clean=False) as watched:
                page = watched.open(f"{address}/metric?name=theme&epochs=all")
                expect(page.locator("#trend circle.raw")).to_have_count(2 * DAYS)
                expect(page.locator("#trend path.band")).to_have_count(2)
            conflict = "the server responded with a status of 409 (Conflict)"
            assert {error for error in watched.errors if conflict not in error} == set(), (
                "one period: none to compare"
            )
    finally:
        opener.close()
