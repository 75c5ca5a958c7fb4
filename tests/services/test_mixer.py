"""The mixer on a real pool, before an aggregator that takes batches, refuses them, or is away."""

import asyncio
import secrets
from collections import Counter
from functools import partial
from typing import Any

import pytest

from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.store.contract import Commit, Outcome
from hubbub.aggregator.store.redis import RedisStore
from hubbub.conservation import Window
from hubbub.errors import BadParameter, StoreUnavailable
from hubbub.runtime.clocks import Clock, Clocks
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.process import end_tasks
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.sealing.hpke import seal, seal_info
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import read_stream_table
from tests.conftest import CatalogFiles
from tests.support.mixing import a_sink, mixers, sealed_reports, until_empty, window_of_today
from tests.support.moment import now
from tests.support.stores import totals

DAY = 86_400


async def test_processes_that_share_a_pool_share_its_batches(
    catalog_files: CatalogFiles, redis_url: str
) -> None:
    table = read_stream_table(catalog_files.streams)
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 3) as mixing:
        turning = asyncio.Lock()

        async def all_have_seen_it() -> None:
            """Before a batch is over, all of them look at it twice."""
            async with turning:
                await mixing.turn()
                await mixing.turn()

        sink.before = all_have_seen_it
        pool, reports, window = mixing.pools[0], sealed_reports(1000), window_of_today()
        await pool.add({window: reports})
        await pool.close_windows()
        await until_empty(mixing, window)
        for _ in range(5):
            await mixing.turn(30)
        assert sink.sealed == Counter(reports), "each report once"
        assert set(sink.delivered.values()) == {1}, "each batch once"


