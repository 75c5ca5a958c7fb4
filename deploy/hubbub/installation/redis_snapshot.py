"""Copies both Redis as of one moment, over the network, as their replicas do.

Writes are held back on both while each forks, which takes milliseconds; reads go on. A fork then
sends what it held at that moment, however long that takes. So the files are as if both servers had
lost their power together, which the services can recover from.
"""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final

from redis.asyncio import Redis

from hubbub.errors import BackupUnusable, ServiceUnavailable, StateUnusable, StoreUnavailable
from hubbub.installation.embedded_redis import EmbeddedRedis
from hubbub.programs.atomic_write import refuse_unwritable
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer

# Redis ends the pause itself if this process dies.
_PAUSE_SECONDS: Final = 5.0
# Other forks, such as for rewriting an append-only file, are awaited this long.
_QUIET_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.01
# While it writes its file, Redis sends an empty line every second.
_SILENCE_SECONDS: Final = 60.0
_PIECE: Final = 1 << 20
_BUSY: Final = ("rdb_bgsave_in_progress", "aof_rewrite_in_progress", "loading")

Progress = Callable[[str, int, int], None]
"""Is told whose file it is, how many bytes have come, and of how many."""


async def read_together(
    urls: Mapping[str, str], files: Mapping[str, BinaryIO], progress: Progress
) -> None:
    """Writes what each server holds into its file, all as of one moment.

    `urls` are by role, of a user with all rights; roles may share a server. Raises StoreUnavailable
    if one cannot be asked, is a Cluster, or does not fork in time.
    """
    async with contextlib.AsyncExitStack() as stack:
        # A server with two roles is read once and written twice.
        sources: dict[str, _Source] = {}
        targets: dict[str, list[BinaryIO]] = {}
        for role, url in urls.items():
            server = await stack.enter_async_context(await connect_redis(url))
            async with server.errors():
                run = str((await server.info("server"))[0]["run_id"])
            targets.setdefault(run, []).append(files[role])
            if run not in sources:
                sources[run] = _Source(role, server)
                await sources[run].connect()
                stack.push_async_callback(sources[run].close)
        await _fork_together(list(sources.values()))
        copies = (source.read(targets[run], progress) for run, source in sources.items())
        await asyncio.gather(*copies)


class _Source:
    """One server: a connection for commands, and another one that receives its data."""

    def __init__(self, role: str, server: RedisServer) -> None:
        self.role = role
        self.server = server
        self._forks = 0

    async def connect(self) -> None:
        client = self.server.client
        if not isinstance(client, Redis):
            raise StoreUnavailable(
                f"the {self.role}'s Redis is a Cluster, whose nodes cannot be copied at one "
                "moment; copy it as its documentation describes (docs/operate/cluster.md)"
            )
        self._connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        async with self.server.errors():
            await self._connection.connect()

    async def close(self) -> None:
        await self._connection.disconnect(nowait=True)

    async def wait_until_quiet(self) -> None:
        patience = time.monotonic() + _QUIET_SECONDS
        while time.monotonic() < patience:
            info = await self._info("persistence")
            if not any(int(info.get(name, 0)) for name in _BUSY):
                return
            await asyncio.sleep(_LOOK_SECONDS)
        raise StoreUnavailable(
            f"the {self.role}'s Redis is always busy writing files; try again later"
        )

    async def hold(self) -> None:
        """Holds all writes back, and remembers how often the server has forked."""
        await self.server.ask("CLIENT", "PAUSE", int(_PAUSE_SECONDS * 1000), "WRITE")
        self._forks = int((await self._info("stats"))["total_forks"])

    async def fork(self) -> None:
        async with self.server.errors():
            # The request of a replica before 2.8: Redis forks at once and sends the length first.
            await self._connection.send_command("SYNC", check_health=False)

    async def forked(self) -> bool:
        rewriting = int((await self._info("persistence"))["aof_rewrite_in_progress"])
        return not rewriting and int((await self._info("stats"))["total_forks"]) > self._forks

    async def release(self) -> None:
        await self.server.ask("CLIENT", "UNPAUSE")

    async def read(self, files: Sequence[BinaryIO], progress: Progress) -> None:
        async with self.server.errors():
            # redis-py only reads replies, and this is none.
            reader: asyncio.StreamReader = self._connection._reader  # noqa: SLF001
            line = b"\n"
            while line == b"\n":
                line = await self._read_in_time(reader.readline())
            if not line.startswith(b"$"):
                words = line.decode("ascii", "replace").strip("-\r\n ")
                raise StoreUnavailable(
                    f"the {self.role}'s Redis sent no copy: {words or 'it disconnected'}; name "
                    'the user "operator" in the URL, and read the log of Redis'
                )
            missing = total = int(line[1:])
            while missing:
                piece = await self._read_in_time(reader.read(min(missing, _PIECE)))
                if not piece:
                    raise StoreUnavailable(f"the {self.role}'s Redis sent only a part of its file")
                missing -= len(piece)
                for file in files:
                    with refuse_unwritable(file.name, StateUnusable):
                        file.write(piece)
                progress(self.role, total - missing, total)

    async def _read_in_time(self, reading: Awaitable[bytes]) -> bytes:
        try:
            data: bytes = await asyncio.wait_for(reading, _SILENCE_SECONDS)
        except TimeoutError:
            raise StoreUnavailable(
                f"the {self.role}'s Redis stopped answering; try again"
            ) from None
        return data

    async def _info(self, section: str) -> Mapping[str, Any]:
        async with self.server.errors():
            [info] = await self.server.info(section)
        return info


