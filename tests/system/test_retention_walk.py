"""Retention as who watches sees it: a running hubbub, totals of weeks ago, and the day they go."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from hubbub.aggregator.store.contract import WindowTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.totals_deletion import Retention, read_promises
from hubbub.authoring import read_catalog
from hubbub.catalog import EPOCH_SECONDS, epoch_at
from hubbub.cli.main import main
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.redis.client import connect_redis
from hubbub.simulation.demo_history import Day, write_history
from tests.conftest import CATALOG
from tests.interfaces.browser import CHROMIUM, chromium
from tests.support import web
from tests.support.moment import far_from_midnight
from tests.support.waiting import eventually

pytestmark = pytest.mark.thorough

DAYS_AGO = (60, 50, 40, 20, 3)
REPORTS = 300


class Sure(Clocks):
    """Sure of the time at once, where a service takes an hour for it."""

    @property
    def settled(self) -> bool:
        return True


def _dated(days_ago: int) -> str:
    return epoch_date(epoch_at(time.time(), "day") - days_ago, EPOCH_SECONDS["day"])


def _fill(run: LocalRun) -> None:
    """Totals of days that are over, with the shuffler's counters of them."""
    layout = run.bundle.metrics["theme"].randomizer.layout
    totals = WindowTotals(
        cells=np.full(layout.size, REPORTS // 3, dtype=np.int64),
        counted=REPORTS,
        batch_reports=100,
        at=0,
    )
    today = epoch_at(time.time(), "day")
    days = [Day(Window("theme", today - ago), totals) for ago in DAYS_AGO]
    write_history(days, run.aggregator_redis, run.shuffler_redis)


async def _hour_passes(run: LocalRun, days_later: int = 0) -> None:
    """What the aggregator does every hour, once its clocks agree."""
    server = await connect_redis(run.aggregator_redis)
    store = RedisStore(server)
    clocks = Sure(lambda: time.time() + days_later * 86_400)
    await Retention(run.bundle, store, server, clocks, changed=set()).look()
    await server.close()


async def _promised(run: LocalRun) -> bool:
    """Whether the running aggregator remembers for how long `theme` is kept."""
    server = await connect_redis(run.aggregator_redis)
    promises = await read_promises(server)
    await server.close()
    return "theme" in promises and promises["theme"].days == {"day": {35: None}}


def _then_retired(path: Path, output_of: Callable[..., str]) -> None:
    """The metric is retired: what was promised of it holds, and it has its name."""
    path.write_text(CATALOG.replace("[metrics.theme]", "[metrics.shade]"))
    with LocalRun(path.parent / ".hubbub", read_catalog(path), Ports.free()) as run:
        assert "theme" not in run.bundle.metrics
        named = ("forget", "theme", "--before", _dated(10), "--yes")
        assert f"300 reports, of {_dated(20)} to {_dated(20)}: deleted" in output_of(*named)
        asyncio.run(_hour_passes(run, days_later=31))
        assert "1,200 reports are of epochs" in output_of("status")
        asyncio.run(_hour_passes(run, days_later=33))
        law = output_of("status")
        assert "1,500 reports are of epochs whose totals were deleted" in law
        assert "The law balances" in law
        never = output_of("forget", "themes", "--before", _dated(10), code=2)
        assert "no retired metric has this name" in never


def test_totals_are_deleted_by_hand_and_by_keep_as_every_interface_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    far_from_midnight()
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HUBBUB_REDIS_URL", raising=False)
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG.replace('epoch = "day"', 'epoch = "day"\nkeep = "5w"', 1))

    def printed(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        caught = capsys.readouterr()
        return " ".join((caught.out + caught.err).split())

    with LocalRun(tmp_path / ".hubbub", read_catalog(path), Ports.free()) as run:
        _fill(run)
        before = ("forget", "theme", "--before", _dated(45))
        oldest = f"600 reports, of {_dated(60)} to {_dated(50)}"
        assert f"{oldest}, would be deleted" in printed(*before)
        assert "theme: 1,500 reports" in printed("query", "theme", "--epochs", "all")
        assert f"{oldest}: deleted" in printed(*before, "--yes")
        asyncio.run(_hour_passes(run))
        law = printed("status")
        assert "1,500 acknowledged" in law
        assert "1,500 counted" in law
        assert "The law balances" in law
        assert "of those counted, 900 reports are of epochs whose totals were deleted" in law
        assert "theme: 600 reports" in printed("query", "theme", "--epochs", "all")
        refused = printed("query", "theme", "--epochs", _dated(40), code=2)
        gone = ", ".join(map(_dated, DAYS_AGO[:3]))
        assert f'deleted (keep = "5w", or hubbub forget) are the totals of {gone}' in refused
        url = f"{run.endpoints.page}v1/metrics/theme/estimates"
        assert gone in web.get(url, params={"epochs": _dated(40)}).text
        status = web.get(f"{run.endpoints.page}v1/status").json()
        assert status["balanced"]
        assert status["total"]["deleted"] == 900
        assert sum(window["deleted"] for window in status["windows"]) == 900
        if CHROMIUM:
            with chromium() as browser:
                page = browser.new_page()
                page.goto(f"{run.endpoints.page}pipeline")
                expect(page.locator("#deleted")).to_contain_text("900 are of epochs whose totals")
        eventually(lambda: asyncio.run(_promised(run)))
    _then_retired(path, printed)
    (tmp_path / "pass").write_text("correct horse battery")
    backup = ("backup", "kept", "--passphrase", "pass")
    for stopped in (before, ("status",), ("query", "theme"), backup):
        assert "nothing runs in .hubbub: start it with: hubbub up" in printed(*stopped, code=2)
    assert not (tmp_path / "kept").exists()
    elsewhere = printed(*before, "--home", "elsewhere", code=2)
    assert "no `hubbub up` runs there" in elsewhere
