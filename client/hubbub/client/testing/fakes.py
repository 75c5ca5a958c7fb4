"""Fakes for tests of apps: a clock that only the test moves, a shuffler of scripted answers."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from hubbub.client.transport.contract import GivenUp, SealedReport, Submitted, TryAgain
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


Answer = TryAgain | GivenUp | Mapping[int, str] | None
"""What is answered to a submission: which reports are refused, by their place, and why; an error;
or None for no answer, until its time is over or the transport is closed."""


class FakeShuffler:
    """A transport that returns one of the given answers per call, and then accepts every report.

    Attributes:
        submissions: the reports of every call, including calls answered with an error.
        notice: the operator's signed notice, in every answer.
        models: the signed state of models, in answers to submissions without a report.
    """

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.notice = b""
        self.models = b""
        self.submissions: list[tuple[SealedReport, ...]] = []
        self._closed = threading.Event()

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        if not timeout_seconds > 0:
            raise TryAgain("deadline_exceeded")
        closed = self._closed
        self.submissions.append(tuple(reports))
        answer = self.answers.pop(0) if self.answers else {}
        if answer is None:
            raise TryAgain("cancelled" if closed.wait(timeout_seconds) else "deadline_exceeded")
        if isinstance(answer, TryAgain | GivenUp):
            raise answer
        results = [answer.get(place) for place in range(len(reports))]
        return Submitted(results, self.notice, b"" if reports else self.models)

    def close(self) -> None:
        """As the Transport protocol defines; ends all waiting calls."""
        closed, self._closed = self._closed, threading.Event()
        closed.set()

    def reports(self) -> list[SealedReport]:
        """Returns all submitted reports, in order."""
        return [report for reports in self.submissions for report in reports]
