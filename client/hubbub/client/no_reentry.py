"""Locks and events for calls that a signal handler, a finalizer or `on_drop` makes.

Such code runs in the middle of its thread's work. Waiting for a lock that the same thread holds, or
for an event that it is setting, would never end.
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
    """A lock that raises StateBusy in the thread that holds it, instead of waiting forever.

    A fork waits `fork_seconds` for other threads inside; in the child the lock is free. `inner` is
    the lock as a context manager that lets the thread in that holds it.
    """

    def __init__(self, fork_seconds: float = 0.0) -> None:
        self.inner: Any = threading.RLock()
        self._fork_seconds = fork_seconds
        self._is_taken = False

    @contextmanager
    def hold(self, timeout: float = -1) -> Iterator[bool]:
        """Holds the lock for a block; yields False if another thread holds it beyond `timeout`.

        An exception of a signal handler (Ctrl-C, a worker's time limit) may come between any two
        steps. It leaves no lock behind: the interpreter handles signals after a call, and the lock
        that one call takes is released by another, in a block that began before.
        """
        if self.is_ours():
            raise StateBusy(_REMEDY)
        try:
            yield self.inner.acquire(timeout=timeout)
        finally:
            try:  # noqa: SIM105 a call of `suppress` would let a signal in before the release
                self.inner.release()
            except RuntimeError:  # another thread has it, or this is a child forked in the block
                pass

    def is_ours(self) -> bool:
        """Returns whether this thread holds it."""
        return bool(self.inner._is_owned())  # noqa: SLF001 as threading.Condition asks

    def before_fork(self) -> None:
        """Keeps other threads out during a fork, unless this thread forks inside the lock."""
        self._is_taken = not self.is_ours() and self.inner.acquire(timeout=self._fork_seconds)

    def after_fork_in_parent(self) -> None:
        """Lets other threads in again."""
        if self._is_taken:
            self.inner.release()

    def after_fork_in_child(self) -> None:
        """Frees the lock, which a thread of the parent may hold forever."""
        self.inner = threading.RLock()


class Wakeup(threading.Event):
    """An event with one waiter, which can be set in the middle of its own methods.

    The methods of `threading.Event` hold a lock meanwhile.
    """

    def __init__(self) -> None:
        super().__init__()
        self._unset = threading.Lock()
        self._unset.acquire()

    def is_set(self) -> bool:
        """Returns whether it is set."""
        return not self._unset.locked()

    def set(self) -> None:
        """Wakes the waiter."""
        with suppress(RuntimeError):  # it is set
            self._unset.release()

    def clear(self) -> None:
        """Resets it."""
        self._unset.acquire(blocking=False)

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set, for at most `timeout` seconds; returns whether it is."""
        came = self._unset.acquire(timeout=-1 if timeout is None else timeout)
        if came:
            self.set()
        return came
