"""A Redis of our own that reads a backup's file, and copying from it into an empty one."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from redis.asyncio import Redis

from hubbub.cli.local.embedded_redis import EmbeddedRedis
from hubbub.errors import BackupUnusable, ServiceUnavailable, StoreUnavailable
from hubbub.runtime import RedisServer, connect_redis

# Keys asked for at a time.
_KEYS: Final = 500
# A bigger key goes in parts: Redis takes no argument of 512 MB, and is busy with one of 64.
_LARGE: Final = 64 << 20
_PARTS: Final = {b"set": ("SSCAN", "SADD"), b"hash": ("HSCAN", "HSET")}


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
            raise BackupUnusable(
                f"{rdb}: Redis does not read it: {error}; a file of a newer Redis takes a "
                "newer one on PATH"
            ) from error
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
    held, empty = _own(source), await connect_redis(target)
    try:
        total, seen, copied, cursor = int(await held.ask("DBSIZE")), 0, 0, b"0"
        while True:
            cursor, keys = await held.ask("SCAN", cursor, "COUNT", _KEYS)
            ours = [key for key in keys if key.startswith(prefix.encode())]
            copied += await _copy(held, empty, ours)
            seen += len(keys)
            on(seen, max(total, seen))
            if int(cursor) == 0:
                return copied
    finally:
        await held.close()
        await empty.close()


def _own(url: str) -> RedisServer:
    """A server that was `loaded`: it keeps nothing, and nobody is to be warned of that."""
    return RedisServer(Redis.from_url(url), url)


async def _copy(held: RedisServer, empty: RedisServer, keys: Sequence[bytes]) -> int:
    sizes = await held.execute([("MEMORY", "USAGE", key, "SAMPLES", 5) for key in keys])
    small = [key for key, size in zip(keys, sizes, strict=True) if (size or 0) < _LARGE]
    for key in set(keys) - set(small):
        await _in_parts(held, empty, key)
    asked = [command for key in small for command in (("PTTL", key), ("DUMP", key))]
    told = await held.execute(asked)
    commands: list[tuple[Any, ...]] = [
        # REPLACE: a scan may come to a key twice.
        ("RESTORE", key, max(left, 0), packed, "REPLACE")
        for key, left, packed in zip(small, told[::2], told[1::2], strict=True)
        if packed is not None  # its time was over meanwhile
    ]
    await empty.execute(commands)
    return len(commands) + len(keys) - len(small)


async def _in_parts(held: RedisServer, empty: RedisServer, key: bytes) -> None:
    kind = await held.ask("TYPE", key)
    if kind not in _PARTS:
        raise BackupUnusable(f"a {kind.decode()} of the backup is larger than what is ever written")
    scan, add = _PARTS[kind]
    cursor = b"0"
    while True:
        cursor, found = await held.ask(scan, key, cursor, "COUNT", _KEYS)
        if found:
            await empty.ask(add, key, *found)
        if int(cursor) == 0:
            break
    left = await held.ask("PTTL", key)
    if left > 0:
        await empty.ask("PEXPIRE", key, left)
