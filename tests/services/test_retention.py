"""Totals go when their time is over, or an operator says so; the law keeps how many they were."""

import asyncio
import json
import secrets
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.store.contract import Outcome, TotalsStore
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.totals_deletion import (
    Retention,
    days_of,
    delete_totals,
    length_of,
    read_promises,
)
from hubbub.authoring import read_catalog
from hubbub.bundles import Bundle
from hubbub.catalog import Metric, epoch_at, epoch_start
from hubbub.cli.main import main
from hubbub.conservation import Window
from hubbub.epochs import epoch_date
from hubbub.errors import CatalogInvalid
from hubbub.installation import totals_connection
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import MemoryServer, RedisServer
from tests.conftest import CATALOG, CatalogFiles
from tests.support.bundles import make_signed
from tests.support.commands import output_of
from tests.support.fakes import MemoryStore
from tests.support.moment import now, today
from tests.support.stores import commit_of

DAYS = 86_400


class Sure(Clocks):
    """Sure of the time, at once."""

    @property
    def settled(self) -> bool:
        return True


async def _count(store: TotalsStore, metric: Metric, days_ago: int, number: int) -> Window:
    window = Window(metric.name, epoch_at(now() - days_ago * DAYS, metric.epoch))
    cells = np.zeros(metric.randomizer.layout.size, dtype=np.int64)
    tags = [secrets.token_bytes(16) for _ in range(number)]
    await store.shards(window)
    await store.add(window, commit_of(tags, cells))
    return window


async def test_exactly_the_totals_older_than_keep_are_deleted(
    catalog_files: CatalogFiles,
) -> None:
    theme = replace(catalog_files.bundle.metrics["theme"], keep="5w")
    metrics = {**catalog_files.bundle.metrics, "theme": theme}
    bundle: Bundle = replace(catalog_files.bundle, metrics=metrics)
    store, changed = MemoryStore(), set[str]()
    old = await _count(store, theme, 40, 30)
    young = await _count(store, theme, 30, 20)
    other = await _count(store, metrics["crashed"], 40, 10)
    retention = Retention(bundle, store, MemoryServer(), Sure(), changed=changed)
    for _ in range(2):
        await retention.look()
        counted = await store.counted(["theme", "crashed"])
        counts = {window: (count.reports, count.dummies) for window, count in counted.items()}
        assert counts == {young: (20, 0), other: (10, 0)}
    assert (await store.report_counts())[old]["counted:deleted"] == 30
    assert changed == {"theme"}
    await _count(store, theme, 41, 5)
    await Retention(bundle, store, MemoryServer(), Clocks(), changed=changed).look()
    assert len(await store.counted(["theme"])) == 2


@pytest.mark.parametrize("line", ["", 'keep = "400d"'])
async def test_a_promised_deletion_happens_also_after_the_metric_is_retired_or_changed(
    catalog_files: CatalogFiles, server: RedisServer, line: str
) -> None:
    """`keep` of 5 weeks is served once; then the metric is retired, or kept for longer."""
    theme = replace(catalog_files.bundle.metrics["theme"], keep="5w")
    crashed = catalog_files.bundle.metrics["crashed"]
    served = replace(catalog_files.bundle, metrics={"theme": theme, "crashed": crashed})
    later = {"theme": replace(theme, keep="400d")} if line else {}
    after = replace(served, metrics={"crashed": crashed, **later})
    store, changed = RedisStore(server), set[str]()
    # Nobody has to be sure of the time to promise.
    await Retention(served, store, server, Clocks(), changed=changed).look()
    old = await _count(store, theme, 40, 30)
    tier = await _count(store, replace(theme, name="theme/1"), 40, 30)
    young = await _count(store, theme, 30, 20)
    other = await _count(store, crashed, 40, 10)
    await Retention(after, store, server, Clocks(), changed=changed).look()
    assert len(await store.counted(["theme", "theme/1", "crashed"])) == 4
    for _ in range(2):
        await Retention(after, store, server, Sure(), changed=changed).look()
        counted = await store.counted(["theme", "theme/1", "crashed"])
        counts = {window: (count.reports, count.dummies) for window, count in counted.items()}
        assert counts == {young: (20, 0), other: (10, 0)}
    law = await store.report_counts()
    assert [law[window]["counted:deleted"] for window in (old, tier)] == [30, 30]
    assert changed == set(later)
    promise = (await read_promises(server))["theme"]
    over = epoch_start(young.epoch + 1, "day") + 35 * DAYS
    assert promise.is_over(young.epoch, over)
    assert not promise.is_over(young.epoch, over - 1)
    # Of what comes after the longer line, the longer line says it.
    assert promise.is_over(young.epoch + 32, over + 32 * DAYS) is not bool(later)
    await server.client.hset("aggregator:retention", "theme", "{")
    await Retention(served, store, server, Sure(), changed=changed).look()
    assert (await read_promises(server))["theme"].days == {"day": {35: None}}


