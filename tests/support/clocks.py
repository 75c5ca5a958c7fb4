"""Clocks that a test moves: one for loops that are given it, and a loop with its own timers."""

import asyncio
from typing import Any, NamedTuple

from hubbub.runtime.clocks import Clock
from tests.support.waiting import HANG_SECONDS


class _Waiter(NamedTuple):
    due: float
    event: asyncio.Event
    moved: asyncio.Event


class FakeClock(Clock):
    """Stands still until it is moved: a task that sleeps or waits by it stays there."""

    def __init__(self, now: float = 1.7e9) -> None:
        self._now = now
        self._passed = 1000.0
        self._waiters: dict[object, _Waiter] = {}
        self._parked = asyncio.Event()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._passed

    async def sleep(self, seconds: float) -> None:
        await self.wait(asyncio.Event(), seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        waiter = _Waiter(self._passed + seconds, event, asyncio.Event())
        task = asyncio.current_task()
        self._waiters[task] = waiter
        self._parked.set()
        ends = [asyncio.create_task(signal.wait()) for signal in (event, waiter.moved)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            del self._waiters[task]
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """So much time passes at once."""
        self._now += seconds
        self._passed += seconds
        for waiter in self._waiters.values():
            if waiter.due <= self._passed:
                waiter.moved.set()

    async def settle(self, *tasks: "asyncio.Task[Any]") -> None:
        """Until each of these has done what it does at this moment, and waits for a later one."""
        async with asyncio.timeout(HANG_SECONDS):
            while not all(map(self._is_parked, tasks)):
                self._parked.clear()
                await self._parked.wait()

    def _is_parked(self, task: object) -> bool:
        waiter = self._waiters.get(task)
        return waiter is not None and not waiter.event.is_set() and waiter.due > self._passed


class MovedLoop(asyncio.SelectorEventLoop):
    """Its own time is the machine's, and what a test lets pass."""

    _passed = 0.0

    def time(self) -> float:
        return super().time() + self._passed

    def advance(self, seconds: float) -> None:
        self._passed += seconds


async def pass_time(seconds: float) -> None:
    """Let so much pass: every timer of the loop that is due has been called once this returns."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MovedLoop)
    loop.advance(seconds)
    for _ in range(3):  # one turn finds what is due, and one calls it
        await asyncio.sleep(0)
