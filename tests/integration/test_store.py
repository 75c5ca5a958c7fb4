"""The totals store: the real Redis and the fake in memory keep the same promises."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import numpy as np
import pytest

from hubbub.aggregator.redis_store import RedisStore
from hubbub.aggregator.store import Commit, MemoryStore, Outcome, TotalsStore
from hubbub.errors import StoreUnavailable
from hubbub.mechanisms import Totals
from hubbub.serving import Window, connect_redis
from tests.stores import crowd, totals

LATER = 4_000_000_000

Body = Callable[[TotalsStore, Window], Awaitable[None]]


def _commit(
    tags: list[bytes], cells: list[int], batch_id: bytes | None = None, **changes: object
) -> Commit:
    fields = {"duplicates": 0, "rejected": {}, "seen_until": LATER}
    return Commit(
        batch_id or secrets.token_bytes(16),
        tags,
        np.array(cells, dtype=np.int64),
        **{**fields, **changes},  # type: ignore[arg-type]
    )


def _tags(number: int) -> list[bytes]:
    return [secrets.token_bytes(16) for _ in range(number)]


@pytest.fixture(params=["memory", "redis", "sharded redis", "sharded cluster"])
def check(request: pytest.FixtureRequest) -> Callable[[Body], None]:
    cluster = request.param == "sharded cluster"
    url = request.getfixturevalue("cluster_url" if cluster else "redis_url")

    @asynccontextmanager
    async def store() -> AsyncIterator[TotalsStore]:
        if request.param == "memory":
            yield MemoryStore()
            return
        server = await connect_redis(url, replicas=int(cluster))
        yield RedisStore(server, 3 if request.param.startswith("sharded") else 1)
        await server.close()

    def run(body: Body) -> None:
        async def everything() -> None:
            async with store() as opened:
                window = Window(f"stream-{secrets.token_hex(4)}", 7)
                assert await opened.shards(window) == (3 if request.param.startswith("sh") else 1)
                await body(opened, window)

        asyncio.run(everything())

    return run


def test_commits_add_up(check: Callable[[Body], None]) -> None:
    async def body(store: TotalsStore, window: Window) -> None:
        assert await totals(store, window) == Totals([], 0)
        assert (await store.add(window, _commit(_tags(2), [1, 1, 0])))[0] is Outcome.APPLIED
        assert (await store.add(window, _commit(_tags(3), [0, 1, 2])))[0] is Outcome.APPLIED
        assert await totals(store, window) == Totals([1, 2, 2], 5)

    check(body)


def test_second_add_of_a_batch_changes_nothing(check: Callable[[Body], None]) -> None:
    async def body(store: TotalsStore, window: Window) -> None:
        commit = _commit(_tags(2), [2, 0], duplicates=1, rejected={"expired": 4})
        await store.add(window, commit)
        before = (await totals(store, window), dict((await store.law())[window]))
        assert await store.add(window, commit) == (Outcome.ALREADY_APPLIED, frozenset())
        assert before == (await totals(store, window), dict((await store.law())[window]))

    check(body)


def test_a_tag_seen_in_another_batch_changes_nothing_and_is_named(
    check: Callable[[Body], None],
) -> None:
    async def body(store: TotalsStore, window: Window) -> None:
        first = _tags(3)
        await store.add(window, _commit(first, [3]))
        again = _commit([*_tags(2), first[1]], [3], rejected={"not_opened": 1})
        assert await store.add(window, again) == (Outcome.SEEN, frozenset({first[1]}))
        assert await totals(store, window) == Totals([3], 3)
        assert "rejected:not_opened" not in (await store.law())[window]
        fewer = _commit(again.tags[:2], [2], again.batch_id, duplicates=1)  # type: ignore[arg-type]
        assert (await store.add(window, fewer))[0] is Outcome.APPLIED
        law = (await store.law())[window]
        assert (law["counted"], law["duplicate"]) == (5, 1)

    check(body)


def test_a_batch_with_nothing_good_still_enters_the_law(check: Callable[[Body], None]) -> None:
    async def body(store: TotalsStore, window: Window) -> None:
        commit = _commit([], [0, 0], rejected={"expired": 20, "bad_payload": 2})
        assert (await store.add(window, commit))[0] is Outcome.APPLIED
        law = (await store.law())[window]
        assert (law["rejected:expired"], law["rejected:bad_payload"]) == (20, 2)
        assert await totals(store, window) == Totals([], 0)
        assert (await store.add(window, commit))[0] is Outcome.ALREADY_APPLIED

    check(body)


def test_a_large_commit_goes_in_chunks_and_stays_exact(check: Callable[[Body], None]) -> None:
    """More tags and cells than Lua's unpack takes, and sums past 32 bits."""

    async def body(store: TotalsStore, window: Window) -> None:
        cells = [2**40 + cell for cell in range(8192)]
        tags = _tags(9001)
        await store.add(window, _commit(tags, cells))
        await store.add(window, _commit(_tags(1), cells))
        assert await totals(store, window) == Totals([2 * cell for cell in cells], 9002)
        outcome, seen = await store.add(window, _commit([*_tags(1), *tags[-4000:]], cells))
        assert outcome is Outcome.SEEN
        assert seen == frozenset(tags[-4000:])

    check(body)


