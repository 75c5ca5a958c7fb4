"""Three days from the devices to files: Redis is emptied of two of them, and answers stay."""

import hashlib
import json
import os
import secrets
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis as redis_client

import hubbub.notebook
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.store.redis import RedisStore
from hubbub.bundles.opening_keys import OpeningKey
from hubbub.cli.main import main
from hubbub.client import Client, MemoryState, Outcome, SystemClock
from hubbub.client.testing import FakeShuffler, coins
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.history import open_totals
from hubbub.keys.opening_keys import read_opening_keys
from hubbub.notebook import Connection
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.stages import Stages
from hubbub.runtime.redis.client import connect_redis
from tests.interfaces.running_aggregator import Held, house
from tests.support.bundles import DAY, Signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.programs import run_hubbub
from tests.support.waiting import HANG_SECONDS, eventually

pytestmark = pytest.mark.thorough

CATALOG = catalog_toml(
    metric_toml(
        "theme",
        mechanism="unary.oue",
        epsilon=2.0,
        values=["light", "dark", "system"],
        min_batch=10,
    ),
    metric_toml(
        "seconds",
        mechanism="mean.piecewise",
        domain="number",
        low=0,
        high=60,
        epsilon=2.0,
        min_batch=10,
    ),
)
DAYS, DEVICES, AGO = 3, 40, 9


def _sent(signed: Signed, first: int) -> dict[Window, list[bytes]]:
    """What the shuffler is sent: every device tells both metrics every day."""
    shuffler, today = FakeShuffler(), [first]
    clock = SystemClock(lambda: today[0] * DAY + 60.0)
    for device in range(DEVICES):
        state = MemoryState(hashlib.sha256(b"%d" % device).digest())
        today[0] = first
        with Client(
            signed.bundle,
            state,
            shuffler,
            hold_seconds=None,
            clock=clock,
            coins=coins(str(device)),
        ) as client:
            for today[0] in range(first, first + DAYS):
                theme = ("light", "dark", "system")[(device + today[0]) % 3]
                assert client.report("theme", theme) is Outcome.QUEUED
                assert client.report("seconds", device + 1.5) is Outcome.QUEUED
                assert client.flush(HANG_SECONDS)
    windows: dict[Window, list[bytes]] = {}
    for report in shuffler.reports():
        windows.setdefault(Window(report.stream, report.epoch), []).append(report.sealed)
    return windows


async def _fill(signed: Signed, url: str, today: int, _true_counts: Held) -> None:
    """Open and count them, each on its day."""
    keys: tuple[OpeningKey, ...] = read_opening_keys(signed.keys / "opening.keys.json")
    opener, server = Opener(keys, 1), await connect_redis(url)
    try:
        for window, reports in _sent(signed, today - AGO).items():
            clocks = Clocks(partial(float, window.epoch * DAY + 90))
            intake = Intake(signed.bundle, opener, RedisStore(server), Stages(), clocks=clocks)
            key = signed.bundle.keys[0].id
            await intake.apply(window, secrets.token_bytes(16), key, reports)
    finally:
        opener.close()
        await server.close()


def _answers(connection: Connection) -> list[dict[str, Any]]:
    asked = [
        ask
        for metric in ("theme", "seconds")
        for ask in (
            connection.estimates(metric, epochs="all"),
            connection.trend(metric, epochs="all"),
            connection.compare(metric),
        )
    ]
    return [dict(answer.document) for answer in (*asked, connection.top("theme", epochs="all"))]


def _empty(url: str, windows: list[Window]) -> None:
    """Redis no longer has these windows."""
    with redis_client.Redis.from_url(url) as client:
        for window in windows:
            for what in ("totals", "batches", "tags", "seen"):
                client.delete(window.key(f"aggregator:{what}"))
            client.hdel("aggregator:windows", window.name)
            client.hdel("aggregator:remembered", window.name)
        for key in client.scan_iter("aggregator:estimates:*"):
            client.delete(key)


def test_three_days_are_answered_from_files_once_redis_has_one_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "house" / "files"
    outlets = ("--totals", str(files), "--estimates", str(files))
    with house(tmp_path / "house", *outlets, catalog=CATALOG, fill=_fill) as run:
        first = run.today - AGO
        dates = [epoch_date(first + day, DAY) for day in range(DAYS)]
        eventually(lambda: len(list(files.glob("totals/*/*.parquet"))) == 2 * DAYS)
        served = hubbub.notebook.connect(run.page)
        before, law = _answers(served), served.status().document
        assert before[0]["reports"] == DAYS * DEVICES
        assert law["total"]["counted"] == 2 * DAYS * DEVICES
        gone = [Window(name, first + day) for name in ("theme", "seconds") for day in (0, 1)]
        _empty(run.redis_url, gone)
        assert json.dumps(_answers(served)) == json.dumps(before)
        assert served.status().document["total"]["counted"] == law["total"]["counted"]
        assert json.dumps(_answers(open_totals(files))) == json.dumps(before)
        monkeypatch.setenv("HUBBUB_REDIS_URL", run.redis_url)
        bundle = ["--bundle", str(run.signed.path)]
        assert main(["totals", "verify", str(files), *bundle]) == 0
        # Somebody's right to deletion reaches what only files have.
        forget = ["forget", "theme", "--before", dates[1], *bundle]
        assert main([*forget, "--yes"]) == 0
        assert "there are no totals of epochs that ended before that day" in capsys.readouterr().out
        assert main([*forget, "--totals", str(files), "--yes"]) == 0
        assert f"40 reports, of {dates[0]} to {dates[0]}: deleted" in capsys.readouterr().out
        answer = served.estimates("theme", epochs="all").document
        assert (answer["dates"], answer["reports"]) == (f"{dates[1]}..{dates[2]}", 2 * DEVICES)
        assert len(list(files.glob("totals/*/*.parquet"))) == 2 * DAYS - 1
        terms = served.status().document["total"]
        assert (terms["counted"], terms["deleted"]) == (2 * DAYS * DEVICES, DEVICES)
    # An app of its own, without a service: the command as it is installed.
    done = run_hubbub(
        "query",
        "seconds",
        "--totals",
        str(files),
        env={**os.environ, "COLUMNS": "100"},
        check=True,
    )
    assert "seconds: 40 reports" in done.stdout
