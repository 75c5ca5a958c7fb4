"""The client's clock: returns times, and waits."""

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol


class Clock(Protocol):
    """The clock of a client; `hubbub.client.testing.FakeClock` is another one."""

    def now(self) -> float:
        """Returns seconds since 1970."""

    def monotonic(self) -> float:
        """Returns seconds of a clock that cannot be set."""

    def sleep(self, seconds: float) -> None:
        """Blocks the calling thread for `seconds`."""

    def wait(self, event: threading.Event, seconds: float | None) -> bool:
        """Waits for an event, at most for `seconds` (None: no limit); returns whether it is set."""


class SystemClock:
    """The clock of this device; replays of the past give `tells`, and waits take real time."""

    def __init__(self, tells: Callable[[], float] = time.time) -> None:
        self.now = tells

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def wait(self, event: threading.Event, seconds: float | None) -> bool:
        return event.wait(seconds)


SYSTEM_CLOCK: Final[Clock] = SystemClock()
"""It holds nothing that could differ between two clients."""
