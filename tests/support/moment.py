"""The time of a test: it goes on as ever, but not from one epoch into the next.

With an hour there may end a day, a week and a year. What reports or counts in this process asks
`now`, which stands still at the end of the hour in which the test began. Programs that a test
starts have the machine's clock: who starts them is `far_from_midnight`, which LocalRun is by itself
(tests/conftest.py).
"""

import time
from typing import Final

HOUR: Final = 3600
DAY: Final = 86_400


class Moment:
    """A clock that stops where an epoch ends; `begin` lets it go on."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Another test begins."""
        self._last = (time.time() // HOUR + 1) * HOUR - 0.001

    def __call__(self) -> float:
        return min(time.time(), self._last)


now: Final = Moment()


def today() -> int:
    """The number of the day, as of an epoch."""
    return int(now()) // DAY


def far_from_midnight(minutes: float = 10) -> None:
    """Wait for the day's end if it is nearer than that: what starts now is over before it."""
    remaining = DAY - time.time() % DAY
    if remaining < 60 * minutes:
        time.sleep(remaining + 1)
    now.begin()
