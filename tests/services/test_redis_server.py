"""What hubbub asks of a Redis, and what it does when that is full, fails over, or is not ours."""

import asyncio
import logging
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
from redis.exceptions import NoPermissionError

from hubbub.aggregator.releases.release_log import Entry, ReleaseLog
from hubbub.aggregator.store.contract import Commit, Outcome
from hubbub.aggregator.store.redis import RedisStore
from hubbub.conservation import Window
from hubbub.errors import StoreFull, StoreUnavailable
from hubbub.installation.certificate_authorities import write_certificates
from hubbub.installation.child_process import free_port
from hubbub.issuer.issuing import allow
from hubbub.mechanisms import Totals
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer, lua
from hubbub.sealing.dummy_laws import CountNoise
from hubbub.shuffler.admission import Backpressure
from hubbub.shuffler.mixing_policy import CrowdTake, Take
from hubbub.shuffler.pool import Pool
from tests.support.cluster import Cluster, redis_cluster
from tests.support.mixing import sealed_reports
from tests.support.servers import has_tls, redis_server
from tests.support.stores import batch_reports, commit_of, totals
from tests.support.waiting import eventually, eventually_async
from tests.system.chaos.faulty_connection import Line

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
WINDOW = Window("theme", 7)


def _commit(tags: list[bytes], batch_id: bytes | None = None) -> Commit:
    cells = np.array([len(tags), 0], dtype=np.int64)
    return commit_of(tags, cells, batch_id=batch_id or secrets.token_bytes(16))


def test_redis_compiles_every_script(redis_url: str) -> None:
    scripts = sorted(ROOT.glob("*/hubbub/**/*.lua"))
    assert len(scripts) >= 9
    with redis.Redis.from_url(redis_url) as client:
        for path in scripts:
            package = ".".join(path.relative_to(ROOT).parent.parts[1:])
            assert client.script_load(lua(package, path.stem)), path
        with pytest.raises(redis.ResponseError, match="Error compiling script"):
            client.script_load("return (")


async def test_a_command_during_close_leaves_no_connection_open(
    redis_url: str,
) -> None:
    """redis-py connects anew for it: on a busy machine the socket was left to the collector."""
    server = await connect_redis(redis_url)
    with redis.Redis.from_url(redis_url) as watching:
        watching.delete("answer")

        def waiting() -> set[str]:
            return {client["id"] for client in watching.client_list() if client["cmd"] == "blpop"}

        async def has_moved() -> bool:
            return bool(waiting() - first)

        async def has_ended() -> bool:
            return not again & {client["id"] for client in watching.client_list()}

        first: set[str] = set()
        task = asyncio.create_task(server.ask("BLPOP", "answer", 0))
        await eventually_async(has_moved)
        first = waiting()
        await server.close()
        await eventually_async(has_moved)
        again = waiting()
        watching.rpush("answer", "told")
        assert list(await task) == [b"answer", b"told"]
        await eventually_async(has_ended)


def _connected(url: str, replicas: int = 0) -> RedisServer:
    async def connect() -> RedisServer:
        server = await connect_redis(url, replicas)
        await server.close()
        return server

    return asyncio.run(connect())


def test_a_redis_without_persistence_is_named_with_the_setting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server(tmp_path / "off", appendonly="no") as port, caplog.at_level(logging.WARNING):
        _connected(f"redis://127.0.0.1:{port}/0")
    assert "appendonly yes" in caplog.text
    caplog.clear()
    with redis_server(tmp_path / "on", appendonly="yes") as port, caplog.at_level(logging.WARNING):
        _connected(f"redis://127.0.0.1:{port}/0")
    assert caplog.text == ""


def test_a_redis_that_would_forget_is_refused(tmp_path: Path) -> None:
    with (
        redis_server(tmp_path, maxmemory="100mb", maxmemory_policy="allkeys-lru") as port,
        pytest.raises(StoreUnavailable, match="set maxmemory-policy noeviction"),
    ):
        _connected(f"redis://127.0.0.1:{port}/0")


