"""Days from the SDK to the trend: each device reports once, sealed, opened, counted, and fitted."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from hubbub.client import Client, Outcome
from tests.support import web
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.days import count, send_over_days
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


def _run(client: Client, device: int, days: Iterator[int]) -> None:
    """Every day; of other secrets than the fixed ones one in 500 has a line beyond the bounds."""
    outcomes = []
    for day in days:
        # A fifth of all have it dark, and from the fifth day on four fifths.
        is_dark = (device % 5 == 0) != (day - FIRST >= DAYS // 2)
        outcomes.append(client.report("theme", "dark" if is_dark else "light"))
        if outcomes[-1] is Outcome.QUEUED:
            assert client.flush(HANG_SECONDS)
    assert outcomes.count(Outcome.QUEUED) == 1
    assert outcomes.count(Outcome.NOT_ITS_DAY) == DAYS - 1
    [metric] = client.ledger().metrics
    assert metric.spent == metric.epsilon


def test_a_device_reports_on_one_day_and_a_line_leads_through_all(tmp_path: Path) -> None:
    signed = make_signed(tmp_path, CATALOG, start=FIRST * DAY)
    sent = send_over_days(range(FIRST, FIRST + DAYS), signed, DEVICES, _run)
    assert sum(map(len, sent.values())) == DEVICES
    fill = partial(count, signed, sent)
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