@pytest.mark.parametrize("lengths", [("day", "hour"), ("day", "week"), ("week", "day")])
def test_old_totals_of_a_reused_name_keep_their_own_epoch_length(
    catalog_files: CatalogFiles,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    lengths: tuple[str, str],
) -> None:
    """35 days were promised; the name comes back without `keep`, and at last keeps 40 days."""
    first, then = lengths
    monkeypatch.setenv("HUBBUB_REDIS_URL", redis_url)
    old = replace(catalog_files.bundle.metrics["theme"], epoch=first, keep="5w")
    new = replace(old, epoch=then, keep="")
    crashed = catalog_files.bundle.metrics["crashed"]

    def with_theme(*themes: Metric) -> Bundle:
        metrics = {"crashed": crashed, **{metric.name: metric for metric in themes}}
        return replace(catalog_files.bundle, metrics=metrics, history={})

    async def body() -> None:
        server = await connect_redis(redis_url)
        await server.client.flushdb()
        store = RedisStore(server)

        async def look(bundle: Bundle) -> set[Window]:
            await Retention(bundle, store, server, Sure(), changed=set()).look()
            return set(await store.counted(["theme"]))

        gone, middle, recent = [await _count(store, old, days, 7) for days in (60, 47, 22)]
        # What another version wrote, which knew of one length alone.
        wrote = json.dumps({"epoch": first, "days": {"35": None}})
        await server.client.hset("aggregator:retention", "theme", wrote)
        assert await look(with_theme()) == {recent}
        early = await _count(store, old, 45, 7)
        new_windows = [await _count(store, new, days, 7) for days in (55, 0)]
        assert await look(with_theme(new)) == {recent, *new_windows}
        assert {gone, middle, early}.isdisjoint(await store.counted(["theme"]))
        assert await look(with_theme(replace(new, keep="40d"))) == {recent, new_windows[1]}
        assert set((await read_promises(server))["theme"].days) == {first, then}
        # Back to the first length: nothing of what was promised is lost.
        assert await look(with_theme(old)) == {recent, new_windows[1]}
        assert list((await read_promises(server))["theme"].days) == [then, first]
        await server.close()

    asyncio.run(body())
    monkeypatch.setattr(totals_connection, "read_bundle", lambda _: with_theme(new))
    command = ["forget", "theme", "--bundle", str(catalog_files.path), "--yes", "--before"]
    outputs = [output_of(capsys, *command, epoch_date(today() - ago, DAYS)) for ago in (30, 1)]
    assert "there are no totals of epochs that ended before that day" in outputs[0]
    assert "the law counts 7 as counted:deleted" in outputs[1]


def test_an_epoch_number_of_two_lengths_is_read_as_the_later() -> None:
    """Months and spans of 28 days are near each other; the rest is far apart."""
    now = datetime(2026, 11, 25, tzinfo=UTC).timestamp()
    every = ["hour", "day", "week", "28d", "month"]
    for length in every:
        assert length_of(epoch_at(now, length) + 1, every, now) == length
        assert length_of(epoch_at(now, length), ["hour", length], now) == length
    years_ago = epoch_at(now - 5 * 365 * DAYS, "28d")
    assert length_of(years_ago, every, now) == "month"
    assert length_of(years_ago, ["28d", "day"], now) == "28d"
    assert length_of(epoch_at(now, "hour"), ["day"], now) == "day"


