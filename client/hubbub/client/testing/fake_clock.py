"""FakeClock: a clock that only the test moves."""

import threading
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.fields.rules import is_number

# Interval for checking an event, which may be set without the clock, in seconds.
_LOOK_SECONDS: Final = 0.002


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    due: float | None
    event: threading.Event


class FakeClock:
    """A clock that stands still until a test moves it.

    A sleep moves it and returns at once. A wait (the client's background thread) ends when its
    event occurs, or when the test has moved the clock far enough.

    Call the client's `flush()` before you move it past an epoch: report() dates an event, but the
    background thread makes its report, which may then be too late for the epoch.

    Args:
        now: start, in seconds since 1970 or as a datetime with a time zone; the current time by
            default.

    Raises:
        BadParameter: `now` is neither.
    """

    def __init__(self, now: float | datetime | None = None) -> None:
        self._now = time.time() if now is None else _seconds(now)
        self._passed = 1000.0
        self._changed = threading.Condition()
        self._waiters: list[_Waiter] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._passed

    def sleep(self, seconds: float) -> None:
        """As the Clock protocol defines; moves the clock and returns at once."""
        self.advance(max(0.0, seconds))

    def wait(self, event: threading.Event, seconds: float | None) -> bool:
        waiter = _Waiter(None if seconds is None else self._passed + seconds, event)
        with self._changed:
            self._waiters.append(waiter)
            self._changed.notify_all()
            while self._still_waits(waiter):
                self._changed.wait(_LOOK_SECONDS)
            self._waiters.remove(waiter)
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """Moves the clock by `seconds`."""
        with self._changed:
            self._now += seconds
            self._passed += seconds
            self._changed.notify_all()

    def set(self, now: float | datetime) -> None:
        """Sets the time of day, as a person may do; monotonic time does not change."""
        self._now = _seconds(now)

    def settle(self, threads: int = 1) -> None:
        """Waits until `threads` threads have done all their work and wait for a later time.

        After that nothing happens until the clock moves or the app reports something.
        """
        with self._changed:
            while sum(map(self._still_waits, self._waiters)) < threads:
                self._changed.wait(_LOOK_SECONDS)

    def _still_waits(self, waiter: _Waiter) -> bool:
        late = waiter.due is not None and waiter.due <= self._passed
        return not late and not waiter.event.is_set()


def _seconds(now: Any) -> float:
    if isinstance(now, datetime) and now.tzinfo is not None:
        return now.timestamp()
    if not is_number(now):
        raise BadParameter(
            f"now is {type(now).__name__}; give seconds since 1970, or a datetime with a time zone"
        )
    return float(now)
