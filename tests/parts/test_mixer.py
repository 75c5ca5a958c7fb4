"""The mixer on a real pool, before an aggregator that takes batches, refuses them, or is away."""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from hubbub.accounting import Window
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.store.contract import Commit, Outcome
from hubbub.aggregator.store.redis import RedisStore
from hubbub.catalog import seal, seal_info
from hubbub.cli.local.ports import free_port
from hubbub.errors import BadParameter, StoreUnavailable
from hubbub.runtime import Clocks, Server, Stages, channel, connect_redis
from hubbub.runtime.process import end_tasks
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.streams import StreamTable, read_stream_table
from hubbub.wire.v1.services_pb2 import Batch, BatchOutcome
from hubbub.wire.v1.services_pb2_grpc import IngestServicer, add_IngestServicer_to_server
from tests.conftest import Made
from tests.support.stores import totals
from tests.support.waiting import eventually_async

DAY = 86_400


class Sink(IngestServicer):
    """Takes every batch, but those of streams that it does not know."""

    def __init__(self) -> None:
        self.unknown: set[str] = set()
        self.refused = 0
        self.delivered: Counter[bytes] = Counter()
        self.sealed: Counter[bytes] = Counter()
        self.seconds = 0.0

    async def Apply(self, request: Batch, context: Any) -> BatchOutcome:
        if request.stream in self.unknown:
            self.refused += 1
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such metric")
        await asyncio.sleep(self.seconds)
        self.delivered[request.batch_id] += 1
        self.sealed.update(request.sealed)
        return BatchOutcome()


@asynccontextmanager
async def _sink() -> AsyncIterator[tuple[Sink, str]]:
    sink, address = Sink(), f"127.0.0.1:{free_port()}"
    server = Server(
        address, [lambda s: add_IngestServicer_to_server(sink, s)], tls=None, callers=None
    )
    await server.start()
    yield sink, address
    await server.stop(1)


@asynccontextmanager
async def _mixers(
    redis_url: str, table: StreamTable, address: str, number: int, clocks: Clocks | None = None
) -> AsyncIterator[list[Pool]]:
    server = await connect_redis(redis_url)
    await server.client.flushdb()
    pools = [Pool(server) for _ in range(number)]
    channels = [channel(address, "aggregator", tls=None) for _ in pools]
    mixers = [
        Mixer(pool, table, [one], Policy(max_batch=50), stages=Stages(), clocks=clocks)
        for pool, one in zip(pools, channels, strict=True)
    ]
    for pool in pools:
        await pool.heartbeat()
    loops = [asyncio.create_task(run()) for m in mixers for run in (m.run, m.heartbeat)]
    yield pools
    await end_tasks(loops)
    for one in channels:
        await one.close()
    await server.client.flushdb()
    await server.close()


async def _until(done: Callable[[], bool]) -> None:
    async def look() -> bool:
        return done()

    await eventually_async(look)


def _reports(number: int) -> list[bytes]:
    return [secrets.token_bytes(49) for _ in range(number)]


def test_processes_that_share_a_pool_share_its_batches(made: Made, redis_url: str) -> None:
    async def body() -> None:
        table, today = read_stream_table(made.streams), int(time.time()) // DAY
        async with (
            _sink() as (sink, address),
            _mixers(redis_url, table, address, 3) as pools,
        ):
            sink.seconds = 0.2  # long enough that all of them see every batch
            reports, window = _reports(1000), Window("theme", today)
            await pools[0].add({window: reports})
            await pools[0].close_windows()

            async def all_delivered() -> bool:
                terms = (await pools[0].report_counts())[window]
                return terms["pooled"] + terms["in_flight"] == 0

            await eventually_async(all_delivered)
            assert sink.sealed == Counter(reports), "each report once"
            assert set(sink.delivered.values()) == {1}, "each batch once"

    asyncio.run(body())


