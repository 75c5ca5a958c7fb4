"""The shuffler's pool and intake against a real Redis."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import Any

import pytest
import redis.asyncio

from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.shuffler.group_commit import Intake
from hubbub.shuffler.mixing_policy import Take
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.token_checks import Paid
from tests.support.mixing import sealed_reports


@pytest.fixture(params=["one server", "a Cluster"])
@asynccontextmanager
async def server(request: pytest.FixtureRequest) -> AsyncIterator[RedisServer]:
    cluster = request.param == "a Cluster"
    url = request.getfixturevalue("cluster_url" if cluster else "redis_url")
    # Of a Cluster every write waits for its replica, too.
    connected = await connect_redis(url, replicas=int(cluster))
    await connected.client.flushdb()
    yield connected
    await connected.close()


@pytest.fixture
def window() -> Window:
    return Window(f"s-{secrets.token_hex(4)}", 3)


async def _terms(pool: Pool, window: Window) -> tuple[int, ...]:
    law = (await pool.report_counts())[window]
    assert law.pop("dummies") == 0
    return tuple(law.values())


async def test_a_resent_report_is_the_same_member(server: RedisServer, window: Window) -> None:
    pool = Pool(server)
    reports = sealed_reports(30)
    await pool.add({window: reports})
    await pool.add({window: reports[:10] + sealed_reports(1)})
    assert await _terms(pool, window) == (31, 31, 0, 0)
    assert await pool.windows() == [window]


async def test_a_batch_in_flight_is_kept_until_delivered(
    server: RedisServer, window: Window
) -> None:
    pool, client = Pool(server), server.client
    reports = sealed_reports(9000)
    await pool.add({window: reports})
    batch_id = await pool.take(window, Take(8500, needs=8600), await pool.level(window))
    assert batch_id is not None
    assert await _terms(pool, window) == (9000, 500, 8500, 0)
    assert list(await pool.batches(window)) == [batch_id]
    batch = await pool.claim(window, batch_id, None)
    assert len(set(batch)) == 8500
    assert set(batch) < set(reports)
    assert set(batch) != set(sorted(reports)[:8500]), "taken at random"
    await pool.delivered(window, batch_id)
    await pool.delivered(window, batch_id)
    assert await _terms(pool, window) == (9000, 500, 0, 0)
    assert await pool.batches(window) == {}
    assert len(await client.keys("shuffler:batch:*")) == 0


async def test_a_batch_is_sent_by_one_process_until_that_dies(
    server: RedisServer, window: Window
) -> None:
    pool, client = Pool(server), server.client
    other = Pool(RedisServer(client, ""))
    await pool.heartbeat()
    await pool.add({window: sealed_reports(30)})
    batch_id = await pool.take(window, Take(30, 30), await pool.level(window))
    assert batch_id is not None
    assert await other.batches(window) == {}
    assert await other.claim(window, batch_id, None) == []
    await pool.resign()
    [(other_id, owner)] = (await other.batches(window)).items()
    assert other_id == batch_id
    assert len(await other.claim(window, batch_id, owner)) == 30
    assert await pool.claim(window, batch_id, None) == [], "it came back too late"
    await other.delivered(window, batch_id)
    assert await other.claim(window, batch_id, None) == [], "delivered is delivered"
    assert await _terms(pool, window) == (30, 0, 0, 0)


async def test_a_script_whose_answer_was_lost_may_run_again(
    server: RedisServer, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script that Redis ran, and whose answer was lost, is run once more."""
    pool = Pool(server)
    await pool.add({window: sealed_reports(40)})
    run, level = pool.server.execute, await pool.level(window)
    answers = []

    async def twice(commands: Any) -> Any:
        answers.extend([await run(commands), await run(commands)])
        return answers[-1]

    monkeypatch.setattr(pool.server, "execute", twice)
    assert await pool.take(window, Take(20, 20), level) is not None
    monkeypatch.undo()
    assert answers == [[20], [20]]
    assert await _terms(pool, window) == (40, 20, 20, 0)


