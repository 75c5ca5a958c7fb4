"""The clock by which a loop tells the time and waits; a test supplies its own."""

import asyncio
import time
from contextlib import suppress
from typing import Protocol


class Clock(Protocol):
    """The time, and waiting, for an endless loop.

    Where something irreversible depends on the time, `Clocks` bounds it instead.
    """

    def now(self) -> float:
        """Seconds since 1970 by this machine's clock."""

    def monotonic(self) -> float:
        """Seconds of a clock that cannot be set."""

    async def sleep(self, seconds: float) -> None:
        """Waits for `seconds`."""

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Waits for an event, at most for `seconds`; returns whether it is set."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        """As the Clock protocol defines."""
        return time.time()

    def monotonic(self) -> float:
        """As the Clock protocol defines."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """As the Clock protocol defines."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """As the Clock protocol defines."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
        return event.is_set()
