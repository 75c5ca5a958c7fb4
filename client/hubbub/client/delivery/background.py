"""The background thread that enters and sends reports; the first report starts it."""

import contextlib
import threading
from typing import Final

from hubbub.client.clock import Clock
from hubbub.client.delivery.sender import Sender
from hubbub.client.delivery.waits import Waits, uniform
from hubbub.client.files import seconds_left
from hubbub.client.mistakes_and_counters import Diagnostics
from hubbub.client.reentry_and_forks import NoReentryLock, Wakeup
from hubbub.client.transport.contract import Transport

# Reports within this time are entered together.
_GATHER_SECONDS: Final = 0.5
_STATE_RETRY_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 15.0


class Background:
    """A daemon thread; a forked child starts its own at its first report."""

    def __init__(
        self,
        sender: Sender,
        transport: Transport,
        waits: Waits,
        *,
        clock: Clock,
        diagnostics: Diagnostics,
    ) -> None:
        self._sender = sender
        self._transport = transport
        self._waits = waits
        self._first = True
        self._clock = clock
        self._diagnostics = diagnostics
        self._lock = NoReentryLock()
        self._thread: threading.Thread | None = None
        self._wake = Wakeup()
        self._end = threading.Event()
        self._look_seconds: float | None = None

    def wake(self) -> None:
        """Starts the thread if need be, and signals that there is work."""
        if not self._wake.is_set():
            self._wake.set()
        if self._is_running() or self._lock.is_ours():
            return
        with self._lock.hold(0) as is_entered:  # else another thread is just starting it
            if not is_entered or self._is_running() or self._end.is_set():
                return
            thread = threading.Thread(target=self._run, name="hubbub-sender", daemon=True)
            try:
                thread.start()
                self._thread = thread
            except RuntimeError as error:  # the system starts none now; the next wake tries again
                message = "reports wait for flush() or close(): %s"
                self._diagnostics.warn_once("thread", message, error)

    def _is_running(self) -> bool:
        """Returns whether a thread is running: an exception injected by the app may end it."""
        return self._thread is not None and self._thread.is_alive()

    def end(self) -> None:
        """Ends the thread for good."""
        self._end.set()
        self._wake.set()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(seconds_left())

    def after_fork_in_parent(self) -> None:
        """Makes the parent look regularly for reports that ended children left."""
        self._look_seconds = _LOOK_SECONDS
        self.wake()

    def after_fork_in_child(self) -> None:
        """Forgets the thread, which is the parent's."""
        self._lock.after_fork_in_child()
        self._thread = None
        self._wake, self._end = Wakeup(), threading.Event()

    def _run(self) -> None:
        due: float | None = None
        with contextlib.suppress(Exception):  # `_step` fails in the same way, and logs it
            self._sender.entering.keep_running()
        while not self._end.is_set():
            self._clock.wait(self._wake, self._idle_seconds(due))
            if self._wake.is_set() and self._clock.wait(self._end, _GATHER_SECONDS):
                return
            self._wake.clear()
            try:
                due = self._step(due)
                continue
            except Exception as error:  # noqa: BLE001 a fault of ours must not end the sending for good
                self._diagnostics.warn_of_fault(error)
            self._wake.set()
            if self._clock.wait(self._end, uniform(0, _STATE_RETRY_SECONDS)):
                return

    def _idle_seconds(self, due: float | None) -> float | None:
        """Returns the time until the next work without a report, in seconds; None for never."""
        if due is not None:
            return max(0.0, due - self._clock.monotonic())
        looks = (self._look_seconds, self._sender.seconds_to_work())
        return min((look for look in looks if look is not None), default=None)

    def _step(self, due: float | None) -> float | None:
        """Enters, and sends if due; returns the time of the next send, or None if nothing waits."""
        left_over = self._first and self._sender.waiting() > 0
        self._sender.fetch_models(_STATE_RETRY_SECONDS * 2)
        self._sender.entering.enter(gently=True)
        self._sender.fetch_tokens(_STATE_RETRY_SECONDS * 2)
        self._first = False
        if due is None:
            if not self._sender.waiting():
                return None
            if self._sender.has_covered():
                return self._clock.monotonic() + self._waits.after_an_epoch()
            return self._clock.monotonic() + self._waits.before_sending(left_over=left_over)
        if self._clock.monotonic() < due:
            return due
        wait = self._sender.attempt(_STATE_RETRY_SECONDS * 2)
        if wait is None:
            self._transport.close()
            return None
        if self._sender.failures:
            wait = self._waits.before_trying_again(self._sender.failures, wait)
        return self._clock.monotonic() + wait
