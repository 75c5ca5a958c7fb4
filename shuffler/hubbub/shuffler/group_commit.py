"""Writes many submissions to Redis at once; each is answered when its reports are durable."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from hubbub.conservation import Window
from hubbub.errors import StoreFull, StoreUnavailable
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.token_checks import Paid

_log: Final = logging.getLogger("hubbub.shuffler")

# A device waits this much longer for its answer, and Redis gets far fewer requests.
_GATHER_SECONDS: Final = 0.005
# And this much while several arrive at once: a request to Redis costs as much as a report.
_GATHER_MORE_SECONDS: Final = 0.02
# Reports that may wait in memory while Redis is slow.
_MAX_WAITING: Final = 100_000

Reports = Mapping[Window, Sequence[bytes | Paid]]


class Intake:
    """Group commit: submissions that arrive during one write are written together in the next.

    `waiting` counts reports that are not in Redis yet, and so not acknowledged.
    """

    def __init__(self, pool: Pool, stages: Stages) -> None:
        self._pool = pool
        self._stages = stages
        self._arrived: list[
            tuple[Reports, Collection[Window], asyncio.Future[frozenset[Paid]]]
        ] = []
        self._wake = asyncio.Event()
        self._is_failing = False
        self.waiting = 0

    async def add(self, reports: Reports, whole: Collection[Window] = ()) -> frozenset[Paid]:
        """Adds reports to their pools durably; returns those whose token was spent before.

        `whole` are the windows whose pool may be in shards.

        Raises:
            StoreFull: none was added: Redis is full, or too many reports wait for it.
            StoreUnavailable: it is unknown whether they were added.
        """
        number = sum(map(len, reports.values()))
        if self.waiting + number > _MAX_WAITING:
            raise StoreFull(f"{self.waiting} reports wait for Redis; it is slow or unreachable")
        done: asyncio.Future[frozenset[Paid]] = asyncio.get_running_loop().create_future()
        self._arrived.append((reports, whole, done))
        self.waiting += number
        self._wake.set()
        return await done

    async def run(self) -> None:
        """Writes, until cancelled."""
        seconds = _GATHER_SECONDS
        while True:
            await self._wake.wait()
            await asyncio.sleep(seconds)
            self._wake.clear()
            arrived, self._arrived = self._arrived, []
            seconds = _GATHER_MORE_SECONDS if len(arrived) > 1 else _GATHER_SECONDS
            by_window: dict[Window, list[bytes | Paid]] = defaultdict(list)
            for reports, _, _ in arrived:
                for window, sealed in reports.items():
                    by_window[window] += sealed
            spread = {window for _, whole, _ in arrived for window in whole}
            failure: StoreUnavailable | None = None
            spent_tokens: frozenset[Paid] = frozenset()
            try:
                with self._stages.timed("add"):
                    spent_tokens = await self._pool.add(by_window, spread)
            except StoreUnavailable as error:
                failure = error
            if failure and not self._is_failing:
                _log.warning("no reports are accepted: %s", failure)
            elif self._is_failing and not failure:
                _log.info("reports are accepted again")
            self._is_failing = failure is not None
            self.waiting -= sum(map(len, by_window.values()))
            for _, _, done in arrived:
                if done.done():  # the caller has disconnected
                    continue
                if failure is None:
                    done.set_result(spent_tokens)
                else:
                    done.set_exception(failure)
