"""Mixers of one real Redis, by a clock that a test moves, before an aggregator that keeps all."""

import asyncio
import base64
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from hubbub.bundles import Bundle
from hubbub.conservation import Window
from hubbub.installation.child_process import free_port
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.process import end_tasks
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.rpc.server import Server, channel
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import StreamTable, read_stream_table
from hubbub.wire.v1.services_pb2 import Batch, BatchOutcome
from tests.support.clocks import FakeClock
from tests.support.moment import now, today
from tests.support.waiting import HANG_SECONDS


class Sink:
    """Takes every batch, but those of streams that it does not know."""

    def __init__(self) -> None:
        self.unknown: set[str] = set()
        self.refused = 0
        self.delivered: Counter[bytes] = Counter()
        self.sealed: Counter[bytes] = Counter()
        self.sizes: dict[bytes, tuple[int, int]] = {}
        self.before: Callable[[], Awaitable[None]] | None = None

    async def Apply(self, request: Batch, context: Any) -> BatchOutcome:
        if request.stream in self.unknown:
            self.refused += 1
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such metric")
        if self.before:
            await self.before()
        self.delivered[request.batch_id] += 1
        self.sizes[request.batch_id] = (len(request.sealed), request.dummies)
        self.sealed.update(request.sealed)
        return BatchOutcome()

    async def has_refused(self) -> bool:
        return self.refused > 0

    async def has_taken(self, reports: int) -> bool:
        return self.sealed.total() >= reports


@asynccontextmanager
async def a_sink() -> AsyncIterator[tuple[Sink, str]]:
    sink, address = Sink(), f"127.0.0.1:{free_port()}"
    server = Server(address, {"Ingest": sink}, tls=None, callers=None)
    await server.start()
    yield sink, address
    await server.stop(1)


@dataclass
class Mixing:
    """Mixers of one Redis, all by one clock."""

    pools: list[Pool]
    clock: FakeClock
    loops: "list[asyncio.Task[None]]"
    mixers: list[Mixer]

    def deliveries(self) -> "list[asyncio.Task[None]]":
        return [task for mixer in self.mixers for task in mixer._flying.values()]

    async def turn(self, seconds: float = 0.1) -> None:
        """Time passes, and each of them has looked at every window, and waits again."""
        self.clock.advance(seconds)
        await self.clock.settle(*self.loops)

    async def until(self, look: Callable[[], Awaitable[bool]]) -> None:
        """As long as it takes, by their own clock: waits of any length are over at once."""
        async with asyncio.timeout(HANG_SECONDS):
            while not await look():
                await self.turn(1.0)


def window_of_today(stream: str = "theme") -> Window:
    return Window(stream, today())


def sealed_reports(number: int) -> list[bytes]:
    """As many as long as those of `theme`."""
    return [secrets.token_bytes(49) for _ in range(number)]


async def law_of(pool: Pool, window: Window) -> dict[str, int]:
    """The terms of a window."""
    return (await pool.report_counts())[window]


def pool_counts(redis_url: str) -> dict[Window, dict[str, int]]:
    """The exact terms of every window, which no face of a production shuffler shows."""

    async def counts() -> dict[Window, dict[str, int]]:
        server = await connect_redis(redis_url)
        try:
            return await Pool(server).report_counts()
        finally:
            await server.close()

    return asyncio.run(counts())


async def until_empty(mixing: Mixing, window: Window) -> None:
    """Until nothing of a window is pooled or in flight."""

    async def empty() -> bool:
        law = await law_of(mixing.pools[0], window)
        return law["pooled"] + law["in_flight"] == 0

    await mixing.until(empty)


@asynccontextmanager
async def mixers(
    redis_url: str,
    table: StreamTable,
    address: str,
    number: int,
    clocks: Clocks | None = None,
    *,
    shards: int = 1,
) -> AsyncIterator[Mixing]:
    with pytest.MonkeyPatch.context() as patch:
        # However slow this machine is, none of them is taken for dead.
        patch.setattr("hubbub.shuffler.pool._ALIVE_MS", round(1000 * HANG_SECONDS))
        server = await connect_redis(redis_url)
        await server.client.flushdb()
        pools, clock = [Pool(server, shards) for _ in range(number)], FakeClock()
        channels = [channel(address, "aggregator", tls=None) for _ in pools]
        pool_mixers = [
            Mixer(
                pool,
                table,
                [channel],
                Policy(max_batch=50),
                stages=Stages(),
                clocks=clocks or Clocks(now),
                clock=clock,
            )
            for pool, channel in zip(pools, channels, strict=True)
        ]
        for pool in pools:
            await pool.heartbeat()
        loops = [asyncio.create_task(run()) for m in pool_mixers for run in (m.run, m.heartbeat)]
        try:
            yield Mixing(pools, clock, loops, pool_mixers)
        finally:  # a test that failed would wait for them for ever
            await end_tasks(loops)
            for member in channels:
                await member.close()
            await server.client.flushdb()
            await server.close()


def crowd_table(streams: Path, bundle: Bundle, folder: Path, **own: Any) -> StreamTable:
    """The stream table of a file, but theme leaves as a crowd and has these fields of its own.

    With the keys of the bundle, so that the shuffler can seal dummies.
    """
    document = json.loads(streams.read_bytes())
    document["streams"]["theme"] |= {"sealed_bytes": 49, "mix": "epoch", **own}
    for key, period in zip(document["keys"], bundle.keys, strict=True):
        key["public"] = base64.b64encode(period.public).decode()
    path = folder / "streams.json"
    path.write_text(json.dumps(document))
    return read_stream_table(path)
