"""A client that is called in the middle of its own thread's call."""

import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import Client, Outcome, files
from hubbub.client.delivery.token_store import TokenStore
from hubbub.client.reentry_and_forks import Wakeup
from hubbub.client.state import payload_queries
from hubbub.errors import StateBusy
from tests.support.bundles import Signed
from tests.support.client_parts import client_state, store_reports
from tests.support.http_shuffler import HttpShuffler, http_shuffler
from tests.support.waiting import HANG_SECONDS, eventually


def _client(signed: Signed, folder: Path, server: HttpShuffler, **more: Any) -> Client:
    return Client.from_bundle(
        signed.path, state_dir=folder / "state", shuffler=server.address, strict=False, **more
    )


def test_flush_and_close_during_a_flush_return_and_the_flush_continues(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a handler of SIGTERM calls them, which Python runs in the middle of anything."""
    came: list[bool] = []
    with http_shuffler() as server:
        client = _client(signed, tmp_path, server, hold_seconds=None)
        drawn = client._reporter.pending

        def interrupted() -> Any:
            if not came:
                came.append(True)
                came.extend([client.flush(HANG_SECONDS), client.close(HANG_SECONDS)])
            return drawn()

        monkeypatch.setattr(client._reporter, "pending", interrupted)
        assert client.report("theme", "dark") is Outcome.QUEUED
        sent: list[bool] = []
        flushing = threading.Thread(target=lambda: sent.append(client.flush()), daemon=True)
        flushing.start()
        flushing.join(HANG_SECONDS)
        assert (came, sent) == ([True, False, False], [True])
        assert client.close(HANG_SECONDS)
        assert len(server.received) == 1


def test_a_report_during_another_report_is_refused_at_once(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http_shuffler() as server:
        client = _client(signed, tmp_path, server, hold_seconds=None)
        nested: list[Outcome] = []
        note = client_state(client).note

        def interrupted(pending: Any) -> int:
            nested.append(client.report("homepage", "a.example"))
            return note(pending)

        monkeypatch.setattr(client_state(client), "note", interrupted)
        # A wait for the own thread would never end.
        monkeypatch.setattr("hubbub.client.reporter._LOCK_SECONDS", HANG_SECONDS)
        assert client.report("theme", "dark") is Outcome.QUEUED
        assert nested == [Outcome.OVERFLOWED]


class _TimeIsUp(BaseException):
    """What a worker's time limit or Ctrl-C raises in the middle of anything."""


class _Interrupted:
    """A lock after which a signal comes, once, before whoever took it goes on."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self.came = False

    def acquire(self, *arguments: Any, **options: Any) -> Any:
        taken = self._lock.acquire(*arguments, **options)
        if not self.came:
            self.came = True
            signal.raise_signal(signal.SIGUSR1)
        return taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lock, name)


@pytest.mark.parametrize("place", ["reporting", "entering", "sending", "storing"])
def test_an_exception_in_a_signal_handler_releases_all_locks(
    signed: Signed, tmp_path: Path, place: str
) -> None:
    def stop(*_: Any) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with http_shuffler() as server:
            client = _client(signed, tmp_path, server, hold_seconds=None)
            owner: Any = {
                "reporting": client._reporter.lock,
                "entering": client._sender.entering.lock,
                "sending": client._sender._sending,
                "storing": getattr(client_state(client), "_database", None)
                and client_state(client)._database.lock,  # type: ignore[attr-defined]
            }[place]
            owner.inner = interrupted = _Interrupted(owner.inner)
            with suppress(_TimeIsUp):
                client.report("theme", "dark")
                client.flush(HANG_SECONDS)
            assert interrupted.came
            later: list[Any] = []

            def go_on() -> None:
                later.append(client.report("homepage", "a.example"))
                later.append(client.flush(HANG_SECONDS / 2))

            going_on = threading.Thread(target=go_on, daemon=True)
            going_on.start()
            going_on.join(HANG_SECONDS)
            assert later == [Outcome.QUEUED, True]
            assert client.close(HANG_SECONDS)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("place", ["starting the sender", "fetching tokens"])
def test_an_exception_in_a_signal_handler_releases_a_lock_that_is_tried(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def stop(*_: Any) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with http_shuffler() as server, _client(signed, tmp_path, server) as client:
            background: Any = client._background
            parts: Any = {"clock": client._clock, "diagnostics": client._diagnostics}
            tokens = TokenStore(signed.bundle, client_state(client), lambda *_: b"", **parts)
            owner, call = {
                "starting the sender": (background._lock, background.wake),
                "fetching tokens": (tokens.lock, lambda: tokens.fetch(HANG_SECONDS)),
            }[place]
            monkeypatch.setattr(background, "_is_running", lambda: False)
            owner.inner = interrupted = _Interrupted(owner.inner)
            with suppress(_TimeIsUp):
                call()
            assert interrupted.came
            is_free: list[bool] = []

            def enter() -> None:
                with owner.hold(0) as is_entered:
                    is_free.append(is_entered)

            other = threading.Thread(target=enter)
            other.start()
            other.join()
            assert is_free == [True]
            monkeypatch.undo()
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("call", ["waiting", "ledger", "flush", "close"])
def test_a_call_in_the_middle_of_a_transaction_returns_at_once(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    with http_shuffler() as server:
        client = _client(signed, tmp_path, server, hold_seconds=None)
        assert client.report("theme", "dark") is Outcome.QUEUED
        store_reports(client)  # else the background thread might, while they are counted
        # What a wait for the own thread would take.
        monkeypatch.setattr(files, "_USUAL_SECONDS", HANG_SECONDS)
        nested: list[Any] = []
        count = payload_queries.waiting

        def interrupted(*arguments: Any) -> int:
            if not nested and threading.current_thread() is asking:
                with suppress(StateBusy):
                    nested.append("called")
                    asked = getattr(client, call)
                    nested.append(asked() if callable(asked) else asked)
            return count(*arguments)

        monkeypatch.setattr(payload_queries, "waiting", interrupted)
        waiting: list[int] = []
        asking = threading.Thread(target=lambda: waiting.append(client.waiting), daemon=True)
        asking.start()
        asking.join(HANG_SECONDS / 2)
        assert waiting == [1]
        returned = {"waiting": ["called", 0], "ledger": ["called"]}
        assert nested == returned.get(call, ["called", False])
        client.close()


def test_a_wakeup_may_be_set_during_its_own_methods() -> None:
    wakeup = Wakeup()
    assert not wakeup.wait(0)
    wakeup.set()
    wakeup.set()
    assert wakeup.wait(0)
    assert wakeup.is_set()
    wakeup.clear()
    assert not wakeup.is_set()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_sender_that_the_app_has_ended_starts_again(signed: Signed, tmp_path: Path) -> None:
    """By sys.exit() in on_drop, or a library that raises in every thread."""

    def leave(_metric: str, _reason: str) -> None:
        raise SystemExit

    with http_shuffler() as server:
        server.answers = [{0: "refused_unknown_stream"}]
        client = _client(signed, tmp_path, server, hold_seconds=0, on_drop=leave)
        assert client.report("theme", "dark") is Outcome.QUEUED
        assert client._background
        assert eventually(lambda: client._background and not client._background._is_running())
        assert client.report("homepage", "a.example") is Outcome.QUEUED
        assert eventually(lambda: len(server.received) == 2)
        assert client.close(HANG_SECONDS)