def test_forget_accepts_a_retired_metric_but_no_unknown_name(
    catalog_files: CatalogFiles,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", redis_url)
    shade, older = [
        replace(catalog_files.bundle.metrics["theme"], name=name) for name in ("shade", "older")
    ]

    async def fill() -> None:
        server = await connect_redis(redis_url)
        await server.client.flushdb()
        store = RedisStore(server)
        for days in (40, 21, 5):
            await _count(store, shade, days, 30)
        await _count(store, older, 40, 7)  # of a version that remembered nothing
        served = replace(catalog_files.bundle, metrics={"shade": shade}, history={})
        await Retention(served, store, server, Clocks(), changed=set()).look()
        await server.close()

    asyncio.run(fill())
    before = epoch_date(today() - 20, DAYS)

    def printed(name: str, *more: str, code: int = 0, bundle: Path = catalog_files.path) -> str:
        command = ["forget", name, "--before", before, "--bundle", str(bundle)]
        assert main([*command, *more]) == code
        caught = capsys.readouterr()
        return " ".join((caught.out + caught.err).split())

    assert "60 reports" in printed("shade")
    assert "the law counts 60 as counted:deleted" in printed("shade", "--yes")
    assert "there are no totals of epochs that ended before that day" in printed("shade", "--yes")
    assert "no retired metric has this name" in printed("shape", code=2)
    assert "give a bundle that contains it, with --bundle" in printed("older", code=2)
    had = CATALOG.replace("[metrics.theme]", "[metrics.older]")
    former = make_signed(tmp_path, had, start=today() * DAYS).path
    assert "the law counts 7 as counted:deleted" in printed("older", "--yes", bundle=former)


def test_an_operator_deletes_totals_before_a_day(
    catalog_files: CatalogFiles,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HUBBUB_REDIS_URL", redis_url)
    theme = catalog_files.bundle.metrics["theme"]
    before = epoch_date(today() - 20, DAYS)
    command = ["forget", "theme", "--bundle", str(catalog_files.path), "--before"]

    async def fill() -> list[Window]:
        server = await connect_redis(redis_url)
        await server.client.flushdb()
        store = RedisStore(server)
        windows = [await _count(store, theme, days, 30) for days in (40, 21, 5, 0)]
        await AnswerStore(server).ranges("theme", ["7d"])
        await server.client.hset("aggregator:estimates:theme:7d", "version", "1")
        await server.close()
        return windows

    async def window_counts() -> dict[Window, int]:
        server = await connect_redis(redis_url)
        counted = await RedisStore(server).counted(["theme"])
        counts = {window: of.reports for window, of in counted.items()}
        assert not await server.client.exists("aggregator:estimates:theme:7d") or len(counts) == 4
        await server.close()
        return counts

    windows = asyncio.run(fill())
    assert "60 reports" in output_of(capsys, *command, before)
    assert set(asyncio.run(window_counts())) == set(windows)
    assert "the law counts 60 as counted:deleted" in output_of(capsys, *command, before, "--yes")
    assert set(asyncio.run(window_counts())) == set(windows[2:])
    # An epoch that still takes reports is not deleted, whatever day is named, or it is here.
    with monkeypatch.context() as ahead:
        moment = time.time
        ahead.setattr(time, "time", lambda: moment() + 400 * DAYS)
        assert main([*command, "2999-01-01", "--yes"]) == 0
    assert set(asyncio.run(window_counts())) == {windows[3]}
    output = output_of(capsys, *command, "2999-01-01")
    assert "the epoch still accepts reports until 2" in output.splitlines()[-1]
    assert "there are no totals" in output_of(capsys, *command, before)
    monkeypatch.delenv("HUBBUB_REDIS_URL")
    assert main([*command, before]) == 2
    assert "the URL of the aggregator's Redis in HUBBUB_REDIS_URL" in capsys.readouterr().err


@pytest.mark.parametrize("shards", [1, 4])
async def test_the_rest_of_a_crowd_that_comes_after_its_epoch_was_forgotten_is_not_counted(
    catalog_files: CatalogFiles, server: RedisServer, shards: int
) -> None:
    """An answer about that rest would be about fewer reports than the metric promises."""
    store, theme = RedisStore(server, shards=shards), catalog_files.bundle.metrics["theme"]
    window = await _count(store, theme, 40, 30)
    assert await delete_totals([window], store, AnswerStore(server)) == 30
    for shard in range(shards):
        late = commit_of(
            [secrets.token_bytes(16) for _ in range(20)],
            np.zeros(theme.randomizer.layout.size, dtype=np.int64),
            shard=shard,
        )
        assert (await store.add(window, late))[0] is Outcome.FORGOTTEN
    law = (await store.report_counts())[window]
    assert (law["counted"], law["counted:deleted"]) == (0, 30)


def test_keep_is_declared_for_all_metrics_or_for_one(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    metric_catalog = CATALOG.replace('epoch = "day"', 'epoch = "day"\nkeep = "8w"', 1)
    path.write_text('keep = "400d"\n' + metric_catalog)
    metrics = read_catalog(path).metrics
    assert [days_of(metrics[name].keep) for name in ("theme", "crashed")] == [56, 400]
    for wrong in ('"0d"', '"1y"', "400", '"٣d"'):
        path.write_text(f"keep = {wrong}\n" + CATALOG)
        with pytest.raises(CatalogInvalid, match='a number of days or weeks, as "400d"'):
            read_catalog(path)
