"""How a crowd leaves as a whole: it is gathered, padded with dummies, cut, and then sent."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Coroutine
from functools import partial
from typing import Any, Final

from hubbub.conservation import Window
from hubbub.errors import BadParameter, StoreUnavailable
from hubbub.runtime.clocks import Clock
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.sealing.hpke import SEAL_BYTES, seal, seal_info
from hubbub.shuffler.mixing_policy import CrowdTake, Policy, fitting, shuffled
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.shards import Place, places
from hubbub.shuffler.stream_table import Stream, StreamTable

_log: Final = logging.getLogger("hubbub.shuffler")

# Dummies that are sealed without a pause: about 50 ms.
_DUMMIES_AT_ONCE: Final = 500
_RETRY_SECONDS: Final = 1.0
_LACKS_DUMMIES: Final = "its crowd waits for dummies"


class SideTasks:
    """The side tasks of one loop, which must call `check` at each turn."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    def begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Starts a side task; it must handle errors of stores and services itself."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._note_failure)
        return task

    def check(self) -> None:
        """Raises the error of a failed task, if any."""
        if self._failure is not None:
            raise self._failure

    def _note_failure(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            self._failure = self._failure or task.exception()


class Departures:
    """The crowds of one mixer.

    `beside` runs its tasks; `landed` is set whenever there is something new to look at.
    """

    def __init__(
        self,
        pool: Pool,
        table: StreamTable,
        policy: Policy,
        beside: SideTasks,
        *,
        stages: Stages,
        clock: Clock,
        landed: asyncio.Event,
    ) -> None:
        self._pool = pool
        self._crowds = pool.crowds
        self._table = table
        self._policy = policy
        self._beside = beside
        self._stages = stages
        self._clock = clock
        self._landed = landed
        self._cutting: dict[tuple[Place, bytes], asyncio.Task[None]] = {}
        self._padding: dict[Window, asyncio.Task[None]] = {}
        self._hiding: dict[Window, asyncio.Task[None]] = {}
        self._next: dict[Window, bytes] = {}
        # Windows whose numbers are drawn, with the existing and required dummies that name a value.
        self._drawn: dict[Window, int] = {}

    def use(self, table: StreamTable) -> None:
        """Replaces the stream table."""
        self._table = table

    def needs(self, window: Window, stream: Stream) -> int:
        """The number of reports and hidden dummies that a pool must hold to leave.

        The stream's minimum already includes the dummies of `noise`; those that name values are
        added here, so that at least the minimum of real reports leaves.
        """
        return stream.min_batch + self._drawn.get(window, 0)

    async def forget_all_but(self, windows: Collection[Window]) -> None:
        """Deletes staged dummies of windows that are gone, since another process's crowd left."""
        for window in self._next.keys() - {*windows, *self._padding}:
            await self._crowds.unstage(window, self._next.pop(window))
        for window in self._drawn.keys() - {*windows}:
            del self._drawn[window]

    async def look(self, window: Window, shards: int, stream: Stream, *, is_over: bool) -> bool:
        """Sets a crowd apart once it may leave, and cuts it in tasks of their own.

        Returns whether a crowd is still being gathered, so that what waits is not a remainder.

        PRIVACY: no part of a crowd is sent before all shards are set apart and each part is cut,
            and none ever joins another crowd. It waits for its dummies, which do not count to its
            minimum; where the number of reports is hidden, also for the dummies that hide it, which
            do: the minimum is larger by the most there may be of them.
        """
        if stream.is_noisy and window not in self._drawn:
            _, named_counts = await self._numbers(window, stream)
            self._drawn[window] = max(sum(named_counts), stream.expected_named)
        if stream.is_noisy and is_over and not await self._is_hidden(window, stream):
            return True
        if is_over or stream.mix == "rolling":
            await self._leave(window, shards, stream)
        pairs = [(place, await self._crowds.ids(place)) for place in places(window, shards)]
        # After those: a shard that is not being gathered now has been gathered.
        incomplete_ids = await self._crowds.ids(window, "gathering") if shards > 1 else []
        for place, ids in pairs:
            for crowd_id in ids:
                if crowd_id not in incomplete_ids and (place, crowd_id) not in self._cutting:
                    cut = partial(self._cut_crowd, place, crowd_id)
                    self._begin(self._cutting, (place, crowd_id), place, "cutting waits", cut)
        return bool(incomplete_ids)

    async def _leave(self, window: Window, shards: int, stream: Stream) -> None:
        # Levels first: a crowd that is gathered after this has no successor yet.
        levels = await self._pool.levels(window, shards)
        incomplete_ids = await self._crowds.ids(window, "gathering") if shards > 1 else []
        needs = self.needs(window, stream)
        cut_reports = self._policy.cut_reports(fitting(stream.sealed_bytes))
        crowd = CrowdTake(needs, cut_reports, stream.dummies, stream.expected_noise)
        has_enough = sum(level.reports for level in levels) >= needs
        if not incomplete_ids and has_enough and (crowd_id := await self._crowd_id(window, stream)):
            # If its state is unknown it may be cut already, so it gets no more dummies.
            self._next.pop(window, None)
            reports_left = await self._crowds.leave(
                window, crowd, levels[0], crowd_id, shards=shards
            )
            if stream.dummies and not reports_left:
                self._next[window] = crowd_id
            incomplete_ids = await self._crowds.ids(window, "gathering") if shards > 1 else []
        for crowd_id in incomplete_ids:
            await self._crowds.gather(window, crowd, levels, crowd_id)

    async def _is_hidden(self, window: Window, stream: Stream) -> bool:
        """Whether the dummies that hide the counts are in the pool; if not, a task makes them."""
        if window in self._hiding:
            return False
        if not await self._pool.hidden.move_to_pool(window, stream.sealed_bytes):
            hide = partial(self._hide, window, stream)
            self._begin(self._hiding, window, window, _LACKS_DUMMIES, hide)
            return False
        return True

    async def _hide(self, window: Window, stream: Stream) -> None:
        """Makes the dummies that hide the number of reports, and of reports that name each value.

        PRIVACY: it always makes the largest number and keeps those that were drawn: how long a
            crowd waits must not tell the number. They are kept in an order that does not tell which
            of them name a value. The stage ends before they are ordered and stored, since that
            takes longer the more there are.
        """
        hiding = stream.noise.most if stream.noise else 0
        naming = stream.value_law.most if stream.value_law else []
        number, named_counts = await self._numbers(window, stream)
        sealed: list[bytes] = []
        with self._stages.of("pad", hiding + sum(naming)):
            if hiding:
                sealed += (await self._seal(window, stream, hiding))[:number]
            for value, dummy_count in enumerate(named_counts):
                sealed += (await self._seal(window, stream, naming[value], value))[:dummy_count]
        await self._pool.hidden.keep(window, shuffled(sealed))

    async def _numbers(self, window: Window, stream: Stream) -> tuple[int, list[int]]:
        """How many dummies hide the number of reports, and how many name each value."""
        hidden, named_counts = self._pool.hidden, list[int]()
        number = await hidden.draw_number(window, stream.noise) if stream.noise else 0
        if stream.value_law:
            named_counts = await hidden.draw_by_value(window, stream.value_law)
        return number, named_counts

    async def _seal(
        self, window: Window, stream: Stream, number: int, value: int | None = None
    ) -> list[bytes]:
        return await asyncio.to_thread(sealed_dummies, self._table, window, stream, number, value)

    async def _crowd_id(self, window: Window, stream: Stream) -> bytes | None:
        """The id of the next crowd once all its dummies are staged; a task makes them."""
        if not stream.dummies:
            return secrets.token_bytes(16)
        crowd_id = self._next.setdefault(window, secrets.token_bytes(16))
        if window in self._padding:
            return None
        size = await self._crowds.stage(window, crowd_id)
        if size > stream.dummies:  # a delayed command of an abandoned connection
            del self._next[window]
            await self._crowds.unstage(window, crowd_id)
            return None
        if size < stream.dummies:
            pad = partial(self._pad, window, stream, crowd_id, size)
            self._begin(self._padding, window, window, _LACKS_DUMMIES, pad)
            return None
        return crowd_id

    async def _pad(self, window: Window, stream: Stream, crowd_id: bytes, size: int) -> None:
        """Makes the dummies that a crowd lacks, some at a time."""
        with self._stages.of("pad", stream.dummies - size):
            while size < stream.dummies:
                number = min(_DUMMIES_AT_ONCE, stream.dummies - size)
                sealed = await self._seal(window, stream, number)
                size = await self._crowds.stage(window, crowd_id, sealed)

    async def _cut_crowd(self, place: Place, crowd_id: bytes) -> None:
        with self._stages.of("cut"):
            cursor: bytes | None = b"0"
            while cursor is not None:
                cursor = await self._crowds.cut(place, crowd_id, cursor)

    def _begin(
        self,
        tasks: dict[Any, asyncio.Task[None]],
        key: Any,
        place: Place,
        failure: str,
        work: Callable[[], Awaitable[None]],
    ) -> None:
        """Starts a task, listed in `tasks` until it ends; after a failure a later look repeats it.

        `failure` is what the log then says of the window.
        """

        async def attempt() -> None:
            try:
                await work()
            except (StoreUnavailable, BadParameter) as error:
                _log.warning("%s epoch %d: %s: %s", place.stream, place.epoch, failure, error)
                await self._clock.sleep(_RETRY_SECONDS)
            finally:
                del tasks[key]
                self._landed.set()

        tasks[key] = self._beside.begin(attempt())


def sealed_dummies(
    table: StreamTable, window: Window, stream: Stream, number: int, value: int | None = None
) -> list[bytes]:
    """Makes sealed dummies for a window, indistinguishable from its reports.

    `value` is the value that they name; None draws one for each.

    PRIVACY: the draws are uniform and from the system's randomness; biased or predictable dummies
        would hide nobody.

    Raises BadParameter if the table has no public key for the window.
    """
    key = table.public_key(window)
    if key is None:
        raise BadParameter(f"{window.name}: there is no public key to seal dummies with")
    info = seal_info(window.stream, window.epoch)
    length = stream.sealed_bytes - SEAL_BYTES[stream.kem]
    values = (secrets.randbelow(stream.values) if value is None else value for _ in range(number))
    return [seal(named.to_bytes(length, "little"), key, info) for named in values]
