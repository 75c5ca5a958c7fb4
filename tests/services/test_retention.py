"""Totals go when their time is over, or an operator says so; the law keeps how many they were."""

import asyncio
import secrets
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from hubbub.aggregator.query.answer_store import MemoryAnswerStore, RedisAnswerStore
from hubbub.aggregator.retention import Retention, days_of
from hubbub.aggregator.store.contract import Commit, TotalsStore
from hubbub.aggregator.store.redis import RedisStore
from hubbub.catalog import Bundle, Metric, epoch_at, read_catalog
from hubbub.cli.main import main
from hubbub.conservation import Window
from hubbub.errors import CatalogInvalid
from hubbub.runtime import Clocks, connect_redis
from tests.conftest import CATALOG, Made
from tests.support.fakes import MemoryStore

DAYS = 86_400


class Sure(Clocks):
    """Sure of the time, at once."""

    @property
    def settled(self) -> bool:
        return True


async def _count(store: TotalsStore, metric: Metric, days_ago: int, number: int) -> Window:
    window = Window(metric.name, epoch_at(time.time() - days_ago * DAYS, metric.epoch))
    cells = np.zeros(metric.randomizer.layout.size, dtype=np.int64)
    tags = [secrets.token_bytes(16) for _ in range(number)]
    await store.shards(window)
    await store.add(window, Commit(secrets.token_bytes(16), tags, cells, 0, {}, 4 * 10**9))
    return window


def test_what_is_older_than_the_catalog_keeps_goes_and_nothing_else(made: Made) -> None:
    theme = replace(made.bundle.metrics["theme"], keep="5w")
    metrics = {**made.bundle.metrics, "theme": theme}
    bundle: Bundle = replace(made.bundle, metrics=metrics)

    async def body() -> None:
        store, changed = MemoryStore(), set[str]()
        old = await _count(store, theme, 40, 30)
        young = await _count(store, theme, 30, 20)
        other = await _count(store, metrics["crashed"], 40, 10)
        retention = Retention(lambda: bundle, store, MemoryAnswerStore(), Sure(), changed)
        for _ in range(2):
            await retention.look()
            held = await store.counted(["theme", "crashed"])
            assert held == {young: (20, 0), other: (10, 0)}
        assert (await store.report_counts())[old]["counted:deleted"] == 30
        assert changed == {"theme"}
        unsure = Retention(lambda: replace(bundle), store, MemoryAnswerStore(), Clocks(), changed)
        await _count(store, theme, 41, 5)
        await unsure.look()
        assert len(await store.counted(["theme"])) == 2

    asyncio.run(body())


def test_an_operator_forgets_what_was_before_a_day(
    made: Made,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", redis_url)
    theme = made.bundle.metrics["theme"]
    before = (datetime.now(UTC) - timedelta(days=20)).date().isoformat()
    asked = ["forget", "theme", "--bundle", str(made.path), "--before"]

    async def fill() -> list[Window]:
        server = await connect_redis(redis_url)
        await server.client.flushdb()
        store = RedisStore(server)
        windows = [await _count(store, theme, days, 30) for days in (40, 21, 5, 0)]
        await RedisAnswerStore(server).ranges("theme", ["7d"])
        await server.client.hset("aggregator:estimates:theme:7d", "version", "1")
        await server.close()
        return windows

    async def held() -> dict[Window, int]:
        server = await connect_redis(redis_url)
        counted = await RedisStore(server).counted(["theme"])
        found = {window: of.reports for window, of in counted.items()}
        assert not await server.client.exists("aggregator:estimates:theme:7d") or len(found) == 4
        await server.close()
        return found

    windows = asyncio.run(fill())
    assert main([*asked, before]) == 0
    assert "60 reports" in capsys.readouterr().out
    assert set(asyncio.run(held())) == set(windows)
    assert main([*asked, before, "--yes"]) == 0
    assert "the law counts 60 as counted:deleted" in capsys.readouterr().out
    assert set(asyncio.run(held())) == set(windows[2:])
    # An epoch that still takes reports is not deleted, whatever day is named.
    assert main([*asked, "2999-01-01", "--yes"]) == 0
    assert set(asyncio.run(held())) == {windows[3]}
    assert main([*asked, "2999-01-01"]) == 0
    told = capsys.readouterr().out
    assert "is not over, and takes reports until 2" in told.splitlines()[-1]
    assert main([*asked, before]) == 0
    assert "nothing is held" in capsys.readouterr().out
    monkeypatch.delenv("HUBBUB_REDIS_URL")
    assert main([*asked, before]) == 2
    assert "the URL of the aggregator's Redis in HUBBUB_REDIS_URL" in capsys.readouterr().err


def test_keep_is_said_once_for_all_or_for_a_metric(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    own = CATALOG.replace('epoch = "day"', 'epoch = "day"\nkeep = "8w"', 1)
    path.write_text('keep = "400d"\n' + own)
    metrics = read_catalog(path).metrics
    assert [days_of(metrics[name].keep) for name in ("theme", "crashed")] == [56, 400]
    for wrong in ('"0d"', '"1y"', "400", '"٣d"'):
        path.write_text(f"keep = {wrong}\n" + CATALOG)
        with pytest.raises(CatalogInvalid, match='a number of days or weeks, as "400d"'):
            read_catalog(path)