async def test_a_stream_that_nobody_accepts_delays_no_other(
    catalog_files: CatalogFiles, redis_url: str
) -> None:
    table, stuck = read_stream_table(catalog_files.streams), window_of_today()
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 1) as mixing:
        [pool] = mixing.pools
        sink.unknown = {"theme"}
        await pool.add({stuck: sealed_reports(1000)})
        await mixing.until(sink.has_refused)
        await pool.add({Window("editor", stuck.epoch // 7): sealed_reports(500)})
        await pool.close_windows()
        await mixing.until(partial(sink.has_taken, 500))
        for _ in range(20):  # more than it would take to have them all in flight
            await mixing.turn()
        law = await pool.report_counts()
        assert law[stuck]["pooled"] + law[stuck]["in_flight"] == 1000
        assert law[stuck]["in_flight"] <= 3 * 50, "what waits stays in the pool, unmixed"
        sink.unknown = set()
        await mixing.until(partial(sink.has_taken, 1500))


async def test_a_refused_batch_is_not_sent_again_before_its_delay(
    catalog_files: CatalogFiles, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LatestTime:
        """Where a wait is drawn, the longest of them."""

        def __getattr__(self, name: str) -> Any:
            return getattr(secrets.SystemRandom(), name)

        def uniform(self, _low: float, high: float) -> float:
            return high

    monkeypatch.setattr("hubbub.shuffler.mixer._random", LatestTime())
    table = read_stream_table(catalog_files.streams)
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 1) as mixing:
        [pool], clock = mixing.pools, mixing.clock
        sink.unknown = {"theme"}
        await mixing.turn()
        await pool.add({window_of_today(): sealed_reports(50)})
        await pool.close_windows()
        await mixing.turn()
        [sending] = mixing.deliveries()
        for waited in (0.2, 0.4, 0.8):
            await clock.settle(sending)
            refused = sink.refused
            clock.advance(waited - 0.01)
            await clock.settle(sending, *mixing.loops)
            assert sink.refused == refused, "all wait: nothing is on its way"
            clock.advance(0.02)
            await clock.settle(sending, *mixing.loops)
            assert sink.refused == refused + 1


async def test_a_window_that_cannot_be_mixed_delays_no_other(
    catalog_files: CatalogFiles, redis_url: str
) -> None:
    """Such as one whose keys are on a node that is away, or are not what they should be."""
    table, window = read_stream_table(catalog_files.streams), window_of_today()
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 1) as mixing:
        [pool] = mixing.pools
        client: Any = pool.server.client
        bad = Window("crashed", window.epoch * 24)
        await client.set(bad.key("shuffler:pool"), "no set")
        await client.sadd("shuffler:windows", bad.name, "nonsense", b"\xff:1")
        reports = sealed_reports(500)
        await pool.server.execute(
            [
                ("SADD", window.key("shuffler:pool"), *reports),
                ("SADD", "shuffler:windows", window.name),
                ("SADD", "shuffler:closed", window.name),
            ]
        )
        await mixing.until(partial(sink.has_taken, 500))
        assert sink.sealed == Counter(reports)


async def test_reports_of_a_stream_that_left_the_table_are_withheld_in_time(
    catalog_files: CatalogFiles, redis_url: str
) -> None:
    table, gone = read_stream_table(catalog_files.streams), window_of_today("retired")
    began, ahead, passed = now(), [0.0], [0.0]
    clocks = Clocks(lambda: began + ahead[0] + passed[0], monotonic=lambda: 1000.0 + passed[0])
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 1, clocks) as mixing:
        [pool] = mixing.pools
        await pool.add({gone: sealed_reports(300)})

        async def is_known() -> bool:
            return bool(await pool.server.client.hexists("shuffler:unknown", gone.name))

        await mixing.until(is_known)
        await mixing.turn()
        assert (await pool.report_counts())[gone]["pooled"] == 300, "a table may know it again"
        ahead[0] = 31.0 * DAY
        await mixing.turn()
        await mixing.turn()
        assert (await pool.report_counts())[gone]["pooled"] == 300, (
            "one clock jumped: nothing is deleted"
        )
        ahead[0], passed[0] = 0.0, 31.0 * DAY
        assert not clocks.settled, "nobody has looked for long"
        for _ in range(8):
            passed[0] += 600
            clocks.earliest()

        async def all_withheld() -> bool:
            withheld = (await pool.report_counts())[gone]["withheld"]
            return withheld == 300 and not await pool.windows()

        await mixing.until(all_withheld)
        assert not sink.delivered


class _Flaky(RedisStore):
    """Fails at the second shard, as often as it is told."""

    failures = 0

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        if commit.shard == 1 and self.failures:
            self.failures -= 1
            raise StoreUnavailable("as told")
        return await super().add(window, commit)


async def test_a_batch_that_failed_between_two_shards_is_counted_once(
    catalog_files: CatalogFiles, server: RedisServer
) -> None:
    store = _Flaky(server, 3)
    store.failures = 2
    opener = Opener(catalog_files.opening, 1)
    intake = Intake(catalog_files.bundle, opener, store, Stages())
    window = window_of_today()
    key = catalog_files.bundle.keys[0]
    sealed = [seal(b"\1", key.half("x25519"), seal_info(*window)) for _ in range(60)]
    sealed += [sealed[0], b"", b"short", bytes(49)]
    batch_id = secrets.token_bytes(16)
    with pytest.raises(BadParameter, match="has not begun"):
        await intake.apply(Window("theme", 2**32 - 1), batch_id, key.id, sealed)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await intake.apply(window, batch_id, key.id, sealed)
    assert 0 < (await totals(store, window)).reports < 60
    assert await intake.apply(window, batch_id, key.id, sealed) is Outcome.APPLIED
    assert await intake.apply(window, batch_id, key.id, sealed) is Outcome.ALREADY_APPLIED
    assert (await totals(store, window)).reports == 60
    assert (await store.report_counts())[window] == {
        "counted": 60,
        "duplicate": 1,
        "rejected:wrong_length": 2,
        "rejected:not_opened": 1,
    }
    opener.close()


@pytest.mark.parametrize("shards", [1, 4])
async def test_aggregators_that_share_a_store_count_a_batch_once(
    catalog_files: CatalogFiles, server: RedisServer, shards: int
) -> None:
    opener = Opener(catalog_files.opening, 1)
    intakes = [
        Intake(catalog_files.bundle, opener, RedisStore(server, shards), Stages()) for _ in range(3)
    ]
    window, key = window_of_today(), catalog_files.bundle.keys[0]
    sealed = [seal(b"\1", key.half("x25519"), seal_info(*window)) for _ in range(90)]
    batches = [sealed[:40], sealed[30:70], sealed[60:]]  # they overlap
    ids = [secrets.token_bytes(16) for _ in batches]
    await asyncio.gather(
        *(
            intake.apply(window, batch_id, key.id, batch)
            for intake in intakes
            for batch_id, batch in zip(ids, batches, strict=True)
        )
    )
    assert (await totals(RedisStore(server), window)).reports == 90
    assert (await RedisStore(server).report_counts())[window] == {
        "counted": 90,
        "duplicate": 20,
    }
    opener.close()


async def test_a_mixer_ends_on_request_even_as_reports_arrive(
    catalog_files: CatalogFiles, server: RedisServer
) -> None:
    """At a signal every loop is cancelled; one that swallowed it would hang the service."""

    class Watched(Clock):
        """Tells when it is waited by."""

        waits = asyncio.Event()

        async def wait(self, event: asyncio.Event, seconds: float) -> bool:
            self.waits.set()
            return await super().wait(event, seconds)

    table, clock = read_stream_table(catalog_files.streams), Watched()
    mixer = Mixer(Pool(server), table, [], Policy(), stages=Stages(), clock=clock)
    for turns in range(6):
        clock.waits.clear()
        loop = asyncio.create_task(mixer.run())
        await clock.waits.wait()
        mixer._landed.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        await end_tasks([loop])