async def _fork_together(sources: Sequence[_Source]) -> None:
    for source in sources:
        await source.wait_until_quiet()
    began = time.monotonic()
    try:
        for source in sources:
            await source.hold()
        for source in sources:
            await source.fork()
        for source in sources:
            while time.monotonic() - began < _PAUSE_SECONDS:
                if await source.forked():
                    break
                await asyncio.sleep(_LOOK_SECONDS)
    finally:
        # Later, the first server may have continued before the last one forked.
        late = time.monotonic() - began > _PAUSE_SECONDS
        for source in sources:
            with contextlib.suppress(StoreUnavailable):
                await source.release()
    if late:
        raise StoreUnavailable(
            f"a Redis did not fork within {_PAUSE_SECONDS:g} seconds, which delayed writes; "
            "try again when there is less load, and read the log of Redis"
        )


# Keys, and elements of one key, that are requested at a time.
_PART: Final = 500
_SCAN: Final = {b"set": "SSCAN", b"hash": "HSCAN"}
_ADD: Final = {b"set": "SADD", b"hash": "HSET", b"list": "RPUSH", b"string": "SET"}


@contextmanager
def loaded_server(rdb: Path) -> Iterator[EmbeddedRedis]:
    """Runs a server that holds the file's data, for the duration of the block.

    Raises BackupUnusable if the file cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="hubbub-backup-") as folder:
        (Path(folder) / "dump.rdb").symlink_to(rdb.absolute())
        try:
            server = EmbeddedRedis(Path(folder), keeps=False)
        except ServiceUnavailable as error:
            raise BackupUnusable(f"{rdb}: no Redis on this machine can read it: {error}") from error
        try:
            yield server
        finally:
            server.stop()


async def number_of_keys(url: str) -> int:
    """The number of keys of a server that was `loaded_server`."""
    async with _loaded_connection(url) as server:
        return int(await server.ask("DBSIZE"))


async def refuse_keys(url: str, role: str) -> None:
    """Raises BackupUnusable for a Redis that is not empty, StoreUnavailable for a Cluster."""
    async with await connect_redis(url) as server:
        if not isinstance(server.client, Redis):
            raise StoreUnavailable(
                f"the {role}'s Redis is a Cluster; restore into a single server, then move the data"
            )
        number = int(await server.ask("DBSIZE"))
    if number:
        raise BackupUnusable(
            f"the {role}'s Redis holds {number:,} keys, but a backup is only restored into "
            "an empty Redis: stop the services, and start a Redis on an empty folder"
        )


async def copy_into(
    source: str, target: str, prefix: str, progress: Callable[[int, int], None]
) -> None:
    """Copies all keys with a prefix, with their times to live.

    `progress` is called with the number of keys looked at, and of all keys.
    """
    async with _loaded_connection(source) as origin, await connect_redis(target) as empty:
        total, count, cursor = int(await origin.ask("DBSIZE")), 0, b"0"
        while True:
            cursor, keys = await origin.ask("SCAN", cursor, "COUNT", _PART)
            ours = [key for key in keys if key.startswith(prefix.encode())]
            # With commands of all versions: older servers refuse a newer one's DUMP.
            kinds = await origin.execute([("TYPE", key) for key in ours])
            lives = await origin.execute([("PTTL", key) for key in ours])
            for key, kind, life in zip(ours, kinds, lives, strict=True):
                if kind == b"none":  # its time was over meanwhile
                    continue
                if kind not in _ADD:
                    raise BackupUnusable(
                        f"the backup has a {kind.decode()}, which hubbub never writes"
                    )
                await empty.ask("DEL", key)  # a scan may come to a key twice
                async for part in _parts(origin, key, kind):
                    await empty.ask(_ADD[kind], key, *part)
                if life >= 0:
                    await empty.ask("PEXPIRE", key, max(life, 1))
            count += len(keys)
            progress(count, max(total, count))
            if int(cursor) == 0:
                return


def _loaded_connection(url: str) -> RedisServer:
    """A connection to a `loaded_server` server, without the warning that it does not persist."""
    return RedisServer(Redis.from_url(url), url)


async def _parts(source: RedisServer, key: bytes, kind: bytes) -> AsyncIterator[Sequence[bytes]]:
    """Yields a key's content in parts: Redis refuses arguments of 512 MB, and 64 MB hold it up."""
    if kind == b"string":
        yield [await source.ask("GET", key)]
    elif kind == b"list":
        start = 0
        while part := await source.ask("LRANGE", key, start, start + _PART - 1):
            yield part
            start += _PART
    else:
        cursor: bytes | int = 0
        while True:
            cursor, part = await source.ask(_SCAN[kind], key, cursor, "COUNT", _PART)
            if part:
                yield list(chain.from_iterable(part.items())) if kind == b"hash" else part
            if int(cursor) == 0:
                return
