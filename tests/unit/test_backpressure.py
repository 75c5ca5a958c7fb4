"""Backpressure by a clock that the test moves: how often it looks, and how long devices wait."""

import asyncio
from typing import Any

from hubbub.errors import StoreUnavailable
from hubbub.runtime.process import end_tasks
from hubbub.shuffler.admission import Backpressure
from tests.support.clocks import FakeClock


class Full:
    """A pool that holds what it is told, or is away."""

    def __init__(self) -> None:
        self.looks = 0
        self.reports = 0
        self.away = False
        self.server = self

    async def held_of_streams(self) -> dict[str, int]:
        self.looks += 1
        if self.away:
            raise StoreUnavailable("as told")
        return {"theme": self.reports}

    async def room(self, _part: float) -> tuple[float, float]:
        return 0.0, float("inf")


async def test_backpressure_is_read_four_times_a_second_and_survives_a_redis_outage() -> None:
    pool, clock = Full(), FakeClock()
    untyped: Any = pool
    pressure = Backpressure(untyped, max_reports=10, max_memory=1.0, clock=clock)
    loop = asyncio.create_task(pressure.run())
    await clock.settle(loop)
    assert pool.looks == 1
    clock.advance(0.24)
    await clock.settle(loop)
    assert pool.looks == 1, "not before its time"
    pool.away = True
    clock.advance(0.01)
    await clock.settle(loop)
    assert (pool.looks, pressure.wait_seconds) == (2, 0.0)
    pool.away, pool.reports = False, 10
    waits = []
    for _ in range(480):
        clock.advance(0.25)
        await clock.settle(loop)
        waits.append(pressure.wait_seconds)
    assert waits[:3] == [1.125, 1.25, 1.375], "longer for every second without room"
    assert waits == sorted(waits)
    assert waits[-1] == 60.0, "but not for ever"
    pool.reports = 9
    clock.advance(0.25)
    await clock.settle(loop)
    assert pressure.wait_seconds == 0.0
    await end_tasks([loop])
