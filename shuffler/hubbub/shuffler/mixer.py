"""The mixer: takes random batches out of the pools, and delivers each until it is acknowledged.

Several processes may mix one pool: a batch is sent only by the process that took it, until that
dies.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import grpc
import grpc.aio

from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable
from hubbub.runtime.clocks import Clock, Clocks
from hubbub.runtime.monitoring.stages_and_traces import Stages, headers
from hubbub.shuffler.crowd_release import Departures, SideTasks
from hubbub.shuffler.mixing_policy import Policy, fitting, shuffled
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.shards import Place, Shard, places
from hubbub.shuffler.stream_table import Stream, StreamTable
from hubbub.wire.v1.services_pb2 import Batch
from hubbub.wire.v1.stubs_and_handlers import stub

_log: Final = logging.getLogger("hubbub.shuffler")

_TICK_SECONDS: Final = 0.1
_LIVE_SECONDS: Final = 1.0
_RESTORE_SECONDS: Final = 20.0
_CALL_SECONDS: Final = 60.0
_LONGEST_WAIT_SECONDS: Final = 10.0
# Concurrent calls over all windows; and batches of one window in flight, so that batches which
# the aggregator refuses do not block others.
_CALLS_AT_ONCE: Final = 3
_BATCHES_A_WINDOW: Final = 3
# Reports of a stream that left the table wait this long for a table that contains it.
_UNKNOWN_SECONDS: Final = 30 * 86_400
_random: Final = secrets.SystemRandom()


class Mixer:
    """Moves reports from the pools to the aggregators.

    `channels` lead to the aggregators, which share one Redis; `policy` decides when batches leave.
    `clocks` must be sure that a window is over before reports are withheld, which deletes them,
    unless an operator closed it. `counts` holds deliveries by outcome, `closed` the windows that an
    operator closed.
    """

    def __init__(
        self,
        pool: Pool,
        table: StreamTable,
        channels: Sequence[grpc.aio.Channel],
        policy: Policy,
        *,
        stages: Stages,
        clocks: Clocks | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._pool = pool
        self._table = table
        self._ingests = [stub("Ingest", channel) for channel in channels]
        self._policy = policy
        self._stages = stages
        self._clocks = clocks or Clocks()
        self._clock = clock or Clock()
        self._calls = asyncio.Semaphore(_CALLS_AT_ONCE)
        self._flying: dict[bytes, asyncio.Task[None]] = {}
        self._of_window: Counter[Window] = Counter()
        self._landed = asyncio.Event()
        self._beside = SideTasks()
        self._departures = Departures(
            pool,
            table,
            policy,
            self._beside,
            stages=stages,
            clock=self._clock,
            landed=self._landed,
        )
        self._failing = False
        self.closed: frozenset[Window] = frozenset()
        self.counts: Counter[str] = Counter()

    def use(self, table: StreamTable, channels: Sequence[grpc.aio.Channel]) -> None:
        """Replaces table and channels; deliveries under way are retried over the new ones."""
        self._table = table
        self._departures.use(table)
        self._ingests = [stub("Ingest", channel) for channel in channels]

    @property
    def under_way(self) -> int:
        """Number of batches that this process is sending."""
        return len(self._flying)

    async def run(self) -> None:
        """Mixes until cancelled; batches that an earlier process left in flight go first."""
        next_restore = 0.0
        while True:
            self._landed.clear()
            self._beside.check()
            try:
                if self._clock.monotonic() > next_restore:
                    await self._pool.restore_archived()
                    next_restore = self._clock.monotonic() + _RESTORE_SECONDS
                self.closed, windows = await self._pool.closed_and_all()
                # Shards after windows, since a writer lists shards before the window.
                await self._mix_all(windows, await self._pool.shards())
            except StoreUnavailable as error:
                _log.warning("mixing waits: %s", error)
                await self._clock.sleep(_LONGEST_WAIT_SECONDS * _random.random())
            await self._clock.wait(self._landed, _TICK_SECONDS)

    async def heartbeat(self) -> None:
        """Tells the other processes that this one is alive, until cancelled."""
        try:
            while True:
                try:
                    await self._pool.heartbeat()
                except StoreUnavailable as error:
                    _log.debug("its key that shows it alive was not renewed: %s", error)
                await self._clock.sleep(_LIVE_SECONDS)
        finally:
            with suppress(StoreUnavailable):  # then a look some seconds later finds out
                await self._pool.resign()

    def is_over(self, window: Window) -> bool:
        """Whether a window takes no more reports: by the clock, or closed by an operator."""
        return window in self.closed or self._table.is_over(window, self._clocks.earliest())

    async def _mix_all(self, windows: Sequence[Window], shards: Mapping[Window, int]) -> None:
        """Mixes each window; one that fails, as on a node that is away, stops no other."""
        failure: StoreUnavailable | None = None
        await self._departures.forget_all_but(windows)
        for window in windows:
            try:
                await self._mix(window, shards.get(window, 1))
            except StoreUnavailable as error:
                failure = error
        if failure is not None:
            raise failure

    async def _mix(self, window: Window, shards: int) -> None:
        stream = self._table.streams.get(window.stream)
        key_id = None if stream is None else self._table.key_id(window)
        if stream is None or key_id is None:
            await self._wait_for_table(window, shards)
            return
        for place in places(window, shards):
            for batch_id, owner in (await self._pool.batches(place)).items():
                self._launch(place, batch_id, owner, key_id)
        is_over = self.is_over(window)
        if stream.mix == "pool":
            await self._mix_pool(window, stream, key_id, is_over=is_over)
        elif await self._departures.look(window, shards, stream, is_over=is_over):
            return  # gathered reports still in shards are not a rest
        if is_over and not self._of_window[window]:
            if window in self.closed or self._clocks.settled:
                late = stream.is_noisy and await self._pool.hidden.has_left(window)
                fewest = float("inf") if late else self._departures.needs(window, stream)
                await self._withhold(window, fewest, shards)
            if await self._pool.is_empty(window, shards):
                self._policy.on_batch_sent(window)
                await self._pool.archive(window, shards)

    async def _mix_pool(
        self, window: Window, stream: Stream, key_id: int, *, is_over: bool
    ) -> None:
        """Takes random batches according to the policy, and sends them."""
        while self._of_window[window] < _BATCHES_A_WINDOW:
            level, fits = await self._pool.level(window), fitting(stream.sealed_bytes)
            take = self._policy.next_take(
                window, level.reports, stream.min_batch, fits, is_over=is_over
            )
            if take is None or not (take.at_once or self._policy.should_send(_TICK_SECONDS)):
                break
            batch = await self._pool.take(window, take, level)
            if batch is None:
                break
            self._policy.on_batch_sent(window)
            self._launch(window, batch, None, key_id)

    async def _wait_for_table(self, window: Window, shards: int) -> None:
        """Keeps a window that the table does not know, for 30 days; then withholds it."""
        since = await self._pool.unknown_since(window, self._clocks.latest())
        if not self._clocks.settled or self._clocks.earliest() - since < _UNKNOWN_SECONDS:
            return
        await self._withhold(window, float("inf"), shards, "unknown for long, ")
        if await self._pool.is_empty(window, shards):
            await self._pool.archive(window, shards)

    async def _withhold(self, window: Window, fewest: float, shards: int, reason: str = "") -> None:
        """Withholds a pool with too few reports, and logs it.

        PRIVACY: the log has no number where the number is hidden: late reports are without noise.
        """
        if withheld := await self._pool.withhold(window, fewest, shards):
            level = logging.WARNING if reason else logging.INFO
            number = "" if await self._pool.hidden.windows([window]) else f"{withheld} "
            _log.log(level, "%s epoch %d: %s%sreports withheld", *window, reason, number)

    def _launch(self, place: Place, batch_id: bytes, owner: bytes | None, key_id: int) -> None:
        """Delivers a batch in a task of its own, unless one is under way."""
        if batch_id in self._flying:
            return

        window = place.window if isinstance(place, Shard) else place

        def landed(_task: asyncio.Task[None]) -> None:
            del self._flying[batch_id]
            self._of_window[window] -= 1
            self._landed.set()

        self._of_window[window] += 1
        task = self._beside.begin(self._deliver(place, batch_id, owner, key_id))
        self._flying[batch_id] = task
        task.add_done_callback(landed)

    async def _deliver(
        self, place: Place, batch_id: bytes, owner: bytes | None, key_id: int
    ) -> None:
        first = _random.randrange(len(self._ingests))  # not all processes at the same aggregator
        failures = 0
        while True:
            try:
                async with self._calls:
                    # PRIVACY: a fresh order at every attempt, from the system's randomness.
                    sealed = shuffled(await self._pool.claim(place, batch_id, owner))
                    if not sealed:  # delivered since it was listed, or another process has it now
                        return
                    batch = Batch(
                        batch_id=batch_id,
                        stream=place.stream,
                        epoch=place.epoch,
                        key_id=key_id,
                        sealed=sealed,
                        dummies=await self._pool.share(place, batch_id),
                    )
                    ingest = self._ingests[(first + failures) % len(self._ingests)]
                    with self._stages.of("deliver", len(sealed)):
                        _check(await ingest.Apply(batch, timeout=_CALL_SECONDS, metadata=headers()))
                    await self._pool.delivered(place, batch_id)
                    self._stages.batch(len(sealed))
            except (grpc.aio.AioRpcError, StoreUnavailable) as error:
                failures += 1
                self.counts["delivery_failed"] += 1
                if not self._failing:  # once per outage; until its end batches stay in flight
                    self._failing = True
                    reason = str(error)
                    if isinstance(error, grpc.aio.AioRpcError):
                        reason = f"{error.code().name}: {error.details()}"
                    _log.warning("delivery waits, batches stay in flight: %s", reason)
                longest = min(_LONGEST_WAIT_SECONDS, 0.1 * 2.0 ** min(failures, 20))
                await self._clock.sleep(_random.uniform(0, longest))
            else:
                self._failing = False
                self.counts["delivered"] += 1
                return


def _check(answer: object) -> None:
    """Raises the error that gRPC should raise for an unreadable answer, where it returns None."""
    if answer is None:
        none = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(
            grpc.StatusCode.INTERNAL,
            none,
            none,
            "the aggregator's answer cannot be read; run the same version of hubbub on both",
        )
