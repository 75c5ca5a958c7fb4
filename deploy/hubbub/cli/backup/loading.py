"""A Redis of our own that reads a backup's file, and copying from it into an empty one."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Final

from redis.asyncio import Redis

from hubbub.cli.local.embedded_redis import EmbeddedRedis
from hubbub.errors import BackupUnusable, ServiceUnavailable, StoreUnavailable
from hubbub.runtime import RedisServer, connect_redis

# Keys, and elements of one key, that are requested at a time.
_PART: Final = 500
_SCAN: Final = {b"set": "SSCAN", b"hash": "HSCAN"}
_ADD: Final = {b"set": "SADD", b"hash": "HSET", b"list": "RPUSH", b"string": "SET"}


@contextmanager
def loaded(rdb: Path) -> Iterator[EmbeddedRedis]:
    """A server that holds what the file does, until it is no longer needed.

    Raises:
        BackupUnusable: it cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="hubbub-backup-") as folder:
        (Path(folder) / "dump.rdb").symlink_to(rdb.absolute())
        try:
            server = EmbeddedRedis(Path(folder), keeps=False)
        except ServiceUnavailable as error:
            raise BackupUnusable(f"{rdb}: no Redis here reads it: {error}") from error
        try:
            yield server
        finally:
            server.stop()


async def number_of_keys(url: str) -> int:
    """How many keys a server that was `loaded` holds."""
    server = _own(url)
    try:
        return int(await server.ask("DBSIZE"))
    finally:
        await server.close()


async def refuse_keys(url: str, role: str) -> None:
    """Raises BackupUnusable for a Redis that holds anything, StoreUnavailable for a Cluster."""
    server = await connect_redis(url)
    try:
        if not isinstance(server.client, Redis):
            raise StoreUnavailable(
                f"the {role}'s Redis is a Cluster; restore into one server, and move it from there"
            )
        number = int(await server.ask("DBSIZE"))
    finally:
        await server.close()
    if number:
        raise BackupUnusable(
            f"the {role}'s Redis holds {number:,} keys; a backup goes into an empty one alone: "
            "stop the services, and give a Redis that was started on an empty folder"
        )


async def copy_into(source: str, target: str, prefix: str, on: Callable[[int, int], None]) -> int:
    """Copy all keys of a prefix, with their times to live: how many.

    on: is told how many are looked at, and of how many.
    """
    origin, empty = _own(source), await connect_redis(target)
    try:
        total, count, copied, cursor = int(await origin.ask("DBSIZE")), 0, 0, b"0"
        while True:
            cursor, keys = await origin.ask("SCAN", cursor, "COUNT", _PART)
            ours = [key for key in keys if key.startswith(prefix.encode())]
            copied += await _copy(origin, empty, ours)
            count += len(keys)
            on(count, max(total, count))
            if int(cursor) == 0:
                return copied
    finally:
        await origin.close()
        await empty.close()


def _own(url: str) -> RedisServer:
    """A server that was `loaded`: it keeps nothing, and nobody is to be warned of that."""
    return RedisServer(Redis.from_url(url), url)


async def _copy(source: RedisServer, empty: RedisServer, keys: Sequence[bytes]) -> int:
    """Copy keys by commands that every version has: older servers refuse a newer one's DUMP."""
    kinds = await source.execute([("TYPE", key) for key in keys])
    lives = await source.execute([("PTTL", key) for key in keys])
    copied = 0
    for key, kind, life in zip(keys, kinds, lives, strict=True):
        if kind == b"none":  # its time was over meanwhile
            continue
        if kind not in _ADD:
            raise BackupUnusable(f"the backup has a {kind.decode()}, which hubbub never writes")
        await empty.ask("DEL", key)  # a scan may come to a key twice
        async for part in _parts(source, key, kind):
            await empty.ask(_ADD[kind], key, *part)
        if life >= 0:
            await empty.ask("PEXPIRE", key, max(life, 1))
        copied += 1
    return copied


async def _parts(source: RedisServer, key: bytes, kind: bytes) -> AsyncIterator[Sequence[bytes]]:
    """What a key holds, in parts: Redis takes no argument of 512 MB, and is busy with one of 64."""
    if kind == b"string":
        yield [await source.ask("GET", key)]
    elif kind == b"list":
        first = 0
        while part := await source.ask("LRANGE", key, first, first + _PART - 1):
            yield part
            first += _PART
    else:
        cursor: bytes | int = 0
        while True:
            cursor, part = await source.ask(_SCAN[kind], key, cursor, "COUNT", _PART)
            if part:
                yield list(chain.from_iterable(part.items())) if kind == b"hash" else part
            if int(cursor) == 0:
                return
