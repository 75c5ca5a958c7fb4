"""Both Redis as they were at one moment, read over the network as their replicas do.

Writes are held back on both while each forks, which takes milliseconds; reads go on. What a fork
then sends is what it held at that moment, however long the sending takes. So the files are what
two servers would have left that lost their power together, and that the services bear.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, BinaryIO, Final

from redis.asyncio import Redis

from hubbub.errors import StoreUnavailable
from hubbub.runtime import RedisServer, connect_redis

# Redis ends the pause itself, should we be gone.
_PAUSE_SECONDS: Final = 5.0
# What else forks, an append-only file that is rewritten, is waited for.
_QUIET_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.01
# While it writes its file, Redis sends an empty line every second.
_SILENCE_SECONDS: Final = 60.0
_PIECE: Final = 1 << 20
_BUSY: Final = ("rdb_bgsave_in_progress", "aof_rewrite_in_progress", "loading")

Progress = Callable[[str, int, int], None]
"""Is told whose file it is, how many bytes have come, and of how many."""


async def read_together(
    urls: Mapping[str, str], files: Mapping[str, BinaryIO], on: Progress
) -> None:
    """Write what each of the servers holds into its file, all of one moment.

    urls: by role, of a user that may do everything. Roles may share a server.

    Raises:
        StoreUnavailable: one cannot be asked, is a Cluster, or does not fork in time.
    """
    async with contextlib.AsyncExitStack() as stack:
        # A server that two roles share is read once, and written twice.
        sources: dict[str, _Source] = {}
        targets: dict[str, list[BinaryIO]] = {}
        for role, url in urls.items():
            server = await connect_redis(url)
            stack.push_async_callback(server.close)
            run = await _run_of(server)
            targets.setdefault(run, []).append(files[role])
            if run not in sources:
                sources[run] = _Source(role, server)
                await sources[run].connect()
                stack.push_async_callback(sources[run].close)
        await _fork_together(list(sources.values()))
        await asyncio.gather(*(source.read(targets[run], on) for run, source in sources.items()))


class _Source:
    """One server, asked by one connection and read by another."""

    def __init__(self, role: str, server: RedisServer) -> None:
        self.role = role
        self.server = server
        self._forks = 0

    async def connect(self) -> None:
        client = self.server.client
        if not isinstance(client, Redis):
            raise StoreUnavailable(
                f"the {self.role}'s Redis is a Cluster, whose nodes share no moment; copy it with "
                "what its own documentation says (docs/operate/cluster.md)"
            )
        self._connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        async with self.server.errors():
            await self._connection.connect()

    async def close(self) -> None:
        await self._connection.disconnect(nowait=True)

    async def quiet(self) -> bool:
        info = await self._info("persistence")
        return not any(int(info.get(name, 0)) for name in _BUSY)

    async def hold(self) -> None:
        """Hold all writes back, and remember how often it has forked."""
        await self.server.ask("CLIENT", "PAUSE", int(_PAUSE_SECONDS * 1000), "WRITE")
        self._forks = int((await self._info("stats"))["total_forks"])

    async def fork(self) -> None:
        async with self.server.errors():
            # As a replica of before 2.8 says it: it then forks at once and tells the length first.
            await self._connection.send_command("SYNC", check_health=False)

    async def forked(self) -> bool:
        rewriting = int((await self._info("persistence"))["aof_rewrite_in_progress"])
        return not rewriting and int((await self._info("stats"))["total_forks"]) > self._forks

    async def release(self) -> None:
        await self.server.ask("CLIENT", "UNPAUSE")

    async def read(self, files: Sequence[BinaryIO], on: Progress) -> None:
        async with self.server.errors():
            rest = total = await self._length()
            while rest:
                piece = await self._within(self._reader().read(min(rest, _PIECE)))
                if not piece:
                    raise StoreUnavailable(f"the {self.role}'s Redis ended before its file did")
                rest -= len(piece)
                for file in files:
                    file.write(piece)
                on(self.role, total - rest, total)

    async def _length(self) -> int:
        line = b"\n"
        while line == b"\n":
            line = await self._within(self._reader().readline())
        if not line.startswith(b"$"):
            words = line.decode("ascii", "replace").strip("-\r\n ")
            raise StoreUnavailable(
                f"the {self.role}'s Redis gives no copy: {words or 'it hung up'}; name the URL of "
                "its user operator, and look into its log"
            )
        return int(line[1:])

    async def _within(self, reading: Awaitable[bytes]) -> bytes:
        try:
            data: bytes = await asyncio.wait_for(reading, _SILENCE_SECONDS)
        except TimeoutError:
            raise StoreUnavailable(f"the {self.role}'s Redis says no more; try again") from None
        return data

    def _reader(self) -> asyncio.StreamReader:
        # redis-py reads replies alone, and this is none.
        reader: asyncio.StreamReader = self._connection._reader  # noqa: SLF001
        return reader

    async def _info(self, section: str) -> Mapping[str, Any]:
        async with self.server.errors():
            [info] = await self.server.info(section)
        return info


async def _run_of(server: RedisServer) -> str:
    async with server.errors():
        return str((await server.info("server"))[0]["run_id"])


async def _fork_together(sources: Sequence[_Source]) -> None:
    for source in sources:
        await _wait_until_quiet(source)
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
        # Beyond it the first server may have gone on before the last had forked.
        late = time.monotonic() - began > _PAUSE_SECONDS
        for source in sources:
            with contextlib.suppress(StoreUnavailable):
                await source.release()
    if late:
        raise StoreUnavailable(
            f"a Redis did not fork within {_PAUSE_SECONDS:g} seconds, in which nothing was "
            "written; the services go on; try again when there is less to do, and see its log"
        )


async def _wait_until_quiet(source: _Source) -> None:
    patience = time.monotonic() + _QUIET_SECONDS
    while not await source.quiet():
        if time.monotonic() > patience:
            raise StoreUnavailable(
                f"the {source.role}'s Redis is writing files without an end; try again later"
            )
        await asyncio.sleep(_LOOK_SECONDS)
