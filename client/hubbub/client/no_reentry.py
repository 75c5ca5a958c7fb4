"""What a signal's handler, a finalizer or `on_drop` may meet: a call of the client's own thread.

Such code runs in the middle of whatever its thread does. A lock that this thread has already, or an
event that it is just setting, would be waited for without end.
"""

import threading
from contextlib import suppress
from typing import Final

from hubbub.errors import StateBusy

_REMEDY: Final = (
    "the client is called by a signal's handler, a finalizer or on_drop in the middle of another "
    "call of the same thread; call it once that has returned"
)


class NoReentryLock:
    """A lock that refuses the thread that has it. Raises StateBusy there, and never waits."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._taken = False

    def acquire(self, timeout: float = -1) -> bool:
        """Take it: False where another thread has it for longer than `timeout` seconds."""
        if not self._lock.acquire(timeout=timeout):
            return False
        if self._taken:
            self._lock.release()
            raise StateBusy(_REMEDY)
        self._taken = True
        return True

    def release(self) -> None:
        """Let go of it."""
        self._taken = False
        self._lock.release()

    def is_ours(self) -> bool:
        """Whether this thread has it."""
        if not self._lock.acquire(blocking=False):
            return False
        is_owner = self._taken
        self._lock.release()
        return is_owner

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_raised: object) -> None:
        self.release()


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
