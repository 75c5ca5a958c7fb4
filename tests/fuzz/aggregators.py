"""Answers of a hostile aggregator to the shuffler: a batch is over once it was acknowledged, only.

The mixer is the shipping one, over pools in memory; its calls are answered as gRPC would hand the
answers over.
"""

import asyncio
import atexit
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from unittest import mock

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from hubbub.conservation import Window
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.shuffler import mixer
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.stream_table import Stream, StreamTable
from hubbub.wire.v1.services_pb2 import BatchOutcome
from tests.fuzz.documents import answers_in, other_answers
from tests.fuzz.mutate import mutated
from tests.fuzz.shufflers import VALUES
from tests.fuzz.target import Target

WINDOW = Window("theme", 20_000)
BATCH = b"b" * 16
SEALED = [b"1", b"2", b"3"]
SECONDS = 20.0


class Pools:
    """Holds one batch, until it is delivered; and no crowds."""

    crowds = None

    def __init__(self) -> None:
        self.delivered_after: list[int] = []
        self.requests = 0

    async def claim(self, _window: Window, _batch: bytes, _owner: bytes | None) -> list[bytes]:
        return [] if self.delivered_after else list(SEALED)

    async def share(self, _window: Window, _batch: bytes) -> int:
        return 0

    async def delivered(self, _window: Window, _batch: bytes) -> None:
        self.delivered_after.append(self.requests)


class Aggregator:
    """A channel whose calls are answered in turn: a status, a message, and what came with it."""

    def __init__(self, answers: Sequence[bytes], pools: Pools) -> None:
        self._answers = list(answers)
        self._pools = pools
        self.good: list[int] = []

    def unary_unary(self, _method: str, _serialize: Any, deserialize: Any) -> Any:
        async def call(_request: Any, **_: Any) -> Any:
            await asyncio.sleep(0)
            self._pools.requests += 1
            codes = list(grpc.StatusCode)
            data = self._answers.pop(0) if self._answers else b"\0"
            code = codes[data[0] % len(codes)] if data else grpc.StatusCode.OK
            if code is not grpc.StatusCode.OK:
                pushback = VALUES[data[-1] % len(VALUES)]
                trailing = grpc.aio.Metadata(("grpc-retry-pushback-ms", pushback))
                raise grpc.aio.AioRpcError(
                    code, grpc.aio.Metadata(), trailing, "\x1b[2J" + pushback
                )
            with suppress(DecodeError):
                message = deserialize(data[1:])
                self.good.append(self._pools.requests)
                return message
            return None  # as gRPC has it: what cannot be read is logged, and is None

        return call


def aggregators() -> Mapping[str, Target]:
    """Targets by name."""
    seconds = 86_400
    table = StreamTable(
        {
            "theme": Stream(
                sealed_bytes=1, min_batch=20, epoch_seconds=seconds, grace_seconds=seconds
            )
        },
        (),
    )
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)

    async def deliver(answers: Sequence[bytes]) -> None:
        pools: Any = Pools()
        aggregator: Any = Aggregator(answers, pools)
        mixing = Mixer(pools, table, [aggregator], Policy(), stages=Stages())
        mixing._launch(WINDOW, BATCH, None, 1)
        async with asyncio.timeout(SECONDS):
            for task in list(mixing._flying.values()):
                await task
        assert len(pools.delivered_after) == 1, "a batch is neither over nor in flight"
        assert pools.delivered_after == aggregator.good[:1], "a batch was over before it was taken"
        assert mixing.under_way == 0
        assert not mixing._of_window[WINDOW]

    def answered(data: bytes) -> None:
        """data: a list of answers in hex, as JSON."""
        with mock.patch.object(mixer, "_LONGEST_WAIT_SECONDS", 0.0):
            loop.run_until_complete(deliver(answers_in(data)))

    good = BatchOutcome(already_applied=True).SerializeToString()
    examples = [[b"\x0e\1", b"\0" + good], [b"\1\2", b"\5\3", b"\0"], [b"\0\x0a", b"\0" + good]]
    return {
        "answers_apply": Target(
            [json.dumps([answer.hex() for answer in several]).encode() for several in examples],
            answered,
            partial(other_answers, mutate=mutated),
        )
    }
