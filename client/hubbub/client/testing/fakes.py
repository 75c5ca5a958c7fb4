"""Fakes for tests of apps: a clock that the test moves, a transport, and a gRPC server."""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

import grpc

from hubbub.bundles import OpeningKey
from hubbub.client.transport.contract import (
    FOR_GOOD,
    GivenUp,
    SealedReport,
    Submitted,
    TryAgain,
)
from hubbub.client.transport.grpc_connection import HINT, METHOD, NOTICE, SERVICE
from hubbub.client.transport.messages import REASONS, element, field, fields_of
from hubbub.errors import BadParameter
from hubbub.fields.rules import is_number
from hubbub.sealing.hpke import open_sealed, seal_info

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


class FakeServer:
    """A gRPC server in place of the shuffler; connect with insecure=True. It accepts every report.

    Args:
        opening: keys that open reports, from `make_bundle()`.

    Attributes:
        answers: answers to the next calls, one each, as for `FakeShuffler`.
        failing: a status to answer with instead; `retry_ms` is its hint, in milliseconds.
        hang_seconds: delay before every answer.
        notice: the operator's signed notice, in every answer.
        models: the signed state of models, in answers to submissions without a report.
        received: every accepted report, resends included.
    """

    def __init__(self, opening: Sequence[OpeningKey] = ()) -> None:
        self._keys = {key.id: key.load() for key in opening}
        self.failing: grpc.StatusCode | None = None
        self.retry_ms: int | None = None
        self.hang_seconds = 0.0
        self.calls = 0
        self.notice = b""
        self.models = b""
        self.answers: list[Answer] = []
        self.received: list[SealedReport] = []
        self._server = grpc.server(ThreadPoolExecutor(8))
        handler: Any = grpc.unary_unary_rpc_method_handler(self._submit)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),)
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _submit(self, request: bytes, context: Any) -> bytes:
        """Answers as `answers`, `failing` and `hang_seconds` request."""
        self.calls += 1
        if self.hang_seconds:
            time.sleep(self.hang_seconds)
        if self.failing is not None:
            if self.retry_ms is not None:
                context.set_trailing_metadata([(HINT, str(self.retry_ms))])
            context.abort(self.failing, "as told")
        answer = self.answers.pop(0) if self.answers else {}
        if isinstance(answer, GivenUp):
            context.set_trailing_metadata([FOR_GOOD])
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, answer.reason)
        if isinstance(answer, TryAgain):
            metadata: list[tuple[str, str | bytes]] = []
            if answer.after_seconds is not None:
                metadata.append((HINT, str(round(1000 * answer.after_seconds))))
            if answer.notice:
                metadata.append((NOTICE, answer.notice))
            context.set_trailing_metadata(metadata)
            context.abort(grpc.StatusCode.UNAVAILABLE, answer.reason)
        if answer is None:
            gone = threading.Event()
            if not context.add_callback(gone.set):
                gone.set()
            gone.wait()  # the caller has left, or this server ends
        refused = answer if isinstance(answer, Mapping) else {}
        reports = _reports_in(request)
        self.received += reports
        refusals = [
            element(1, field(1, place) + field(2, REASONS.index(reason)))
            for place, reason in refused.items()
        ]
        models = b"" if reports else self.models
        return b"".join([*refusals, field(2, self.notice), field(3, models)])

    def payloads(self, metric: str) -> list[bytes]:
        """Returns the opened payloads of one metric; a resent report counts once."""
        distinct = {r.sealed: r for r in self.received if r.stream == metric}.values()
        return [
            open_sealed(r.sealed, self._keys[r.key_id], seal_info(r.stream, r.epoch))
            for r in distinct
        ]

    def close(self) -> None:
        """Stops at once."""
        self._server.stop(0).wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()


def _reports_in(request: bytes) -> list[SealedReport]:
    """The reports of a SubmitRequest, without their tokens."""
    reports = []
    for number, message in fields_of(request):
        if number == 1 and isinstance(message, bytes):
            members: dict[int, Any] = dict(fields_of(message))
            report = SealedReport(
                stream=members.get(1, b"").decode(),
                epoch=members.get(2, 0),
                key_id=members.get(3, 0),
                sealed=members.get(4, b""),
            )
            reports.append(report)
    return reports