def test_concurrent_batches_with_shared_tags_count_each_tag_once(
    check: Callable[[Body], None],
) -> None:
    async def body(store: TotalsStore, window: Window) -> None:
        shared = _tags(50)

        async def worker() -> None:
            tags = list(shared)
            while tags:
                outcome, seen = await store.add(window, _commit(tags, [len(tags)]))
                if outcome is Outcome.APPLIED:
                    return
                tags = [tag for tag in tags if tag not in seen]

        await asyncio.gather(*(worker() for _ in range(8)))
        assert await totals(store, window) == Totals([50], 50)

    check(body)


def test_a_window_keeps_the_number_of_its_shards(redis_url: str) -> None:
    """Were it to change, a report could be counted once in each of two shards."""

    async def body() -> None:
        server = await connect_redis(redis_url)
        window = Window(f"stream-{secrets.token_hex(4)}", 7)
        assert await RedisStore(server, 4).shards(window) == 4
        store = RedisStore(server, 2)
        assert await store.shards(window) == 4
        for shard in range(4):
            await store.add(window, _commit(_tags(1), [1, shard], shard=shard, duplicates=2))
        assert await totals(store, window) == Totals([4, 6], 4)
        assert (await store.law())[window] == {"counted": 4, "duplicate": 8}
        await server.close()

    asyncio.run(body())


def test_redis_refuses_what_it_cannot_hold_exactly(redis_url: str) -> None:
    async def body() -> None:
        server = await connect_redis(redis_url)
        store, window = RedisStore(server), Window("exact", 1)
        assert await store.shards(window) == 1
        await store.add(window, _commit(_tags(1), [2**53 - 1]))
        for wrong in ([1], [1, 1]):
            with pytest.raises(StoreUnavailable, match=r"a cell passes 2\^53|another shape"):
                await store.add(window, _commit(_tags(1), wrong))
        assert await totals(store, window) == Totals([2**53 - 1], 1)
        await server.close()

    asyncio.run(body())


def test_tags_and_batches_are_forgotten_in_time(redis_url: str) -> None:
    async def body() -> None:
        server = await connect_redis(redis_url)
        client, store, window = server.client, RedisStore(server), Window("forgets", 1)
        await store.shards(window)
        await store.add(window, _commit(_tags(1), [1], seen_until=1))
        assert not await client.exists(window.key("aggregator:seen"))
        assert await client.ttl(window.key("aggregator:totals")) == -1, "for good"
        assert await totals(store, window) == Totals([1], 1)
        await server.close()

    asyncio.run(body())


def test_an_unreachable_redis_is_named_without_its_password() -> None:
    with pytest.raises(
        StoreUnavailable, match=r"Redis at 127\.0\.0\.1:1: .*HUBBUB_REDIS_URL"
    ) as it:
        asyncio.run(connect_redis("redis://:hunter2@127.0.0.1:1/0"))
    assert "hunter2" not in str(it.value)
    with pytest.raises(StoreUnavailable, match="write redis://HOST:PORT/0"):
        asyncio.run(connect_redis("nonsense"))


def test_the_smallest_crowd_of_a_window_is_known(check: Callable[[Body], None]) -> None:
    async def body(store: TotalsStore, window: Window) -> None:
        assert await crowd(store, window) == 0
        first, second = _tags(2), _tags(1)
        await store.add(window, _commit(first, [2, 0], crowd=40))
        assert await crowd(store, window) == 40
        await store.add(window, _commit(second, [0, 1], crowd=25))
        await store.add(window, _commit(_tags(1), [0, 1], crowd=90))
        await store.add(window, _commit([], [], duplicates=3, crowd=0))  # counts nothing
        assert await crowd(store, window) == 25
        await store.add(window, _commit(second, [0, 1], crowd=7))  # seen: changes nothing
        assert await crowd(store, window) == 25

    check(body)
