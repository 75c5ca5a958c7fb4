"""Three days from the devices to files: Redis is emptied of two of them, and answers stay."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as redis_client

import hubbub.notebook
from hubbub.aggregator.store.redis import RedisStore
from hubbub.cli.main import main
from hubbub.client import Client, Outcome
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.history import open_totals
from hubbub.notebook import Connection
from hubbub.runtime.redis.client import connect_redis
from tests.interfaces.running_aggregator import Held, house
from tests.support.bundles import DAY, Signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.days import count, send_over_days
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


def _run(client: Client, device: int, days: Iterator[int]) -> None:
    """Every device tells both metrics every day."""
    for day in days:
        theme = ("light", "dark", "system")[(device + day) % 3]
        assert client.report("theme", theme) is Outcome.QUEUED
        assert client.report("seconds", device + 1.5) is Outcome.QUEUED
        assert client.flush(HANG_SECONDS)


async def _fill(signed: Signed, url: str, today: int, _true_counts: Held) -> None:
    server = await connect_redis(url)
    try:
        sent = send_over_days(range(today - AGO, today - AGO + DAYS), signed, DEVICES, _run)
        await count(signed, sent, RedisStore(server))
    finally:
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