async def test_a_late_take_removes_no_report(
    server: RedisServer, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited in a connection long given up, while its batch was taken, counted and forgotten."""
    pool = Pool(server)
    await pool.add({window: sealed_reports(100)})
    run, calls = pool.server.execute, list[Any]()

    async def run_kept(commands: Any) -> Any:
        calls.append(commands)
        return await run(commands)

    level = await pool.level(window)
    monkeypatch.setattr(pool.server, "execute", run_kept)
    batch = await pool.take(window, Take(20, 20), level)
    monkeypatch.undo()
    assert batch is not None
    assert await pool.take(window, Take(20, 20), level) is None, "somebody took since"
    await pool.delivered(window, batch)
    assert await run(calls[0]) == [0]
    assert await _terms(pool, window) == (100, 80, 0, 0)


async def test_a_window_archived_too_early_is_restored(server: RedisServer, window: Window) -> None:
    pool = Pool(server)
    empty = Window("empty", 1)
    await pool.add({window: sealed_reports(30), empty: sealed_reports(2)})
    await pool.withhold(empty, 10)
    for idle_window in (window, empty):
        await pool.archive(idle_window)
    assert await pool.windows() == []
    await pool.restore_archived()
    assert await pool.windows() == [window]


async def test_a_window_archived_while_a_report_arrives_is_restored(
    server: RedisServer, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = Pool(server)
    await pool.add({window: sealed_reports(30)})
    durable = pool.server.durable

    async def meanwhile(commands: Any) -> Any:
        aside = [("SADD", "shuffler:over", window.name)]
        aside += [("SREM", "shuffler:windows", window.name)]
        return await durable([commands[0], *aside, *commands[1:]])

    await pool.archive(window)
    monkeypatch.setattr(pool.server, "durable", meanwhile)
    await pool.add({window: sealed_reports(2)})
    monkeypatch.undo()
    assert await pool.windows() == [window]


async def test_the_pool_knows_its_reports_and_the_memory_in_use(
    server: RedisServer, window: Window
) -> None:
    pool, client = Pool(server), server.client
    await pool.add({window: sealed_reports(50), Window("more", 1): sealed_reports(7)})
    await pool.take(window, Take(20, 20), await pool.level(window))
    assert (await pool.held_of_streams()).total() == 57
    assert await pool.server.room() == (0, inf), "no limit, no part of it"
    used = (await client.info("memory"))["used_memory"]
    await client.config_set("maxmemory", 4 * used)
    try:
        assert 0.2 < (await pool.server.room())[0] < 0.4
    finally:
        await client.config_set("maxmemory", 0)


@pytest.mark.parametrize(
    ("part", "field", "garbage"),
    [
        *(("law", field, "many") for field in ("acknowledged", "withheld", "takes")),
        *(("law", "acknowledged", odd) for odd in ("-1", "1e999", "nan", "9" * 30)),
        ("batches", "no hex", ""),
        ("batches", b"\xff", b"\xff"),
        *((part, "", "of another type") for part in ("pool", "batches", "law")),
    ],
)
async def test_a_window_that_cannot_be_shown_ends_no_answer_about_others(
    server: RedisServer,
    part: str,
    field: str | bytes,
    garbage: str | bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    pool, client = Pool(server), server.client
    window, bad = Window("good", 3), Window("bad", 3)
    await pool.add({window: sealed_reports(20), bad: sealed_reports(20)})
    key = bad.key(f"shuffler:{part}")
    if field:
        await client.hset(key, field, garbage)
    else:
        await client.delete(key)
        await client.set(key, garbage)
    for _ in range(2):
        assert await _terms(pool, window) == (20, 20, 0, 0)
        assert (await pool.held_of_streams())[window.stream] == 20
        await pool.restore_archived()
        for ask in (pool.batches, pool.level, pool.is_empty):
            with suppress(StoreUnavailable):
                await ask(bad)
        assert await pool.windows() == [bad, window]
    assert await pool.batches(window) == {}
    pooled = (await pool.report_counts())[bad]["pooled"]
    assert caplog.text.count("everything else continues") == (field != "takes")
    assert pooled == (20 if "bad:3 has a batch" in caplog.text or field == "takes" else 0)


@pytest.mark.parametrize("since", ["nan", "-inf", "inf", "-1", "1e999", "long ago", ""])
async def test_a_stream_with_an_invalid_moment_is_unknown_since_now(
    server: RedisServer, window: Window, since: str
) -> None:
    """And so not for so long that it could be withheld."""
    pool, client = Pool(server), server.client
    await client.hset("shuffler:unknown", window.name, since)
    assert await pool.unknown_since(window, 1e9) == 1e9


async def test_no_batch_is_taken_from_a_pool_that_has_shrunk(
    server: RedisServer, window: Window
) -> None:
    pool = Pool(server)
    await pool.add({window: sealed_reports(30)})
    assert await pool.take(window, Take(20, needs=31), await pool.level(window)) is None
    assert await _terms(pool, window) == (30, 30, 0, 0)


async def test_too_few_are_withheld_and_counted(server: RedisServer, window: Window) -> None:
    pool = Pool(server)
    await pool.add({window: sealed_reports(19)})
    assert await pool.withhold(window, 19) == 0
    assert await pool.withhold(window, 20) == 19
    assert await _terms(pool, window) == (19, 0, 0, 19)
    await pool.archive(window)
    assert await pool.windows() == []
    assert await _terms(pool, window) == (19, 0, 0, 19), "still readable"


async def test_an_archived_window_is_deleted_with_its_counters(
    server: RedisServer, window: Window
) -> None:
    pool, client = Pool(server), server.client
    await pool.add({window: sealed_reports(3)})
    assert await pool.close_windows() == [window]
    assert (await pool.closed_and_all())[0] == {window}
    await pool.withhold(window, 20)
    await pool.archive(window)
    assert 0 < await client.ttl(window.key("shuffler:law")) <= 30 * 86_400
    await client.delete(window.key("shuffler:law"))
    assert await pool.report_counts() == {}
    assert (await pool.closed_and_all())[0] == frozenset()
    assert await client.keys("*") == []


async def test_many_submissions_share_a_trip_and_each_is_answered(
    server: RedisServer, window: Window
) -> None:
    pool = Pool(server)
    trips = 0
    add = pool.add

    async def counted(
        reports: Mapping[Window, Sequence[bytes | Paid]], whole: Collection[Window] = ()
    ) -> frozenset[Paid]:
        nonlocal trips
        trips += 1
        return await add(reports, whole)

    pool.add = counted  # type: ignore[method-assign]
    intake = Intake(pool, Stages())
    running = asyncio.create_task(intake.run())
    await asyncio.gather(*(intake.add({window: sealed_reports(2)}) for _ in range(200)))
    assert await _terms(pool, window) == (400, 400, 0, 0)
    assert trips <= 3
    running.cancel()


async def test_a_submission_is_not_acknowledged_without_redis() -> None:
    url = "redis://127.0.0.1:1/0"
    client = redis.asyncio.Redis.from_url(url)
    intake = Intake(Pool(RedisServer(client, url)), Stages())
    running = asyncio.create_task(intake.run())
    with pytest.raises(StoreUnavailable):
        await intake.add({Window("s", 1): sealed_reports(1)})
    running.cancel()
    await client.aclose()
