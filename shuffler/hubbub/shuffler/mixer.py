"""The mixer: takes random batches out of the pools and delivers each until it is acknowledged."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from typing import Final

import grpc
import grpc.aio

from hubbub.errors import StoreUnavailable
from hubbub.serving import Window
from hubbub.shuffler.batch import Mix, shuffled
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.streams import StreamTable
from hubbub.wire.v1.services_pb2 import Batch
from hubbub.wire.v1.services_pb2_grpc import IngestStub

__all__ = ["Mixer"]

_log: Final = logging.getLogger("hubbub.shuffler")

_TICK_SECONDS: Final = 0.1
_CALL_SECONDS: Final = 120.0
_LONGEST_WAIT_SECONDS: Final = 10.0
_BATCHES_AT_ONCE: Final = 3
# A batch is one message; past this, fewer reports go together (never fewer than the minimum).
_BATCH_BYTES: Final = 8 << 20
_random: Final = secrets.SystemRandom()


class Mixer:
    """Moves reports from pools to the aggregator.

    reserve: how many reports stay in an open pool, in minimum batches.
    max_batch: the most reports in a batch.
    """

    def __init__(
        self,
        pool: Pool,
        table: StreamTable,
        channel: grpc.aio.Channel,
        *,
        reserve: float,
        max_batch: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pool = pool
        self._table = table
        self._ingest = IngestStub(channel)
        self._reserve = reserve
        self._max_batch = max_batch
        self._clock = clock
        self._places = asyncio.Semaphore(_BATCHES_AT_ONCE)
        self._flying: dict[bytes, asyncio.Task[None]] = {}
        self._failing = False
        self.closed: frozenset[Window] = frozenset()

    async def run(self) -> None:
        """Mix, for ever. What a former process left in flight goes first."""
        while True:
            try:
                self.closed = await self._pool.closed()
                for window in await self._pool.windows():
                    await self._mix(window)
            except StoreUnavailable as error:
                _log.warning("mixing waits: %s", error)
                await asyncio.sleep(_LONGEST_WAIT_SECONDS * _random.random())
            await asyncio.sleep(_TICK_SECONDS)

    def is_over(self, window: Window) -> bool:
        """Whether a window takes no more reports: by the clock, or by its operator."""
        return window in self.closed or self._table.is_over(window, self._clock())

    async def _mix(self, window: Window) -> None:
        stream = self._table.streams.get(window.stream)
        key_id = None if stream is None else self._table.key_id(window)
        if stream is None or key_id is None:
            return  # gone from the table; its reports wait for a table that knows them
        for flying in await self._pool.batches(window):
            await self._launch(window, flying, key_id)
        mix = Mix(
            stream.min_batch,
            reserve=round(stream.min_batch * self._reserve),
            max_batch=max(
                stream.min_batch, min(self._max_batch, _BATCH_BYTES // stream.sealed_bytes)
            ),
        )
        over = self.is_over(window)
        while take := mix.next_take(await self._pool.pooled(window), over=over):
            batch_id = await self._pool.take(window, take)
            if batch_id is None:
                break
            await self._launch(window, batch_id, key_id)
        if over:
            withheld = await self._pool.withhold(window, stream.min_batch)
            if withheld:
                _log.info("%s epoch %d: %d reports withheld", *window, withheld)
            if not await self._pool.batches(window) and not await self._pool.pooled(window):
                await self._pool.lay_aside(window)

    async def _launch(self, window: Window, batch_id: bytes, key_id: int) -> None:
        """Deliver a batch in a task of its own, unless one is at it; few at a time."""
        if batch_id in self._flying:
            return
        await self._places.acquire()
        task = asyncio.create_task(self._deliver(window, batch_id, key_id))
        self._flying[batch_id] = task
        task.add_done_callback(lambda _: self._landed(batch_id))

    def _landed(self, batch_id: bytes) -> None:
        del self._flying[batch_id]
        self._places.release()

    async def _deliver(self, window: Window, batch_id: bytes, key_id: int) -> None:
        attempt = 0
        while True:
            try:
                # PRIVACY: a fresh order at every attempt, from the system's randomness.
                sealed = shuffled(await self._pool.batch(window, batch_id))
                if sealed:  # else it was delivered since it was listed
                    await self._ingest.Apply(
                        Batch(
                            batch_id=batch_id,
                            stream=window.stream,
                            epoch=window.epoch,
                            key_id=key_id,
                            sealed=sealed,
                        ),
                        timeout=_CALL_SECONDS,
                    )
                await self._pool.delivered(window, batch_id)
            except (grpc.aio.AioRpcError, StoreUnavailable) as error:
                attempt += 1
                self._say_failing(error)
                await asyncio.sleep(
                    _random.uniform(0, min(_LONGEST_WAIT_SECONDS, 0.1 * 2**attempt))
                )
            else:
                self._failing = False
                return

    def _say_failing(self, error: Exception) -> None:
        """Once per outage: the batches stay in flight and go out when it is over."""
        if not self._failing:
            self._failing = True
            reason = (
                f"{error.code().name}: {error.details()}"
                if isinstance(error, grpc.aio.AioRpcError)
                else str(error)
            )
            _log.warning("delivery waits, batches stay in flight: %s", reason)
