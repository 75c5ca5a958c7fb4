"""Answers that no honest service gives, over real gRPC: what they may not do."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import grpc.aio

from hubbub.client import Outcome, transport_to
from hubbub.client.testing import FakeClock as DeviceClock
from hubbub.conservation import Window
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.process import end_tasks
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.rpc.server import channel
from hubbub.sealing.hpke import seal, seal_info
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import read_stream_table
from hubbub.wire.v1.services_pb2 import Refusal, SubmitResponse
from tests.conftest import CatalogFiles
from tests.support.bundles import DAY
from tests.support.clocks import FakeClock
from tests.support.devices import idle_client
from tests.support.moment import now
from tests.support.waiting import HANG_SECONDS

APPLY = "/hubbub.wire.v1.Ingest/Apply"
SUBMIT = "/hubbub.wire.v1.Shuffler/Submit"
ANSWERS = 90
FLUSH_SECONDS = 5.0  # of a clock that does not wait
# The one status that may say that these bytes can never be taken.
FINAL = grpc.StatusCode.INVALID_ARGUMENT


class Garbled(grpc.GenericRpcHandler):  # type: ignore[misc,unused-ignore]
    """Answers OK with bytes that are no message, so often; then as it should.

    in_flight: how many reports the pool had in flight when each call came.
    """

    def __init__(self, often: int, look: Callable[[], Awaitable[int]]) -> None:
        self.failures_left = often
        self.look = look
        self.in_flight: list[int] = []

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        assert details.method == APPLY
        return grpc.unary_unary_rpc_method_handler(self._answer)

    async def _answer(self, _request: bytes, _context: Any) -> bytes:
        self.in_flight.append(await self.look())
        self.failures_left -= 1
        return b"\xff\xff\xff" if self.failures_left >= 0 else b""


async def test_a_batch_stays_in_flight_until_an_answer_can_be_read(
    catalog_files: CatalogFiles, redis_url: str
) -> None:
    async def in_flight() -> int:
        return (await pool.report_counts())[window]["in_flight"]

    garbled, server = Garbled(3, in_flight), grpc.aio.server()
    server.add_generic_rpc_handlers((garbled,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    redis = await connect_redis(redis_url)
    await redis.client.flushdb()
    pool, table = Pool(redis), read_stream_table(catalog_files.streams)
    onward = channel(f"127.0.0.1:{port}", "aggregator", tls=None)
    clock = FakeClock()
    mixer = Mixer(pool, table, [onward], Policy(), stages=Stages(), clock=clock)
    window = Window("theme", int(now()) // DAY)
    info, key = seal_info(*window), catalog_files.bundle.keys[0].half("x25519")
    await pool.add({window: [seal(b"\1", key, info) for _ in range(40)]})
    await pool.heartbeat()
    loops = [asyncio.create_task(mixer.run())]
    async with asyncio.timeout(HANG_SECONDS):
        while garbled.failures_left >= 0 or await in_flight():
            clock.advance(1)
            await clock.settle(*loops)
    for _ in range(5):
        clock.advance(30)
        await clock.settle(*loops)
    assert 0 not in garbled.in_flight, "it was over before an answer could be read"
    assert len(garbled.in_flight) == 4, "it was sent until an answer could be read, and no more"
    await end_tasks(loops)
    await onward.close()
    await server.stop(0)
    await redis.close()


class Odd(grpc.GenericRpcHandler):  # type: ignore[misc,unused-ignore]
    """Answers a Submit with what it is told: a status, bytes, and a hint."""

    def __init__(self) -> None:
        self.trailing_status = grpc.StatusCode.OK, b"", ""
        self.request_count = 0

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        assert details.method == SUBMIT
        return grpc.unary_unary_rpc_method_handler(self._answer)

    def _answer(self, _request: bytes, context: Any) -> bytes:
        self.request_count += 1
        code, answer, hint = self.trailing_status
        if hint:
            context.set_trailing_metadata([("grpc-retry-pushback-ms", hint)])
        if code is not grpc.StatusCode.OK:
            context.abort(code, "as told")
        return answer


def test_a_device_survives_every_answer_over_the_network(catalog_files: CatalogFiles) -> None:
    """The same as the fuzzing tries without a wire: here gRPC itself hands the answers over."""
    chance = random.Random(7)
    odd, server = Odd(), grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((odd,))
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    client = idle_client(
        catalog_files.bundle,
        transport=transport_to(address, roots=None, insecure=True),
        clock=DeviceClock(),
    )
    reasons = [*range(8), 77, 1 << 30]
    for _ in range(ANSWERS):
        index = chance.choice((0, 0, 1, 9, (1 << 32) - 1))
        refusal = Refusal(index=index, reason=chance.choice(reasons))
        answers = (b"", b"\xff\xff", b"\x0a\x05", SubmitResponse(refused=[refusal] * 2))
        answer = chance.choice(answers)
        raw = answer if isinstance(answer, bytes) else answer.SerializeToString()
        code = chance.choice([grpc.StatusCode.OK, *grpc.StatusCode])
        odd.trailing_status = code, raw, chance.choice(("", "1", "-1", "9" * 30, "9" * 5000, "x"))
        if client.report("homepage", "a.example") is not Outcome.QUEUED:
            break
        request_count, before = odd.request_count, (client.waiting, client.dropped)
        client.flush(FLUSH_SECONDS)
        unread = code is grpc.StatusCode.OK and raw in {b"\xff\xff", b"\x0a\x05"}
        if odd.request_count > request_count and (
            unread or code not in {grpc.StatusCode.OK, FINAL}
        ):
            assert (client.waiting, client.dropped) == before, (code, raw)
    assert odd.request_count > 10
    fates = [payload.fate for payload in client.ledger().payloads]
    assert fates.count("waiting") == client.waiting
    assert len(fates) == fates.count("waiting") + fates.count("sent") + sum(client.dropped.values())
    client.disable()
    client.close()
    server.stop(0).wait()
