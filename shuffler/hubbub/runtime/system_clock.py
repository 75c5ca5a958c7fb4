"""The clock of a loop: what time it is here, and waiting by it. A test brings one that it moves."""

import asyncio
import time
from contextlib import suppress
from typing import Protocol


class Clock(Protocol):
    """What a loop that goes on for ever reads the time from, and waits by.

    What time it surely is, where something final rests on it, is for `Clocks` to say.
    """

    def now(self) -> float:
        """Seconds since 1970, as this machine has them."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that nobody sets."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""
        ...

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for an event, for at most so many seconds: whether it is set."""
        ...


class SystemClock:
    """This machine's."""

    def now(self) -> float:
        """As the Clock protocol says."""
        return time.time()

    def monotonic(self) -> float:
        """As the Clock protocol says."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """As the Clock protocol says."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """As the Clock protocol says."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
        return event.is_set()
