"""What every transport keeps to, the fake one as the real one before a real gRPC server.

And what a connection is dialled for, and closed before.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from hubbub.client import GivenUp, SealedReport, Submitted, Transport, TryAgain, transport_to
from hubbub.client.testing import FakeServer, FakeShuffler
from hubbub.client.testing.fakes import Answer
from hubbub.client.transport import messages
from hubbub.client.transport.transport_by_address import LazyTransport
from tests.support.http_shuffler import http_shuffler
from tests.support.waiting import HANG_SECONDS, eventually

BRIEFLY = 0.05  # too short only if an answer were to come
REPORTS = [
    SealedReport(stream="theme", epoch=20_000, key_id=7, sealed=b"\0sealed"),
    SealedReport(stream="crashed/0.5", epoch=0, key_id=0, sealed=b"\xff" * 300),
    SealedReport(stream="theme", epoch=2**32 - 1, key_id=2**32 - 1, sealed=b"other"),
]


class Way(NamedTuple):
    """A transport, what the other end has got, and what it is told to answer next."""

    transport: Transport
    arrived: Callable[[], list[SealedReport]]
    calls: Callable[[], int]
    answers: list[Answer]


def _fake() -> Iterator[Way]:
    shuffler = FakeShuffler()
    yield Way(shuffler, shuffler.reports, lambda: len(shuffler.submissions), shuffler.answers)


def _grpc() -> Iterator[Way]:
    with FakeServer() as server:
        transport = transport_to(server.address, roots=None, insecure=True)
        yield Way(transport, lambda: server.received, lambda: server.calls, server.answers)
        transport.close()


def _http() -> Iterator[Way]:
    with http_shuffler() as server:
        transport = transport_to(server.address, roots=None)
        answers: list[Answer] = server.answers  # type: ignore[assignment]  # takes more besides
        yield Way(transport, lambda: server.received, lambda: server.calls, answers)
        transport.close()


@pytest.fixture(params=[_fake, _grpc, _http], ids=["fake", "grpc", "http"])
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    yield from request.param()


def test_reports_arrive_as_they_are_and_in_their_order(way: Way) -> None:
    assert list(way.transport.submit(REPORTS, HANG_SECONDS).results) == [None, None, None]
    assert way.arrived() == REPORTS
    assert list(way.transport.submit([], HANG_SECONDS).results) == []


def test_each_report_has_its_own_result(way: Way) -> None:
    way.answers.append({0: "refused_expired", 2: "refused_wrong_key"})
    results = way.transport.submit(REPORTS, HANG_SECONDS).results
    assert list(results) == ["refused_expired", None, "refused_wrong_key"]


def test_a_refusal_of_an_unsent_report_is_ignored_and_logged_once(
    way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    messages._warn_of_strays.cache_clear()
    for _ in range(3):
        way.answers.append({3: "refused_expired", 99: "refused_not_yet"})
        assert list(way.transport.submit(REPORTS, HANG_SECONDS).results) == [None, None, None]
        way.transport.close()
    warned = "the shuffler refused reports that it was not sent"
    assert caplog.text.count(warned) == (0 if isinstance(way.transport, FakeShuffler) else 1)


@pytest.mark.parametrize("after_seconds", [None, 0.0, 1.5, 3600.0])
def test_a_retry_has_the_servers_delay(way: Way, after_seconds: float | None) -> None:
    way.answers.append(TryAgain("unavailable", after_seconds))
    with pytest.raises(TryAgain, match="unavailable") as caught:
        way.transport.submit(REPORTS, HANG_SECONDS)
    assert caught.value.after_seconds == after_seconds
    assert list(way.transport.submit(REPORTS, HANG_SECONDS).results) == [None, None, None]


def test_a_retry_has_the_servers_notice(way: Way) -> None:
    notice = bytes(range(256))
    way.answers.append(TryAgain("unavailable", 1.5, notice))
    with pytest.raises(TryAgain) as caught:
        way.transport.submit(REPORTS, HANG_SECONDS)
    assert (caught.value.after_seconds, caught.value.notice) == (1.5, notice)


def test_final_and_temporary_failures_are_distinguished(way: Way) -> None:
    way.answers.append(GivenUp("invalid_argument"))
    with pytest.raises(GivenUp, match="invalid_argument") as caught:
        way.transport.submit(REPORTS, HANG_SECONDS)
    assert caught.value.reason == "invalid_argument"
    assert list(way.transport.submit(REPORTS, HANG_SECONDS).results) == [None, None, None]


def test_a_submission_without_time_left_sends_nothing(way: Way) -> None:
    with pytest.raises(TryAgain, match="deadline_exceeded"):
        way.transport.submit(REPORTS, 0)
    assert way.arrived() == []


def test_a_missing_answer_is_abandoned_after_a_limit(way: Way) -> None:
    way.answers.append(None)
    with pytest.raises(TryAgain, match="deadline_exceeded"):
        way.transport.submit(REPORTS, BRIEFLY)


def test_closing_ends_running_calls_and_a_later_submit_reconnects(way: Way) -> None:
    way.answers.append(None)
    with ThreadPoolExecutor(1) as aside:
        waiting = aside.submit(way.transport.submit, REPORTS, HANG_SECONDS)
        eventually(lambda: way.calls() == 1)
        way.transport.close()
        with pytest.raises(TryAgain):
            waiting.result()
    way.transport.close()
    assert list(way.transport.submit(REPORTS, HANG_SECONDS).results) == [None, None, None]


class Wire:
    """A connection that takes everything, and says what was done with it."""

    def __init__(self) -> None:
        self.is_open = True
        self.under_way, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()

    def submit(self, reports: Sequence[SealedReport], timeout_seconds: float) -> Submitted:
        self.under_way.set()
        self.may_end.wait(timeout_seconds)
        if not self.is_open:
            raise TryAgain("connection_closed")
        return Submitted([None] * len(reports))

    def close(self) -> None:
        self.is_open = False
        self.may_end.set()


class Dialled:
    """A transport of wires, and those that were dialled."""

    def __init__(self, *, bears_forks: bool) -> None:
        self.wires: list[Wire] = []
        self.may_dial = threading.Event()
        self.may_dial.set()
        self.transport = LazyTransport(self._dial, bears_forks=bears_forks)

    def _dial(self) -> Wire:
        wire = Wire()
        self.wires.append(wire)
        self.may_dial.wait()
        return wire


def test_a_connection_is_dialled_once_and_not_before_it_is_used() -> None:
    dialled = Dialled(bears_forks=False)
    dialled.transport.close()
    assert dialled.wires == []
    for _ in range(3):
        dialled.transport.submit(REPORTS, HANG_SECONDS)
    assert len(dialled.wires) == 1


def test_before_a_fork_calls_end_and_none_begins_until_it_is_over() -> None:
    dialled = Dialled(bears_forks=True)
    transport = dialled.transport
    transport.submit(REPORTS, HANG_SECONDS)
    [wire] = dialled.wires
    wire.under_way.clear()
    wire.may_end.clear()
    with ThreadPoolExecutor(1) as aside:
        waiting = aside.submit(transport.submit, REPORTS, HANG_SECONDS)
        assert wire.under_way.wait(HANG_SECONDS)
        transport.before_fork()
        with pytest.raises(TryAgain, match="connection_closed"):
            waiting.result()
    with pytest.raises(TryAgain, match="forking") as caught:
        transport.submit(REPORTS, HANG_SECONDS)
    assert caught.value.after_seconds == 0.5
    assert not wire.is_open
    transport.after_fork_in_parent()
    assert transport.submit(REPORTS, HANG_SECONDS).results == [None, None, None]
    assert len(dialled.wires) == 2


@pytest.mark.slow
@pytest.mark.parametrize("ends", [LazyTransport.before_fork, LazyTransport.close])
def test_neither_a_fork_nor_a_close_waits_for_a_connection_that_is_being_dialled(
    ends: Callable[[LazyTransport], None],
) -> None:
    """An import may wait for a lock of logging, which the thread that forks has taken before."""
    dialled = Dialled(bears_forks=False)
    dialled.may_dial.clear()
    with ThreadPoolExecutor(2) as aside:
        waiting = aside.submit(dialled.transport.submit, REPORTS, HANG_SECONDS)
        eventually(lambda: dialled.wires)
        ending = aside.submit(ends, dialled.transport)
        try:
            ending.result(HANG_SECONDS)
        finally:
            dialled.may_dial.set()
        with pytest.raises(TryAgain, match="connection_closed"):
            waiting.result()
    assert not dialled.wires[0].is_open
    dialled.transport.after_fork_in_parent()
    assert dialled.transport.submit(REPORTS, HANG_SECONDS).results == [None, None, None]


@pytest.mark.parametrize("bears_forks", [True, False])
@pytest.mark.parametrize("used", [True, False])
def test_a_child_does_not_use_libraries_that_bear_no_fork(*, bears_forks: bool, used: bool) -> None:
    dialled = Dialled(bears_forks=bears_forks)
    if used:
        dialled.transport.submit(REPORTS, HANG_SECONDS)
    dialled.transport.before_fork()
    dialled.transport.after_fork_in_child()
    if used and not bears_forks:
        with pytest.raises(TryAgain, match="forking") as caught:
            dialled.transport.submit(REPORTS, HANG_SECONDS)
        assert caught.value.after_seconds == 60.0
    else:
        assert dialled.transport.submit(REPORTS, HANG_SECONDS).results == [None, None, None]
        assert dialled.wires[-1].is_open
