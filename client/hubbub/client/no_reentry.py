"""What a signal's handler, a finalizer or `on_drop` may meet: a call of the client's own thread.

Such code runs in the middle of whatever its thread does. A lock that this thread has already, or an
event that it is just setting, would be waited for without end.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from hubbub.errors import StateBusy

_REMEDY: Final = (
    "the client is called by a signal's handler, a finalizer or on_drop in the middle of another "
    "call of the same thread; call it once that has returned"
)


class NoReentryLock:
    """A lock that refuses the thread that has it. Raises StateBusy there, and never waits."""

    def __init__(self) -> None:
        self._lock: Any = threading.RLock()

    @contextmanager
    def within(self, timeout: float = -1) -> Iterator[bool]:
        """Have it for a block: False where another thread has it for longer than `timeout` seconds.

        An exception of a signal's handler (Ctrl-C, a worker's time limit) may come between any two
        steps. It leaves no lock behind: the interpreter looks for signals after a call, and what
        was taken by a call is given back by one, in a block that began before.
        """
        if self.is_ours():
            raise StateBusy(_REMEDY)
        try:
            yield self._lock.acquire(timeout=timeout)
        finally:
            try:  # noqa: SIM105 a call of `suppress` would let a signal in before the release
                self._lock.release()
            except RuntimeError:  # another thread has it
                pass

    def acquire(self, timeout: float = -1) -> bool:
        """Take it beyond a block: False where another thread has it for longer than `timeout`."""
        if self.is_ours():
            raise StateBusy(_REMEDY)
        return bool(self._lock.acquire(timeout=timeout))

    def release(self) -> None:
        """Let go of it."""
        self._lock.release()

    def is_ours(self) -> bool:
        """Whether this thread has it."""
        return bool(self._lock._is_owned())  # noqa: SLF001 as threading.Condition asks


class Wakeup(threading.Event):
    """An event of one waiter that can be set in the middle of its own methods.

    Those of `threading.Event` hold a lock meanwhile.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unset = threading.Lock()
        self._unset.acquire()

    def is_set(self) -> bool:
        """Whether it is set."""
        return not self._unset.locked()

    def set(self) -> None:
        """Wake the waiter."""
        with suppress(RuntimeError):  # it is set
            self._unset.release()

    def clear(self) -> None:
        """Unset it."""
        self._unset.acquire(blocking=False)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, for at most `timeout` seconds: whether it is."""
        came = self._unset.acquire(timeout=-1 if timeout is None else timeout)
        if came:
            self.set()
        return came
