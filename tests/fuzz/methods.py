"""Every gRPC method of both services, over the wire, with bytes that are no requests, or odd ones.

The services are the shipping ones, on a real Redis of their own, in this process: what escapes a
handler is seen in the log.
"""

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import numpy as np
from google.protobuf.message import Message

from hubbub.aggregator.ingest.intake import Intake as Counting
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.ingest_service import IngestService
from hubbub.aggregator.store.redis import RedisStore
from hubbub.conservation import Window
from hubbub.installation.child_process import free_port
from hubbub.installation.embedded_redis import EmbeddedRedis
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.process import end_tasks
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.runtime.rpc.server import Server, channel
from hubbub.sealing.hpke import seal, seal_info
from hubbub.shuffler.admission import LARGEST_SUBMIT_BYTES, Admission, Backpressure
from hubbub.shuffler.group_commit import Intake
from hubbub.shuffler.grpc_door import OperatorService, ShownCounts, ShufflerService
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import read_stream_table
from hubbub.signing.sign_bundle import stream_table
from hubbub.wire.v1 import services_pb2 as wire
from tests.conftest import CATALOG
from tests.fuzz.mutate import mutated, odd
from tests.fuzz.target import Faults
from tests.support.bundles import DAY, make_signed
from tests.support.stores import commit_of
from tests.support.waiting import HANG_SECONDS

AT_ONCE = 32
RAW = 0.4  # the part of requests that are any bytes; the others are messages of their kind
SERVICES = "/hubbub.wire.v1."
# Whatever was sent, these are answers; anything else is a fault of ours.
ANSWERS = frozenset(
    {
        grpc.StatusCode.OK,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)


@dataclass(frozen=True)
class Method:
    """One method at its address: its message, and requests that are right."""

    address: str
    kind: type[Message]
    examples: Sequence[bytes]


async def fuzz(folder: Path, number: int, seed: int, tell: Callable[[str], None]) -> Counter[str]:
    """Send so many requests to all methods: the answers, by method and status.

    Raises AssertionError for an answer or a log line that should not be.
    """
    chance = random.Random(seed)
    answers: Counter[str] = Counter()
    faults = Faults()
    logging.getLogger().addHandler(faults)
    async with _services(folder) as methods:
        channels = {m.address: grpc.aio.insecure_channel(m.address) for m in methods.values()}
        calls: dict[str, Callable[..., Any]] = {
            name: channels[method.address].unary_unary(SERVICES + name)
            for name, method in methods.items()
        }
        steps = iter(range(number))

        async def worker() -> None:
            for done in steps:
                name = chance.choice(list(methods))
                examples, kind = methods[name].examples, methods[name].kind
                request = (
                    mutated(chance, examples)
                    if chance.random() < RAW
                    else odd(chance, chance.choice(examples), kind)
                )
                try:
                    await calls[name](request, timeout=HANG_SECONDS)
                    code = grpc.StatusCode.OK
                except grpc.aio.AioRpcError as error:
                    code = error.code()
                if code not in ANSWERS:
                    raise AssertionError(f"{name}: {code} for {request.hex()}")
                answers[f"{name} {code.name}"] += 1
                if done % 1000 == 0:
                    tell(f"{done:,} of {number:,} requests")

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
        for channel in channels.values():
            await channel.close()
    logging.getLogger().removeHandler(faults)
    assert not faults.records, faults.records[:3]
    return answers


@asynccontextmanager
async def _services(folder: Path) -> AsyncIterator[dict[str, Method]]:
    epoch = int(time.time()) // DAY
    signed = make_signed(folder, CATALOG, start=(epoch - 14) * DAY)
    table = folder / "streams.json"
    table.write_text(stream_table(signed.bundle))
    redis = EmbeddedRedis(folder / "redis")
    server = await connect_redis(redis.url)
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    opener = Opener(read_opening_keys(signed.keys / "opening.keys.json"), 1)
    store, pool = RedisStore(server), Pool(server)
    counting = Counting(signed.bundle, opener, store, Stages())
    tags = [place.to_bytes(16, "big") for place in range(100)]
    closed, window = commit_of(tags, np.array([50, 60, 40])), Window("theme", epoch - 9)
    await store.shards(window)
    await store.add(window, replace(closed, batch_reports=100))
    onward = channel(addresses[1], "aggregator", tls=None)
    streams = read_stream_table(table)
    mixer, intake = (
        Mixer(pool, streams, [onward], Policy(), stages=Stages()),
        Intake(pool, Stages()),
    )
    pressure = Backpressure(pool, max_reports=10_000_000, max_memory=1)
    devices = ShufflerService(
        Admission(streams, intake, mixer, limiter=Limiter(0, 1), pressure=pressure)
    )
    servers = [
        Server(
            addresses[0],
            {"Shuffler": devices, "Operator": OperatorService(ShownCounts(pool, dict))},
            tls=None,
            callers=None,
            largest_message_bytes=LARGEST_SUBMIT_BYTES,
            admit=devices.admit,
            trailers=devices.trailers,
        ),
        Server(
            addresses[1],
            {"Ingest": IngestService(counting)},
            tls=None,
            callers=None,
        ),
    ]
    loops = [asyncio.create_task(loop) for loop in (intake.run(), mixer.run(), mixer.heartbeat())]
    for member in servers:
        await member.start()
    key = signed.bundle.keys[0]
    sealed = [seal(b"\1", key.half("x25519"), seal_info("theme", epoch)) for _ in range(30)]
    theme = {"stream": "theme", "epoch": epoch, "key_id": key.id}
    reports = [{**theme, "sealed": sealed_report} for sealed_report in sealed]
    submits = [wire.SubmitRequest(reports=reports[:n]) for n in (1, 2, 25)]  # type: ignore[arg-type]
    batches = [
        wire.Batch(batch_id=bytes([n]) * 16, sealed=sealed[:n], **theme)  # type: ignore[arg-type]
        for n in (1, 3, 25)
    ]
    try:
        yield {
            "Shuffler/Submit": Method(addresses[0], wire.SubmitRequest, _bytes(submits)),
            "Operator/Status": Method(addresses[0], wire.StatusRequest, [b""]),
            "Ingest/Apply": Method(addresses[1], wire.Batch, _bytes(batches)),
        }
        assert not any(loop.done() for loop in loops), "a loop of a service has ended"
    finally:
        for member in servers:
            await member.stop(1)
        await end_tasks(loops)
        await onward.close()
        await server.close()
        opener.close()
        redis.stop()


def _bytes(messages: Sequence[Message]) -> list[bytes]:
    return [message.SerializeToString() for message in messages]
