"""The client's clock: what time it is, and waiting by it."""

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol


class Clock(Protocol):
    """What a client tells the time and waits by; `hubbub.client.testing.FakeClock` is one."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that nobody sets."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let so many seconds pass, in the caller's own thread."""
        ...

    def wait(self, event: threading.Event, seconds: float | None) -> bool:
        """Wait for an event, for at most so many seconds if any are said: whether it is set."""
        ...


class SystemClock:
    """This device's.

    Args:
        tells: another time of day, for who replays the past; waits take as long as ever.
    """

    def __init__(self, tells: Callable[[], float] = time.time) -> None:
        self.now = tells
        """As the Clock protocol says."""

    def monotonic(self) -> float:
        """As the Clock protocol says."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """As the Clock protocol says."""
        time.sleep(seconds)

    def wait(self, event: threading.Event, seconds: float | None) -> bool:
        """As the Clock protocol says."""
        return event.wait(seconds)


SYSTEM_CLOCK: Final[Clock] = SystemClock()
"""It holds nothing that could differ between two clients."""
