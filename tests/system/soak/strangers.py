"""Strangers, in processes of their own, told as JSON where everything is: strangers.py JSON.

At the end a line of JSON: what they met with, and how often.
"""

import asyncio
import json
import random
import ssl
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hubbub.wire.v1.services_pb2 import SubmitRequest, SubmitResponse
from hubbub.wire.v1.stubs_and_handlers import stub
from tests.support.waiting import HANG_SECONDS
from tests.system.soak.relay import Relay

SLOW = 500
OPEN = 300
FLOODING = 32  # calls at once, of so many reports each, over some connections
FLOODS = 4
REPORTS = 50
# Who is shown out comes back after so long, so that none of this is a loop without a rest.
BACK_SECONDS = 1.0
SUBMIT = "/hubbub.wire.v1.Shuffler/Submit"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\0\0\0\4\0\0\0\0\0"
HALF_HEADERS = b"\0\x20\0\1\0\0\0\0\1\x82"


@dataclass
class Scene:
    """Where everything is, how long it goes on, and what was met with."""

    device_port: int
    page_port: int
    until: float
    chance: random.Random
    met: Counter[str] = field(default_factory=Counter)

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self.until


async def slow(scene: Scene, number: int) -> None:
    """A connection that drips, opened again whenever it is ended."""
    kinds = (
        ("hello", scene.device_port, None, b"\x16\3\1\2\0\1\0\1\xfc\3\3"),
        ("preface", scene.device_port, ["h2"], PREFACE[:9]),
        ("headers", scene.device_port, ["h2"], PREFACE + SETTINGS + HALF_HEADERS),
        ("head", scene.page_port, None, b"GET /v1/metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "),
        (
            "body",
            scene.page_port,
            None,
            b"POST /v1/releases HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999\r\n\r\n{",
        ),
    )
    name, port, protocols, first = kinds[number % len(kinds)]
    source = f"127.0.2.{number % 50 + 1}"
    while scene.goes_on:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(max(0.1, scene.until - time.monotonic())):
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", port, local_addr=(source, 0), ssl=_trusting(protocols)
                )
                scene.met[f"slow {name}: opened"] += 1
                try:
                    await _drip(scene, reader, writer, first)
                    scene.met[f"slow {name}: ended by the service"] += 1
                finally:
                    writer.close()
        await asyncio.sleep(BACK_SECONDS)


async def _drip(
    scene: Scene, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes
) -> None:
    """Byte by byte, until the other side has enough of it."""
    ended = asyncio.create_task(_read_all(reader))
    try:
        for byte in first:
            writer.write(bytes([byte]))
            if (await asyncio.wait([ended], timeout=scene.chance.uniform(0, 0.2)))[0]:
                return
        while scene.goes_on:
            writer.write(b"a")
            if (await asyncio.wait([ended], timeout=scene.chance.uniform(0.5, 3)))[0]:
                return
    finally:
        ended.cancel()


async def _read_all(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(4096):
            pass


async def hold_open(scene: Scene, number: int, channel: grpc.aio.Channel) -> None:
    """A call that asks nothing: a Submit whose body never comes, or a Watch of health."""
    while scene.goes_on:
        largest = max(0.1, scene.until - time.monotonic())
        call: grpc.aio.Call
        kind = "submit" if number % 2 else "watch"
        if number % 2:
            call = channel.stream_unary(
                SUBMIT, SubmitRequest.SerializeToString, SubmitResponse.FromString
            )(_nothing(largest), timeout=largest)
        else:
            watch = health_pb2_grpc.HealthStub(channel).Watch
            call = watch(health_pb2.HealthCheckRequest(), timeout=largest)
        code = await call.code()
        scene.met[f"open {kind}: {code.name}"] += 1
        await asyncio.sleep(BACK_SECONDS)


async def _nothing(seconds: float) -> AsyncIterator[SubmitRequest]:
    await asyncio.sleep(seconds + 1)
    yield SubmitRequest()


async def flood(
    scene: Scene, channel: grpc.aio.Channel, reports: Callable[[], SubmitRequest]
) -> None:
    """One call after the other."""
    shuffler = stub("Shuffler", channel)
    while scene.goes_on:
        try:
            answer = await shuffler.Submit(reports(), timeout=HANG_SECONDS)
            scene.met["flood: OK"] += 1
            scene.met["flood: reports taken"] += REPORTS - len(answer.refused)
        except grpc.aio.AioRpcError as error:
            scene.met[f"flood: {error.code().name}"] += 1
            await asyncio.sleep(0.05)


def _trusting(protocols: list[str] | None) -> ssl.SSLContext | None:
    if protocols is None:
        return None
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(protocols)
    return context


async def run(scene: Scene, part: str, roots: bytes, reports: Callable[[], SubmitRequest]) -> None:
    """A part of them, until the end: "quiet" or "loud"."""
    sources = [f"127.0.3.{number + 1}" for number in range(3)] if part == "quiet" else ["127.0.4.1"]
    relays = [Relay(scene.device_port, source) for source in sources]
    addresses = [await relay.start() for relay in relays]
    credentials = grpc.ssl_channel_credentials(roots)
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    channels = [
        grpc.aio.secure_channel(addresses[number % len(addresses)], credentials, options)
        for number in range(12 if part == "quiet" else FLOODS)
    ]
    parts: list[Awaitable[None]]
    if part == "quiet":
        parts = [slow(scene, number) for number in range(SLOW)]
        parts += [hold_open(scene, number, channels[number % 12]) for number in range(OPEN)]
    else:
        parts = [flood(scene, channels[number % FLOODS], reports) for number in range(FLOODING)]
    await asyncio.gather(*parts)
    for channel in channels:
        await channel.close()
    for relay in relays:
        await relay.stop()


def main() -> None:
    document = json.loads(sys.argv[1])
    chance = random.Random(document["seed"])
    until = time.monotonic() + document["seconds"]
    scene = Scene(document["device_port"], document["page_port"], until, chance)
    common = {name: document[name] for name in ("stream", "epoch", "key_id")}

    def reports() -> SubmitRequest:
        """As long as honest ones, and new each time."""
        sealed = (chance.randbytes(document["sealed_bytes"]) for _ in range(REPORTS))
        return SubmitRequest(
            reports=[{**common, "sealed": one_sealed} for one_sealed in sealed]  # type: ignore[misc]
        )

    asyncio.run(run(scene, document["part"], document["roots"].encode(), reports))
    print(json.dumps(dict(sorted(scene.met.items()))))


if __name__ == "__main__":
    main()
