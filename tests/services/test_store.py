"""The totals store: the real Redis and the fake in memory keep the same promises."""

import asyncio
import json
import secrets
from collections.abc import (
    AsyncIterator,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import redis.asyncio

from hubbub.aggregator.exported_files import Place
from hubbub.aggregator.publishing.publisher import DeliveryLog, EpochPublisher, Folder
from hubbub.aggregator.query import EstimateQuery, QueryEngine
from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.store.contract import (
    Commit,
    Counted,
    Outcome,
    TotalsStore,
    WindowTotals,
)
from hubbub.aggregator.store.files import FileTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.web.prometheus_estimates import exposition
from hubbub.catalog import Metric
from hubbub.conservation import Window, sum_terms
from hubbub.errors import StoreUnavailable, TotalsUnreadable
from hubbub.mechanisms import Totals
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer
from tests.conftest import CatalogFiles
from tests.support.fakes import MemoryStore
from tests.support.servers import redis_server
from tests.support.stores import batch_reports, keep_in_sets, totals

LATER = 4_000_000_000


def _commit(
    tags: list[bytes], cells: list[int], batch_id: bytes | None = None, **changes: object
) -> Commit:
    fields = {"duplicates": 0, "rejected": {}, "seen_until": LATER}
    return Commit(
        batch_id=batch_id or secrets.token_bytes(16),
        tags=tags,
        cells=np.array(cells, dtype=np.int64),
        **{**fields, **changes},  # type: ignore[arg-type]
    )


def _tags(number: int) -> list[bytes]:
    return [secrets.token_bytes(16) for _ in range(number)]


class ReadFromFiles:
    """A store in memory whose totals are read from files: it passes what the suite asks of reading.

    Nothing is closed: whatever memory holds when somebody reads is written then.
    """

    def __init__(self, folder: Path, metric: Metric) -> None:
        self._memory = MemoryStore()
        bundle: Any = SimpleNamespace(metric_of=lambda _: metric, signed=b"", serial=0)
        self._files = FileTotals(Place.of(str(folder)), lambda: bundle)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    async def _write(self, windows: Iterable[Window]) -> None:
        for window in windows:
            [held] = await self._memory.read([window])
            if held.cells.size:
                await self._files.write(window, held)
            else:
                await self._files.delete([window])

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        await self._write(windows)
        return await self._files.read(windows)

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        await self._write(await self._memory.report_counts())
        return await self._files.counted(streams)


@pytest.fixture
def window() -> Window:
    return Window(f"stream-{secrets.token_hex(4)}", 7)


@pytest.fixture(params=["memory", "files", "redis", "sharded redis", "sharded cluster"])
@asynccontextmanager
async def store(
    request: pytest.FixtureRequest, catalog_files: CatalogFiles, tmp_path: Path, window: Window
) -> AsyncIterator[TotalsStore]:
    shards = 3 if request.param.startswith("sharded") else 1
    if request.param == "memory":
        opened: Any = MemoryStore()
    elif request.param == "files":
        opened = ReadFromFiles(tmp_path, catalog_files.bundle.metric("theme"))
    else:
        cluster = request.param == "sharded cluster"
        url = request.getfixturevalue("cluster_url" if cluster else "redis_url")
        server = await connect_redis(url, replicas=int(cluster))
        opened = RedisStore(server, shards)
    assert await opened.shards(window) == shards
    yield opened
    if isinstance(opened, RedisStore):
        await server.close()


async def test_commits_add_up(store: TotalsStore, window: Window) -> None:
    assert await totals(store, window) == Totals(cells=[], reports=0)
    assert (await store.add(window, _commit(_tags(2), [1, 1, 0])))[0] is Outcome.APPLIED
    assert (await store.add(window, _commit(_tags(3), [0, 1, 2])))[0] is Outcome.APPLIED
    assert await totals(store, window) == Totals(cells=[1, 2, 2], reports=5)


async def test_second_add_of_a_batch_changes_nothing(store: TotalsStore, window: Window) -> None:
    commit = _commit(_tags(2), [2, 0], duplicates=1, rejected={"expired": 4})
    await store.add(window, commit)
    before = (await totals(store, window), dict((await store.report_counts())[window]))
    assert await store.add(window, commit) == (Outcome.ALREADY_APPLIED, frozenset())
    assert before == (await totals(store, window), dict((await store.report_counts())[window]))


async def test_a_tag_seen_in_another_batch_changes_nothing_and_is_named(
    store: TotalsStore, window: Window
) -> None:
    first = _tags(3)
    await store.add(window, _commit(first, [3]))
    again = _commit([*_tags(2), first[1]], [3], rejected={"not_opened": 1})
    assert await store.add(window, again) == (Outcome.SEEN, frozenset({first[1]}))
    assert await totals(store, window) == Totals(cells=[3], reports=3)
    assert "rejected:not_opened" not in (await store.report_counts())[window]
    fewer = _commit(again.tags[:2], [2], again.batch_id, duplicates=1)  # type: ignore[arg-type]
    assert (await store.add(window, fewer))[0] is Outcome.APPLIED
    law = (await store.report_counts())[window]
    assert (law["counted"], law["duplicate"]) == (5, 1)


async def test_deleted_totals_stay_in_the_law_and_nowhere_else(
    store: TotalsStore, window: Window
) -> None:
    assert await store.delete(window) == 0
    await store.add(window, _commit(_tags(3), [1, 2], rejected={"expired": 4}))
    await store.forget(window)
    assert await store.delete(window) == 3
    assert await store.delete(window) == 0
    law = (await store.report_counts())[window]
    assert (law["counted"], law["counted:deleted"], law["rejected:expired"]) == (0, 3, 4)
    assert sum_terms([law])["counted"] == 3
    assert window not in await store.counted([window.stream])
    assert await totals(store, window) == Totals(cells=[], reports=0)


async def test_dummies_are_counted_by_themselves_and_have_tags(
    store: TotalsStore, window: Window
) -> None:
    tags = _tags(7)
    await store.add(window, _commit(tags[:5], [3, 2], dummies=2, max_reports=7))
    full = _commit(_tags(3), [3, 0], max_reports=7)
    assert (await store.add(window, full))[0] is Outcome.FULL, "a dummy takes a place"
    assert (await store.add(window, _commit(tags[4:], [3, 0])))[0] is Outcome.SEEN
    await store.add(window, _commit(tags[5:], [1, 1], dummies=1))
    assert await totals(store, window) == Totals(cells=[4, 3], reports=4, dummies=3)
    counts = (await store.counted([window.stream]))[window]
    assert (counts.reports, counts.dummies) == (4, 3)
    assert (await store.counted_by_window())[window] == 7
    law = (await store.report_counts())[window]
    assert (law["counted"], law["counted:dummies"], sum_terms([law])["counted"]) == (4, 3, 7)
    await store.forget(window)
    assert await store.delete(window) == 7
    assert await totals(store, window) == Totals(cells=[], reports=0)
    assert sum_terms([(await store.report_counts())[window]])["counted"] == 7


async def test_dummies_beyond_the_room_of_a_part_are_taken_from_other_parts(
    store: TotalsStore, window: Window
) -> None:
    """Most of a part was counted before: more are said to be dummies than are left of it."""
    await store.add(window, _commit(_tags(2), [1, 1], dummies=5, duplicates=8))
    assert await totals(store, window) == Totals(cells=[1, 1], reports=0, dummies=2), (
        "as far as is known"
    )
    law = (await store.report_counts())[window]
    assert (law["counted"], law["counted:dummies"], law["duplicate"]) == (0, 2, 8)
    assert not await store.counted([window.stream]), "no report yet"
    await store.add(window, _commit([], [], dummies=1, duplicates=1))
    await store.add(window, _commit(_tags(20), [15, 5], dummies=4))
    assert await totals(store, window) == Totals(cells=[16, 6], reports=12, dummies=10)
    assert (await store.counted_by_window())[window] == 22
    law = (await store.report_counts())[window]
    assert (law["counted"], law["counted:dummies"], law["duplicate"]) == (12, 10, 9)


async def test_a_batch_without_valid_reports_still_counts_in_the_law(
    store: TotalsStore, window: Window
) -> None:
    commit = _commit([], [0, 0], rejected={"expired": 20, "bad_payload": 2})
    assert (await store.add(window, commit))[0] is Outcome.APPLIED
    law = (await store.report_counts())[window]
    assert (law["rejected:expired"], law["rejected:bad_payload"]) == (20, 2)
    assert await totals(store, window) == Totals(cells=[], reports=0)
    assert (await store.add(window, commit))[0] is Outcome.ALREADY_APPLIED


async def test_a_large_commit_goes_in_chunks_and_stays_exact(
    store: TotalsStore, window: Window
) -> None:
    """More tags and cells than Lua's unpack takes, and sums past 32 bits."""
    cells = [2**40 + cell for cell in range(8192)]
    tags = _tags(9001)
    await store.add(window, _commit(tags, cells))
    await store.add(window, _commit(_tags(1), cells))
    assert await totals(store, window) == Totals(cells=[2 * cell for cell in cells], reports=9002)
    outcome, duplicates = await store.add(window, _commit([*_tags(1), *tags[-4000:]], cells))
    assert outcome is Outcome.SEEN
    assert duplicates == frozenset(tags[-4000:])


async def test_concurrent_batches_with_shared_tags_count_each_tag_once(
    store: TotalsStore, window: Window
) -> None:
    shared = _tags(50)

    async def worker() -> None:
        tags = list(shared)
        while tags:
            outcome, duplicates = await store.add(window, _commit(tags, [len(tags)]))
            if outcome is Outcome.APPLIED:
                return
            tags = [tag for tag in tags if tag not in duplicates]

    await asyncio.gather(*(worker() for _ in range(8)))
    assert await totals(store, window) == Totals(cells=[50], reports=50)


async def test_a_window_keeps_the_number_of_its_shards(server: RedisServer) -> None:
    """Were it to change, a report could be counted once in each of two shards."""
    window = Window(f"stream-{secrets.token_hex(4)}", 7)
    assert await RedisStore(server, 4).shards(window) == 4
    store = RedisStore(server, 2)
    assert await store.shards(window) == 4
    for shard in range(4):
        await store.add(window, _commit(_tags(1), [1, shard], shard=shard, duplicates=2))
    assert await totals(store, window) == Totals(cells=[4, 6], reports=4)
    assert (await store.report_counts())[window] == {"counted": 4, "duplicate": 8}


async def test_redis_refuses_what_it_cannot_hold_exactly(server: RedisServer) -> None:
    store, window = RedisStore(server), Window("exact", 1)
    assert await store.shards(window) == 1
    await store.add(window, _commit(_tags(1), [2**53 - 1]))
    for wrong in ([1], [1, 1]):
        with pytest.raises(StoreUnavailable, match=r"a cell passes 2\^53|another shape"):
            await store.add(window, _commit(_tags(1), wrong))
    assert await totals(store, window) == Totals(cells=[2**53 - 1], reports=1)


async def test_a_window_that_forgot_its_tags_counts_no_report_any_more(
    store: TotalsStore, window: Window
) -> None:
    commit = _commit(_tags(2), [2])
    await store.add(window, commit)
    assert (await store.tag_ends())[window] == LATER
    assert (await store.counted_by_window())[window] == 2
    await store.forget(window)
    await store.forget(window)
    assert window not in await store.tag_ends()
    assert await totals(store, window) == Totals(cells=[2], reports=2)
    assert await store.add(window, commit) == (Outcome.ALREADY_APPLIED, frozenset())
    for tags in (commit.tags, _tags(2)):
        again = _commit(list(tags), [2])
        assert await store.add(window, again) == (Outcome.FORGOTTEN, frozenset())
    assert (await store.add(window, _commit([], [], rejected={"expired": 2})))[0] is Outcome.APPLIED
    assert (await store.report_counts())[window] == {"counted": 2, "rejected:expired": 2}


async def test_a_window_takes_no_more_tags_than_it_may(store: TotalsStore, window: Window) -> None:
    first = _commit(_tags(3), [3], max_reports=5)
    assert (await store.add(window, first))[0] is Outcome.APPLIED
    assert await store.add(window, _commit(_tags(3), [3], max_reports=5)) == (
        Outcome.FULL,
        frozenset(),
    )
    assert (await store.add(window, first))[0] is Outcome.ALREADY_APPLIED
    repeated = _commit(list(first.tags), [3], max_reports=5)
    assert (await store.add(window, repeated))[0] is Outcome.SEEN, "duplicates need no room"
    assert (await store.add(window, _commit([], [], duplicates=3, max_reports=0)))[
        0
    ] is Outcome.APPLIED
    assert (await store.add(window, _commit(_tags(2), [2], max_reports=5)))[0] is Outcome.APPLIED
    assert await totals(store, window) == Totals(cells=[5], reports=5)


async def test_many_batches_are_each_known_again(store: TotalsStore, window: Window) -> None:
    """More than twice the 64 of the newest field, of which 32 stay once it is full."""
    commits = [_commit(_tags(1), [1]) for _ in range(150)]
    for number, commit in enumerate(commits):
        assert (await store.add(window, commit))[0] is Outcome.APPLIED
        for before in (0, 31, 32, 63, 64):
            former = commits[max(0, number - before)]
            assert (await store.add(window, former))[0] is Outcome.ALREADY_APPLIED
    for commit in commits:
        assert (await store.add(window, commit))[0] is Outcome.ALREADY_APPLIED
    assert await totals(store, window) == Totals(cells=[150], reports=150)


@pytest.mark.parametrize("former", [1, 63, 64, 65, pytest.param(9000, marks=pytest.mark.thorough)])
async def test_totals_of_version_0_1_are_read_and_its_batches_known(
    server: RedisServer, former: int
) -> None:
    """All ids in one field, tags that expire on a date: as it left a window that is still open."""
    client: Any = server.client
    store = RedisStore(server)
    window = Window(f"former-{former}", 1)
    ids = [secrets.token_bytes(16) for _ in range(former)]
    tags = _tags(former)
    totals_key, tags_key = (window.key(f"aggregator:{what}") for what in ("totals", "seen"))
    await client.hset("aggregator:windows", window.name, "1")
    batch_of_tag = {tag: batch_id[:8] for tag, batch_id in zip(tags, ids, strict=True)}
    await client.hset(tags_key, mapping=batch_of_tag)
    await client.expireat(tags_key, LATER)
    law = json.dumps({"counted": former})
    cells = np.array([former], dtype="<i8").tobytes()
    batches = b"".join(batch_id[:8] for batch_id in ids)
    fields = {"cells": cells, "batches": batches, "law": law, "crowd": 1, "at": 7}
    await client.hset(totals_key, mapping=fields)
    assert await totals(store, window) == Totals(cells=[former], reports=former)
    for n in (0, former // 2, former - 1):
        old_commit = _commit([tags[n]], [1], ids[n])
        assert (await store.add(window, old_commit))[0] is Outcome.ALREADY_APPLIED
    fresh = [_commit(_tags(1), [1]) for _ in range(3)]
    for commit in fresh:
        assert (await store.add(window, commit))[0] is Outcome.APPLIED
    again = [_commit([tag], [1], batch_id) for tag, batch_id in zip(tags, ids, strict=True)]
    for first in range(0, former, 50):  # at once, so that nobody waits for each answer
        adding = [store.add(window, commit) for commit in again[first : first + 50]]
        assert {outcome for outcome, _ in await asyncio.gather(*adding)} == {
            Outcome.ALREADY_APPLIED
        }
    other = _commit([tags[0]], [1])
    assert await store.add(window, other) == (Outcome.SEEN, frozenset(tags[:1]))
    assert await totals(store, window) == Totals(cells=[former + 3], reports=former + 3)
    assert await client.ttl(tags_key) == -1, "no date forgets what is still needed"
    assert len(await client.hget(totals_key, "batches")) <= 8 * (64 + 3)


@pytest.mark.parametrize("buckets", [1, 2, 300])
async def test_tags_that_were_kept_in_sets_are_known_and_forgotten(
    server: RedisServer, buckets: int
) -> None:
    """Tags as sets of integers, the form before hashes of buckets, in a window that is open."""
    client: Any = server.client
    store, window = RedisStore(server), Window(f"sets-{buckets}", 1)
    numbers = [0, 1, -1, 999_999, -(10**6), 2**32, -(2**32), 2**63 - 1, -(2**63), -(2**33) + 1]
    edges = [_tags(1)[0][:8] + number.to_bytes(8, "little", signed=True) for number in numbers]
    tags = edges + _tags(500)
    await store.shards(window)
    assert (await store.add(window, _commit(tags, [510])))[0] is Outcome.APPLIED
    await keep_in_sets(client, window, tags, buckets)
    fresh = _tags(200)
    for first in range(0, 510, 170):
        old_tags = tags[first : first + 170]
        reply = await RedisStore(server).add(window, _commit([*fresh, *old_tags], [1]))
        assert reply == (Outcome.SEEN, frozenset(old_tags))
    assert (await store.add(window, _commit(fresh, [200])))[0] is Outcome.APPLIED
    reply = await store.add(window, _commit([*fresh, *tags, *_tags(9)], [1]))
    assert reply == (Outcome.SEEN, frozenset(fresh + tags))
    await store.forget(window)
    assert not [key async for key in client.scan_iter(window.key("aggregator:tags") + "*")]


async def test_tags_of_many_buckets_are_known_and_no_others(server: RedisServer) -> None:
    """More buckets than one command takes, in two hashes, and in a generation after them."""
    client: Any = server.client
    store, window = RedisStore(server), Window("many", 1)
    totals = WindowTotals(cells=np.zeros(1, dtype=np.int64), counted=600_000, batch_reports=1, at=0)
    await store.restore(Window("many", 0), totals)
    tags = _tags(9000)
    assert (await store.add(window, _commit(tags[:6000], [6000])))[0] is Outcome.APPLIED
    key = window.key("aggregator:tags")
    assert await client.hget(key, "generations") == b"20000=6000"
    await client.hset(key, "generations", "20000=1199000")  # as if it were nearly full
    law = json.dumps({"counted": 1_199_000})
    await client.hset(window.key("aggregator:totals"), "law", law)
    assert (await store.add(window, _commit(tags[6000:], [3000])))[0] is Outcome.APPLIED
    assert await client.hget(key, "generations") == b"20000=1199000 119900=3000"
    for first in range(0, 9000, 3000):
        old_tags = tags[first : first + 3000]
        result = await store.add(window, _commit([*old_tags, *_tags(2000)], [5000]))
        assert result == (Outcome.SEEN, frozenset(old_tags))
    outcome, some = await store.add(window, _commit(tags, [9000]))
    assert (outcome, len(some)) == (Outcome.SEEN, 4000), "as many as an answer takes"
    await store.forget(window)
    assert not [redis_key async for redis_key in client.scan_iter(key + "*")]


async def test_the_end_of_a_tag_and_the_beginning_of_the_next_are_no_tag(
    server: RedisServer,
) -> None:
    store, window = RedisStore(server), Window("seams", 1)
    await store.shards(window)
    first, second = _tags(2)
    for tag in (first, second):  # one bucket, in this order
        assert (await store.add(window, _commit([tag], [1])))[0] is Outcome.APPLIED
    for place in range(1, 9):
        between = (first[7:] + second[7:])[place : place + 9]
        commit = _commit([_tags(1)[0][:7] + between], [1])
        assert (await store.add(window, commit))[0] is Outcome.APPLIED
    again = _commit([first, second], [2])
    assert await store.add(window, again) == (Outcome.SEEN, frozenset([first, second]))


async def test_a_commit_writes_as_much_after_many_batches_as_after_few(tmp_path: Path) -> None:
    async def bytes_of_commit(client: Any, store: RedisStore, window: Window) -> int:
        """Bytes of the append-only file that a commit takes, on average of 70."""
        before = (await client.info("persistence"))["aof_current_size"]
        for _ in range(70):
            await store.add(window, _commit(_tags(20), [20, 0]))
        return int((await client.info("persistence"))["aof_current_size"] - before) // 70

    with redis_server(tmp_path / "redis", appendonly="yes") as port:
        server = await connect_redis(f"redis://127.0.0.1:{port}/0")
        client: Any = server.client
        store, window = RedisStore(server), Window("hot", 1)
        await store.shards(window)
        # Enough tags that no generation of buckets begins meanwhile.
        await store.add(window, _commit(_tags(20_000), [20_000, 0]))
        few = await bytes_of_commit(client, store, window)
        for _ in range(10):
            ids = b"".join(secrets.token_bytes(8) for _ in range(10_000))
            key = window.key("aggregator:totals")
            former = await client.hget(key, "batches")
            await client.hset(key, "batches", former + ids)  # as version 0.1 would have them
            await store.add(window, _commit(_tags(1), [1, 0]))
        many = await bytes_of_commit(client, store, window)
        assert many < 1.2 * few, (few, many)
        assert many < 20 * 400, "a bucket a tag: more than their memory, which is what is dear"
        await server.close()


@pytest.mark.parametrize(
    ("field", "garbage"),
    [
        ("law", b"{"),
        ("law", b"[1]"),
        ("law", b'{"counted": "x"}'),
        ("law", b'{"counted": null}'),
        ("law", b"\xff\xfe"),
        ("law", b"[" * 100_000),
        ("law", b'{"counted": 1e999}'),
        ("law", b'{"counted": -5}'),
        ("law", b'{"counted": 18446744073709551616}'),
        ("law", b'{"rejected:\\ud800": 1}'),
        ("at", b"9" * 30),
        ("", b""),  # no hash at all
        ("cells:0", b"odd"),
        ("size", b"-1"),
        ("size", b"1e9"),
        ("crowd", b"many"),
    ],
)
async def test_a_window_that_cannot_be_read_ends_no_answer_about_others(
    tmp_path: Path, field: str, garbage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server(tmp_path / "redis") as port:
        server = await connect_redis(f"redis://127.0.0.1:{port}/0")
        client: Any = server.client
        store = RedisStore(server)
        good, bad = Window("good", 1), Window("bad", 1)
        for window in (good, bad):
            await store.shards(window)
            await store.add(window, _commit(_tags(2), [2], batch_reports=2))
        if field:
            await client.hset(bad.key("aggregator:totals"), field, garbage)
        else:
            await client.delete(bad.key("aggregator:totals"))
            await client.set(bad.key("aggregator:totals"), garbage)
        await client.hset("aggregator:windows", mapping={"nonsense": "1", b"\xff:1": "1"})
        shards = {"good:2": "several", "good:3": "-1", "good:4": "1000000000000"}
        epochs = {"good:-2": "1", "good:4294967296": "1", "good:+7": "1", "go\x1b:1": "1"}
        await client.hset("aggregator:windows", mapping=shards | epochs)
        for _ in range(2):
            assert (await store.report_counts())[good] == {"counted": 2}
            counted = await store.counted({"good", "bad"})
            assert counted[good].reports == 2
            assert (await store.read([good]))[0].counted == 2
            assert set(counted) <= {good, bad}
            assert (await store.counted_by_window())[good] == 2
            if bad in counted:
                with pytest.raises(StoreUnavailable, match="the totals of bad:1 cannot be read"):
                    await store.read([bad])
        with pytest.raises(TotalsUnreadable, match="of good:4 cannot be read"):
            await store.shards(Window("good", 4))
        assert len(store.unreadable) == 4 + len(shards) + len(epochs)
        assert (await store.add(good, _commit(_tags(1), [1])))[0] is Outcome.APPLIED
        await server.close()
    assert caplog.text.count("bad:1 cannot be read") == 1


@pytest.mark.parametrize(
    ("field", "garbage"), [("crowd", b"many"), ("cells:0", bytes(8)), ("at", b"-1")]
)
async def test_totals_that_cannot_be_read_end_no_overview_and_hold_up_no_drop(
    catalog_files: CatalogFiles, server: RedisServer, tmp_path: Path, field: str, garbage: bytes
) -> None:
    """Cells of one number would be added to all."""
    client: Any = server.client
    store, names = RedisStore(server), ("theme", "crashed")
    for name in names:
        metric = catalog_files.bundle.metric(name)
        window = Window(name, 5)
        await store.shards(window)
        cells = [9] * metric.randomizer.layout.size
        await store.add(window, _commit(_tags(50), cells, batch_reports=50))
    await client.hset(Window("theme", 5).key("aggregator:totals"), field, garbage)
    await client.hset("aggregator:told", "crashed:5", "nonsense")
    query = QueryEngine(catalog_files.bundle, store)
    lines = {line.name: line for line in await query.metrics()}
    assert [lines[name].reports for name in names] == [50, 50]
    with pytest.raises(TotalsUnreadable):
        await query.estimate("theme", EstimateQuery())
    text = (await exposition(query, {})).decode()
    assert 'metric="crashed"' in text
    assert 'hubbub_estimate{metric="theme"' not in text
    folder, claims = tmp_path / "dropped", DeliveryLog(server)
    assert await EpochPublisher(query, [Folder(folder)]).publish_closed() == 1
    assert [path.parent.name for path in folder.rglob("*.json")] == ["crashed"]
    assert await claims.claim("crashed:5"), "nobody is at it who would say so"


async def test_a_redis_user_without_rights_is_named_at_once(tmp_path: Path) -> None:
    """As the users of version 0.1 may."""
    users = Path("deploy/hubbub/installation/redis/users.acl").read_text().splitlines()  # noqa: ASYNC240 nothing else runs
    [line] = [line for line in users if line.startswith("user aggregator")]
    now = line.replace(">CHANGE-ME-AGGREGATOR", ">secret").split()[2:]
    newer = {"+hdel", "+hkeys", "+sadd", "+sismember", "+smismember", "+persist", "+unlink"}
    assert newer <= set(now)
    with redis_server(tmp_path / "redis") as port:
        first: Any = redis.asyncio.Redis(port=port)
        url = f"redis://aggregator:secret@127.0.0.1:{port}/0"
        for rules, allowed in (([r for r in now if r not in newer], False), (now, True)):
            await first.execute_command("ACL", "SETUSER", "aggregator", "reset", *rules)
            server = await connect_redis(url)
            store = RedisStore(server)
            if not allowed:
                with pytest.raises(StoreUnavailable, match="ACL SETUSER aggregator"):
                    await store.check()
            else:
                await store.check()
                window = Window("theme", 1)
                await store.shards(window)
                for _ in range(70):
                    await store.add(window, _commit(_tags(2), [2]))
                await store.forget(window)
                assert await server.times()
            await server.close()
        await first.aclose()


def test_an_unreachable_redis_is_named_without_its_password() -> None:
    with pytest.raises(
        StoreUnavailable, match=r"Redis at 127\.0\.0\.1:1: .*HUBBUB_REDIS_URL"
    ) as it:
        asyncio.run(connect_redis("redis://:hunter2@127.0.0.1:1/0"))
    assert "hunter2" not in str(it.value)
    with pytest.raises(StoreUnavailable, match="write redis://HOST:PORT/0"):
        asyncio.run(connect_redis("nonsense"))


async def test_the_smallest_crowd_of_a_window_is_known(store: TotalsStore, window: Window) -> None:
    assert await batch_reports(store, window) == 0
    first, second = _tags(2), _tags(1)
    await store.add(window, _commit(first, [2, 0], batch_reports=40))
    assert await batch_reports(store, window) == 40
    await store.add(window, _commit(second, [0, 1], batch_reports=25))
    await store.add(window, _commit(_tags(1), [0, 1], batch_reports=90))
    await store.add(window, _commit([], [], duplicates=3, batch_reports=0))  # counts nothing
    assert await batch_reports(store, window) == 25
    await store.add(window, _commit(second, [0, 1], batch_reports=7))  # seen: changes nothing
    assert await batch_reports(store, window) == 25


async def test_restored_totals_with_equal_counts_are_distinguished(
    catalog_files: CatalogFiles, server: RedisServer
) -> None:
    """By the answers at hand, by the totals at hand, and by the answers that are kept in Redis."""
    client: Any = server.client
    store, window = RedisStore(server), Window("theme", 5)
    size = catalog_files.bundle.metric("theme").randomizer.layout.size
    key = window.key("aggregator:totals")
    query = QueryEngine(catalog_files.bundle, store, server=server)

    async def add(first: int) -> None:
        cells = [first] + [9] * (size - 1)
        await store.add(window, _commit(_tags(50), cells, batch_reports=50))

    async def ask() -> float:
        question, at = EstimateQuery(), "2026-11-25T00:00:00Z"
        await query.refresh(AnswerStore(server), "theme", question, "newest", at)
        answer = await query.estimate("theme", EstimateQuery())
        assert answer.reports == 100
        return answer.values[0].estimate

    await store.shards(window)
    await add(10)
    backup = await client.hgetall(key)
    await add(10)
    before = await ask()
    await client.delete(key)
    await client.hset(key, mapping=backup)
    await add(40)
    assert await ask() > before
