"""Answers that no honest service gives, over real gRPC: what they may not do."""

import asyncio
import time
from typing import Any

import grpc
import grpc.aio

from hubbub.catalog import seal, seal_info
from hubbub.serving import Stages, Window, channel, connect_redis
from hubbub.serving.process import end_tasks
from hubbub.shuffler.batch import Policy
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.streams import read_stream_table
from tests.conftest import Made
from tests.unit.bundles import DAY

APPLY = "/hubbub.wire.v1.Ingest/Apply"
PATIENCE_SECONDS = 60


class Garbled(grpc.GenericRpcHandler):  # type: ignore[misc,unused-ignore]
    """Answers OK with bytes that are no message, so often; then as it should."""

    def __init__(self, often: int) -> None:
        self.left = often
        self.asked = 0

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        assert details.method == APPLY
        return grpc.unary_unary_rpc_method_handler(self._answer)

    async def _answer(self, _request: bytes, _context: Any) -> bytes:
        self.asked += 1
        self.left -= 1
        return b"\xff\xff\xff" if self.left >= 0 else b""


def test_a_batch_stays_in_flight_until_an_answer_can_be_read(made: Made, redis_url: str) -> None:
    async def scenario() -> None:
        garbled, server = Garbled(3), grpc.aio.server()
        server.add_generic_rpc_handlers((garbled,))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        redis = await connect_redis(redis_url)
        await redis.client.flushdb()
        pool, table = Pool(redis), read_stream_table(made.streams)
        onward = channel(f"127.0.0.1:{port}", tls=None)
        mixer = Mixer(pool, table, [onward], Policy(), stages=Stages())
        window = Window("theme", int(time.time()) // DAY)
        info, key = seal_info(*window), made.bundle.keys[0].key
        await pool.add({window: [seal(b"\1", key, info) for _ in range(40)]})
        await pool.live()
        loops = [asyncio.create_task(mixer.run())]
        seen = 0
        async with asyncio.timeout(PATIENCE_SECONDS):
            while garbled.left >= 0 or (await pool.law())[window]["in_flight"]:
                terms = (await pool.law())[window]
                if garbled.left > 0:  # another garbled answer is to come: nothing is over
                    seen += terms["in_flight"] > 0
                await asyncio.sleep(0.01)
        assert seen, "the batch was over before an answer could be read"
        assert garbled.asked == 4, "it was sent until an answer could be read, and no more"
        await end_tasks(loops)
        await onward.close()
        await server.stop(0)
        await redis.close()

    asyncio.run(scenario())