async def test_a_redis_that_may_evict_accepts_nothing_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server(tmp_path) as port:
        server = await connect_redis(f"redis://127.0.0.1:{port}/0")
        pressure = Backpressure(Pool(server), max_reports=100, max_memory=0.8)
        for policy, waits in (("noeviction", False), ("allkeys-lru", True), ("noeviction", False)):
            await server.client.config_set("maxmemory-policy", policy)
            for _ in range(2):
                await pressure.look()
            assert (pressure.wait_seconds > 0) == waits
        await server.close()
    assert caplog.text.count("set maxmemory-policy noeviction") == 1


async def test_a_full_redis_refuses_whole_writes_and_still_lets_batches_out(tmp_path: Path) -> None:
    with redis_server(tmp_path) as port:
        server = await connect_redis(f"redis://127.0.0.1:{port}/0")
        pool, store = Pool(server), RedisStore(server)
        await pool.add({WINDOW: sealed_reports(100)})
        assert await store.shards(WINDOW) == 1
        await pool.heartbeat()
        await server.client.config_set("maxmemory", 1)
        await pool.heartbeat()
        with pytest.raises(StoreFull, match="is full; raise its maxmemory"):
            await pool.add({WINDOW: sealed_reports(5)})
        with pytest.raises(StoreFull):
            await store.add(WINDOW, _commit([secrets.token_bytes(16)]))
        assert await totals(store, WINDOW) == Totals(cells=[], reports=0), "queries are answered"
        batch = await pool.take(WINDOW, Take(60, 60), await pool.level(WINDOW))
        assert batch is not None
        assert len(await pool.claim(WINDOW, batch, None)) == 60
        await pool.delivered(WINDOW, batch)
        assert await pool.withhold(WINDOW, 50) == 40
        await server.client.config_set("maxmemory", 0)
        assert (await pool.report_counts())[WINDOW] == {
            "acknowledged": 100,
            "dummies": 0,
            "pooled": 0,
            "in_flight": 0,
            "withheld": 40,
        }
        assert await totals(store, WINDOW) == Totals(cells=[], reports=0)
        await server.close()


@contextmanager
def _replicated(folder: Path) -> Iterator[tuple[int, int, Line]]:
    """The ports of a primary and of a replica that has all it has, and a line to the primary."""
    second = free_port()
    with (
        redis_server(folder / "first", repl_diskless_sync_delay="0") as first,
        redis_server(folder / "second", second, replicaof=f"127.0.0.1 {first}"),
        redis.Redis(port=first) as primary,
    ):
        primary.set("here", 1)
        assert primary.wait(1, 0) == 1
        line = Line(f"127.0.0.1:{first}")
        yield first, second, line
        line.close()


async def test_a_write_counts_once_replicas_have_it_and_survives_a_failover(tmp_path: Path) -> None:
    """The primary dies right after an acknowledgement; its replica takes over, at its address."""
    with _replicated(tmp_path) as (first, second, line):
        server = await connect_redis(f"redis://{line.address}/0", replicas=1)
        pool, store = Pool(server), RedisStore(server)
        await pool.add({WINDOW: sealed_reports(100)})
        assert await store.shards(WINDOW) == 1
        commit = _commit([secrets.token_bytes(16) for _ in range(3)])
        assert (await store.add(WINDOW, commit))[0] is Outcome.APPLIED
        batch = await pool.take(WINDOW, Take(60, 60), await pool.level(WINDOW))
        assert batch is not None
        before = await pool.claim(WINDOW, batch, None)
        with redis.Redis(port=first) as old, redis.Redis(port=second) as new:
            old.shutdown(nosave=True)
            with pytest.raises(StoreUnavailable):
                await pool.add({WINDOW: sealed_reports(1)})
            new.replicaof("NO", "ONE")
        line.lead_to(f"127.0.0.1:{second}")
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas have the write"):
            await pool.add({WINDOW: sealed_reports(1)})
        assert set(await pool.batches(WINDOW)) == {batch}
        alone = RedisServer(server.client, "")
        assert (await Pool(alone).report_counts())[WINDOW]["acknowledged"] == 101
        assert set(before) == await server.client.smembers(
            f"shuffler:batch:{{theme:7}}:{batch.hex()}"
        )
        assert (await RedisStore(alone).add(WINDOW, commit))[0] is Outcome.ALREADY_APPLIED
        assert await totals(store, WINDOW) == Totals(cells=[3, 0], reports=3)
        await server.close()


