"""The wire between shuffler and aggregator: messages of many reports beside messages of one."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any, Final

import grpc.aio

import hubbub.wire.v1.services_pb2 as wire
from benchmarks.measure import Row
from hubbub.installation.child_process import free_port
from hubbub.runtime.rpc.server import Server, channel
from hubbub.wire.v1.stubs_and_handlers import stub

_SECONDS: Final = 2.0
_AT_ONCE: Final = 8


class _Nothing:
    """Takes a batch, looks at its reports, and does nothing with them."""

    async def Apply(self, request: wire.Batch, context: Any) -> wire.BatchOutcome:  # noqa: N802 as generated
        del context
        return wire.BatchOutcome(already_applied=not list(request.sealed))


def transport() -> Iterator[Row]:
    """Reports a second over one connection of this machine, both ends in this process."""
    single_rate, many = (asyncio.run(_rate(number)) for number in (1, 1000))
    yield Row(
        "transport, messages of 1,000 reports",
        f"{many:,.0f}/s",
        f"messages of 1: {single_rate:,.0f}/s",
        many / single_rate,
        "never the bottleneck",
        more=True,
    )


async def _rate(number: int) -> float:
    address = f"127.0.0.1:{free_port()}"
    server = Server(address, {"Ingest": _Nothing()}, tls=None, callers=None)
    await server.start()
    line: grpc.aio.Channel = channel(address, "aggregator", tls=None)
    batch = wire.Batch(batch_id=bytes(16), stream="s", epoch=1, sealed=[bytes(66)] * number)
    done, until = 0, time.perf_counter() + _SECONDS

    async def caller() -> None:
        nonlocal done
        ingest = stub("Ingest", line)
        while time.perf_counter() < until:
            await ingest.Apply(batch)
            done += number

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(_AT_ONCE)))
    took = time.perf_counter() - began
    await line.close()
    await server.stop(1)
    return done / took
