"""The clock by which a loop tells the time and waits; a test supplies its own."""

import asyncio
import time
from contextlib import suppress


class Clock:
    """The clock of this machine, for an endless loop.

    Where something irreversible depends on the time, `Clocks` bounds it instead.
    """

    def monotonic(self) -> float:
        """Seconds of a clock that cannot be set."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Waits for `seconds`."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Waits for an event, at most for `seconds`; returns whether it is set."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
        return event.is_set()