async def test_a_failover_to_a_replica_without_the_last_writes_is_logged_and_counts_nothing_twice(
    tmp_path: Path, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A batch is delivered, and reports are acknowledged, which the replica has not seen."""
    with _replicated(tmp_path) as (first, second, line), caplog.at_level("ERROR", "hubbub.redis"):
        server = await connect_redis(f"redis://{line.address}/0")
        counting = await connect_redis(redis_url)
        await counting.client.flushdb()
        pool, store = Pool(server), RedisStore(counting)
        assert await store.shards(WINDOW) == 1
        reports, late = sealed_reports(100), sealed_reports(20)
        with redis.Redis(port=first) as old, redis.Redis(port=second) as new:
            await pool.add({WINDOW: reports})
            assert old.wait(1, 0) == 1
            new.replicaof("NO", "ONE")
            await pool.add({WINDOW: late})
            batch = await pool.take(WINDOW, Take(60, 60), await pool.level(WINDOW))
            assert batch is not None
            tags = [report[:16] for report in await pool.claim(WINDOW, batch, None)]
            assert (await store.add(WINDOW, _commit(tags)))[0] is Outcome.APPLIED
            await pool.delivered(WINDOW, batch)
            await pool.server.room()
            assert "without" not in caplog.text
            old.shutdown(nosave=True)
        line.lead_to(f"127.0.0.1:{second}")
        await pool.server.room()
        await pool.server.room()
        assert caplog.text.count("failed over to a replica without its last ") == 1
        # The 20 are lost; of the others each is counted once, although 60 of the 120 were sent.
        assert (await pool.report_counts())[WINDOW]["acknowledged"] == 100
        again = await pool.take(WINDOW, Take(100, 60), await pool.level(WINDOW))
        assert again is not None
        sent_again = [report[:16] for report in await pool.claim(WINDOW, again, None)]
        outcome, old_tags = await store.add(WINDOW, _commit(sent_again, again))
        assert outcome is Outcome.SEEN
        assert set(old_tags) == set(tags) & set(sent_again)
        await server.close()
        await counting.close()


async def test_a_primary_that_became_a_replica_is_left(tmp_path: Path) -> None:
    with _replicated(tmp_path) as (first, second, line):
        server = await connect_redis(f"redis://{line.address}/0")
        pool = Pool(server)
        await pool.add({WINDOW: sealed_reports(10)})
        with redis.Redis(port=first) as old, redis.Redis(port=second) as new:
            old.set("last", 1)  # waited for are the writes of who waits
            old.wait(1, 0)
            new.replicaof("NO", "ONE")
            old.replicaof("127.0.0.1", str(second))
        line.lead_to(f"127.0.0.1:{second}", cut=False)
        with pytest.raises(StoreUnavailable, match=r"ReadOnlyError|READONLY"):
            await pool.add({WINDOW: sealed_reports(1)})
        await pool.add({WINDOW: sealed_reports(1)})
        assert (await pool.report_counts())[WINDOW]["acknowledged"] == 11
        await server.close()


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        (("CONFIG", "SET", "requirepass", "other"), "user and the password"),
        (("REPLICAOF", "127.0.0.1", "1"), "name the primary"),
        (("CONFIG", "SET", "maxclients", "1"), "raise its maxclients"),
        (("ACL", "SETUSER", "default", "-@all", "+client|kill"), "users.acl"),
        (("ACL", "SETUSER", "default", "resetkeys", "~other:*"), "users.acl"),
        (("CONFIG", "SET", "min-replicas-to-write", "1"), "connect its replicas"),
        (("SET", WINDOW.key("shuffler:pool"), "x"), "another program's"),
    ],
)
async def test_a_redis_that_answers_is_not_called_unreachable(
    setting: tuple[str, ...], remedy: str, tmp_path: Path
) -> None:
    with redis_server(tmp_path / "redis") as port:
        server = await connect_redis(f"redis://127.0.0.1:{port}/0")
        pool = Pool(server)
        await pool.add({WINDOW: sealed_reports(1)})
        with redis.Redis(port=port) as operator:
            operator.execute_command(*setting)
            operator.execute_command("CLIENT", "KILL", "TYPE", "normal")
            with pytest.raises(StoreUnavailable, match=remedy) as error:
                await pool.add({WINDOW: sealed_reports(2)})
        assert "start it" not in str(error.value)
        assert "',)" not in str(error.value), "no tuple"
        await server.close()


async def test_each_redis_user_has_exactly_the_rights_of_its_role(tmp_path: Path) -> None:
    """The users that ship, on one server."""
    users = (ROOT / "deploy/hubbub/installation/redis/users.acl").read_text()
    (tmp_path / "users.acl").write_text(users)
    assert len(re.findall(r">CHANGE-ME-\w+", users)) == 5
    with redis_server(tmp_path / "redis", aclfile=f'"{tmp_path}/users.acl"') as port:
        urls = [
            f"redis://{role}:CHANGE-ME-{role.upper()}@127.0.0.1:{port}/0"
            for role in ("shuffler", "aggregator", "issuer")
        ]
        pooling, adding, issuing = [await connect_redis(url) for url in urls]
        pool, store = Pool(pooling), RedisStore(adding)
        requests, day = {WINDOW.stream: [b"blinded"]}, (86_400, 1)
        for account in ("one", "one", "other"):
            allowed = await allow(issuing, b"key", account, day, requests, devices=1, keep=60)
            assert allowed == [True]
        await pool.check()
        await pool.heartbeat()
        await pool.add({WINDOW: sealed_reports(50)})
        batch = await pool.take(WINDOW, Take(20, 20), await pool.level(WINDOW))
        assert batch is not None
        assert len(await pool.claim(WINDOW, batch, None)) == 20
        assert set(await pool.batches(WINDOW)) == {batch}
        await pool.delivered(WINDOW, batch)
        assert await pool.close_windows() == [WINDOW]
        assert await pool.unknown_since(WINDOW, 5.0) == 5
        assert await pool.withhold(WINDOW, 100) == 30
        assert await pool.is_empty(WINDOW)
        await pool.archive(WINDOW)
        assert (await pool.held_of_streams()).total() == 0
        assert (await pool.report_counts())[WINDOW]["withheld"] == 30
        assert await pool.server.room() == (0, inf)
        await _crowd_leaves(pool)
        await pool.resign()
        assert await store.shards(WINDOW) == 1
        tags = [secrets.token_bytes(16) for _ in range(3)]
        assert (await store.add(WINDOW, _commit(tags)))[0] is Outcome.APPLIED
        assert (await store.add(WINDOW, _commit(tags)))[0] is Outcome.SEEN
        assert await totals(store, WINDOW) == Totals(cells=[3, 0], reports=3)
        assert (await store.report_counts())[WINDOW] == {"counted": 3}
        assert await batch_reports(store, WINDOW) == 0
        record = ReleaseLog(adding)
        entry = Entry(
            id="i",
            at=1,
            year=2026,
            purpose="p",
            by="me",
            metric="m",
            query="mode",
            value="",
            epochs=(1,),
            mechanism="laplace",
            epsilon=1.0,
            delta=0.0,
            answer=(),
        )
        assert await record.spend(entry, (1.0, 0.0)) == (entry, False)
        assert list(await record.entries()) == [entry]
        for mine, others in (
            (pooling, "aggregator"),
            (adding, "shuffler"),
            (issuing, "shuffler"),
            (issuing, "aggregator"),
            (pooling, "issuer"),
        ):
            for command in (
                ("SMEMBERS", f"{others}:windows"),
                ("HGETALL", f"{others}:windows"),
                ("EVAL", f"return redis.call('GET', '{others}:x')", "0"),
                ("KEYS", "*"),
                ("SCAN", "0"),
                ("CONFIG", "GET", "*"),
                ("FLUSHALL",),
                ("MONITOR",),
                ("SUBSCRIBE", "x"),
                ("ACL", "LIST"),
                ("DEBUG", "SLEEP", "0"),
                ("SHUTDOWN",),
            ):
                client: Any = mine.client
                with pytest.raises((NoPermissionError, redis.ResponseError)):
                    await client.execute_command(*command)
        await pooling.close()
        await adding.close()
        await issuing.close()
        with pytest.raises(StoreUnavailable, match=r"Auth|WRONGPASS|NOAUTH"):
            await connect_redis(f"redis://127.0.0.1:{port}/0", start_seconds=0)


async def _crowd_leaves(pool: Pool) -> None:
    """A whole epoch leaves with dummies, among which its number of reports is hidden."""
    window, crowd_id, noise = Window("crowd", 7), secrets.token_bytes(16), CountNoise(1 << 33, 2)
    await pool.add({window: sealed_reports(50)})
    drawn = await pool.hidden.draw_number(window, noise)
    await pool.hidden.keep(window, sealed_reports(drawn))
    assert await pool.hidden.move_to_pool(window, 49)
    assert not await pool.hidden.has_left(window)
    assert await pool.crowds.stage(window, crowd_id, sealed_reports(10)) == 10
    assert await pool.crowds.stage(window, bytes(16), sealed_reports(10)) == 10
    await pool.crowds.unstage(window, bytes(16))
    crowd = CrowdTake(50, 20, 10, noise.reach)
    count = await pool.crowds.leave(window, crowd, await pool.level(window), crowd_id)
    assert count == 50 + drawn
    cursor: bytes | None = b"0"
    while cursor:
        cursor = await pool.crowds.cut(window, crowd_id, cursor)
    sizes = [
        len(await pool.claim(window, batch_id, owner))
        for batch_id, owner in (await pool.batches(window)).items()
    ]
    assert sum(sizes) == 60 + drawn
    assert await pool.hidden.windows([window]) == {window}
    await pool.archive(window)


async def test_a_shuffler_whose_redis_user_lacks_rights_stops_at_once(tmp_path: Path) -> None:
    """As the users of version 0.1 may."""
    users = (ROOT / "deploy/hubbub/installation/redis/users.acl").read_text()
    [line] = [line for line in users.splitlines() if line.startswith("user shuffler")]
    lacked = {"+hexists", "+unlink", "+rename", "+persist", "+sscan", "+sunionstore"}
    rules = line.split()[2:]
    assert lacked <= set(rules)
    with redis_server(tmp_path / "redis") as port:
        first: Any = redis.asyncio.Redis(port=port)
        for allowed, own in (
            (False, [rule for rule in rules if rule not in lacked]),
            (True, lacked),
        ):
            await first.execute_command("ACL", "SETUSER", "shuffler", *own)
            server = await connect_redis(f"redis://shuffler:CHANGE-ME-SHUFFLER@127.0.0.1:{port}/0")
            if allowed:
                await Pool(server).check()
                await _crowd_leaves(Pool(server))
            else:
                with pytest.raises(StoreUnavailable) as error:
                    await Pool(server).check()
                assert lacked <= set(re.findall(r"\+\w+", str(error.value)))
            await server.close()
        await first.aclose()


@pytest.mark.parametrize("role", ["shuffler", "aggregator", "issuer"])
def test_each_redis_user_may_run_its_scripts(role: str) -> None:
    users = (ROOT / "deploy/hubbub/installation/redis/users.acl").read_text()
    [line] = [line for line in users.splitlines() if line.startswith(f"user {role} ")]
    commands = {
        command.lower()
        for path in ROOT.glob(f"*/hubbub/{role}/**/*.lua")
        for command in re.findall(r"redis\.p?call\(\s*'([A-Z]+)'", path.read_text())
    }
    assert len(commands) >= 3
    assert commands <= set(re.findall(r"\+(\S+)", line))


def test_redis_over_tls_proves_its_role(tmp_path: Path) -> None:
    if not has_tls():
        pytest.skip("this Redis server has no TLS: install redis-server, that of Debian has")
    tls, strangers = tmp_path / "tls", tmp_path / "strangers"
    write_certificates(tls, {})
    write_certificates(strangers, {})
    port = free_port()

    async def body() -> None:
        server = await connect_redis(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={tls}/ca.pem")
        await Pool(server).add({WINDOW: sealed_reports(3)})
        await server.close()
        for url in (
            f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={strangers}/ca.pem",
            f"rediss://127.0.0.1:{port}/0",
            f"redis://127.0.0.1:{port}/0",
        ):
            with pytest.raises(StoreUnavailable):
                await connect_redis(url, start_seconds=0)

    with redis_server(
        tmp_path / "redis",
        port,
        tls_port=str(port),
        tls_cert_file=str(tls / "redis.pem"),
        tls_key_file=str(tls / "redis.key"),
        tls_ca_cert_file=str(tls / "ca.pem"),
        tls_auth_clients="no",
    ):
        asyncio.run(body())


def test_the_configuration_that_ships_is_one(tmp_path: Path) -> None:
    """Every line of redis.conf is understood, with places of its own."""
    if not has_tls():
        pytest.skip("this Redis server has no TLS: install redis-server, that of Debian has")
    write_certificates(tmp_path / "tls", {})
    text = (
        (ROOT / "deploy/hubbub/installation/redis/redis.conf")
        .read_text()
        .replace("/etc/redis", str(tmp_path))
    )
    (tmp_path / "users.acl").write_text(
        (ROOT / "deploy/hubbub/installation/redis/users.acl").read_text()
    )
    port = free_port()
    text = text.replace("tls-port 6379", f"tls-port {port}")
    settings = dict(line.split(" ", 1) for line in text.splitlines() if line[:1] not in {"#", ""})
    del settings["port"]
    url = f"rediss://shuffler:CHANGE-ME-SHUFFLER@127.0.0.1:{port}/0?ssl_ca_certs={tmp_path}/tls/ca.pem"
    with redis_server(
        tmp_path / "redis", port, **{k.replace("-", "_"): v for k, v in settings.items()}
    ):
        _connected(url)


def test_redis_restores_its_data_although_users_are_limited(tmp_path: Path) -> None:
    """Redis reads its append-only file as its default user; where that may do nothing, 7.0 drops
    every script that it reads, which is everything of ours."""
    shutil.copyfile(ROOT / "deploy/hubbub/installation/redis/users.acl", tmp_path / "users.acl")
    report_totals = []

    async def body(port: int, number: int) -> None:
        server = await connect_redis(f"redis://shuffler:CHANGE-ME-SHUFFLER@127.0.0.1:{port}/0")
        pool = Pool(server)
        if number:
            await pool.add({WINDOW: sealed_reports(number)})
        report_totals.append((await pool.held_of_streams()).total())
        await server.close()
        with pytest.raises(StoreUnavailable, match=r"Auth|NOAUTH"):
            await connect_redis(f"redis://127.0.0.1:{port}/0", start_seconds=0)

    for number in (50, 0):
        with redis_server(
            tmp_path / "redis", appendonly="yes", aclfile=f'"{tmp_path}/users.acl"'
        ) as port:
            asyncio.run(body(port, number))
    assert report_totals == [50, 50]


def test_a_backup_is_restored_as_the_runbook_says(tmp_path: Path) -> None:
    report_totals = []

    async def fill(port: int, number: int) -> None:
        server = await connect_redis(f"redis://127.0.0.1:{port}/0")
        if number:
            await Pool(server).add({WINDOW: sealed_reports(number)})
        report_totals.append((await Pool(server).held_of_streams()).total())
        await server.close()

    with redis_server(tmp_path / "old", appendonly="yes") as port:
        asyncio.run(fill(port, 40))
        with redis.Redis(port=port) as client:
            client.bgsave()

            def saved() -> bool:
                info = client.info("persistence")
                return int(info["rdb_last_bgsave_time_sec"]) >= 0

            eventually(saved)
        (tmp_path / "new").mkdir()
        shutil.copyfile(tmp_path / "old" / "dump.rdb", tmp_path / "new" / "dump.rdb")
        asyncio.run(fill(port, 5))  # after the backup
    with redis_server(tmp_path / "new", appendonly="no") as port, redis.Redis(port=port) as client:
        client.config_set("appendonly", "yes")

        def is_rewritten() -> bool:
            info = client.info("persistence")
            return not info["aof_rewrite_scheduled"] + info["aof_rewrite_in_progress"]

        eventually(is_rewritten)
    with redis_server(tmp_path / "new", appendonly="yes") as port:
        asyncio.run(fill(port, 0))
    assert report_totals == [40, 45, 40]


def test_each_role_may_do_its_work_on_a_cluster_too(tmp_path: Path) -> None:
    users = (ROOT / "deploy/hubbub/installation/redis/users.acl").read_text().splitlines()

    async def body(cluster: Cluster) -> None:
        hosts = cluster.url.removeprefix("redis://")
        for role in ("shuffler", "aggregator"):
            url = f"redis://{role}:CHANGE-ME-{role.upper()}@{hosts}"
            server = await connect_redis(url, replicas=1)
            if role == "shuffler":
                pool = Pool(server)
                await pool.add({WINDOW: sealed_reports(50)})
                batch = await pool.take(WINDOW, Take(20, 20), await pool.level(WINDOW))
                assert len(await pool.claim(WINDOW, batch or b"", None)) == 20
            else:
                store = RedisStore(server, 3)
                assert await store.shards(WINDOW) == 3
                assert (await store.add(WINDOW, _commit([bytes(16)])))[0] is Outcome.APPLIED
            assert await server.room() == (0, inf)
            await server.close()

    with redis_cluster(tmp_path) as cluster:
        for node in cluster.nodes:
            for line in users[2:]:
                node.ask("ACL", "SETUSER", *line.split()[1:])
        asyncio.run(body(cluster))


def test_a_cluster_is_reached_over_tls(tmp_path: Path) -> None:
    if not has_tls():
        pytest.skip("this Redis server has no TLS: install redis-server, that of Debian has")
    write_certificates(tmp_path / "tls", {})

    async def body(url: str) -> None:
        server = await connect_redis(url, replicas=1)
        windows = [Window(f"stream-{number}", 1) for number in range(8)]
        await Pool(server).add({window: sealed_reports(5) for window in windows})
        assert (await Pool(server).held_of_streams()).total() == 40
        await server.close()
        with pytest.raises(StoreUnavailable):
            await connect_redis(
                url.partition("?")[0], start_seconds=0
            )  # whose authority nobody vouches for

    with redis_cluster(tmp_path / "cluster", tls=tmp_path / "tls") as cluster:
        asyncio.run(body(cluster.url))