def test_a_stream_that_nobody_takes_holds_up_no_other(made: Made, redis_url: str) -> None:
    async def body() -> None:
        table, today = read_stream_table(made.streams), int(time.time()) // DAY
        async with (
            _sink() as (sink, address),
            _mixers(redis_url, table, address, 1) as (pool,),
        ):
            sink.unknown = {"theme"}
            stuck = Window("theme", today)
            await pool.add({stuck: _reports(1000)})
            await _until(lambda: sink.refused > 0)
            await pool.add({Window("editor", today // 7): _reports(500)})
            await pool.close_windows()
            await _until(lambda: sink.sealed.total() == 500)
            law = await pool.report_counts()
            assert law[stuck]["pooled"] + law[stuck]["in_flight"] == 1000
            assert law[stuck]["in_flight"] <= 3 * 50, "what waits stays in the pool, unmixed"
            sink.unknown = set()
            await _until(lambda: sink.sealed.total() == 1500)

    asyncio.run(body())


def test_a_window_that_cannot_be_mixed_holds_up_no_other(made: Made, redis_url: str) -> None:
    """Such as one whose keys are on a node that is away, or are not what they should be."""

    async def body() -> None:
        table, today = read_stream_table(made.streams), int(time.time()) // DAY
        async with _sink() as (sink, address), _mixers(redis_url, table, address, 1) as (pool,):
            client: Any = pool._server.client
            bad = Window("crashed", today * 24)
            await client.set(bad.key("shuffler:pool"), "no set")
            await client.sadd("shuffler:windows", bad.name, "nonsense", b"\xff:1")
            reports = _reports(500)
            await pool._server.execute(
                [
                    ("SADD", Window("theme", today).key("shuffler:pool"), *reports),
                    ("SADD", "shuffler:windows", f"theme:{today}"),
                    ("SADD", "shuffler:closed", f"theme:{today}"),
                ]
            )
            await _until(lambda: sink.sealed.total() >= 500)
            assert sink.sealed == Counter(reports)

    asyncio.run(body())


def test_reports_of_a_stream_that_left_the_table_are_withheld_in_time(
    made: Made, redis_url: str
) -> None:
    async def body() -> None:
        table, today = read_stream_table(made.streams), int(time.time()) // DAY
        ahead, passed = [0.0], [0.0]
        clocks = Clocks(
            lambda: time.time() + ahead[0] + passed[0],
            monotonic=lambda: time.monotonic() + passed[0],
        )
        async with (
            _sink() as (sink, address),
            _mixers(redis_url, table, address, 1, clocks) as (pool,),
        ):
            gone = Window("retired", today)
            await pool.add({gone: _reports(300)})

            async def found_out() -> bool:
                return bool(await pool._server.client.hexists("shuffler:unknown", gone.name))

            await eventually_async(found_out)
            assert (await pool.report_counts())[gone]["pooled"] == 300, "a table may know it again"
            ahead[0] = 31.0 * DAY
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

            await eventually_async(all_withheld)
            assert not sink.delivered

    asyncio.run(body())


class _Flaky(RedisStore):
    """Fails at the second shard, as often as it is told."""

    failures = 0

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        if commit.shard == 1 and self.failures:
            self.failures -= 1
            raise StoreUnavailable("as told")
        return await super().add(window, commit)


def test_a_batch_that_failed_between_two_shards_is_counted_once(made: Made, redis_url: str) -> None:
    async def body() -> None:
        server = await connect_redis(redis_url)
        await server.client.flushdb()
        store = _Flaky(server, 3)
        store.failures = 2
        opener = Opener(made.opening, 1)
        intake = Intake(made.bundle, opener, store, Stages())
        today = int(time.time()) // DAY
        window = Window("theme", today)
        key = made.bundle.keys[0]
        sealed = [seal(b"\1", key.key, seal_info("theme", today)) for _ in range(60)]
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
        await server.close()

    asyncio.run(body())


@pytest.mark.parametrize("shards", [1, 4])
def test_aggregators_that_share_a_store_count_a_batch_once(
    made: Made, redis_url: str, shards: int
) -> None:
    async def body() -> None:
        server = await connect_redis(redis_url)
        await server.client.flushdb()
        opener = Opener(made.opening, 1)
        intakes = [
            Intake(made.bundle, opener, RedisStore(server, shards), Stages()) for _ in range(3)
        ]
        today = int(time.time()) // DAY
        window, key = Window("theme", today), made.bundle.keys[0]
        sealed = [seal(b"\1", key.key, seal_info("theme", today)) for _ in range(90)]
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
        await server.close()

    asyncio.run(body())


def test_a_mixer_that_is_told_to_end_ends_whatever_has_just_landed(
    made: Made, redis_url: str
) -> None:
    """At a signal every loop is cancelled; one that swallowed it would hang the service."""

    async def body() -> None:
        server = await connect_redis(redis_url)
        mixer = Mixer(Pool(server), read_stream_table(made.streams), [], Policy(), stages=Stages())
        for turns in range(6):
            loop = asyncio.create_task(mixer.run())
            await asyncio.sleep(0.15)
            mixer._landed.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            await end_tasks([loop])
        await server.close()

    asyncio.run(body())
