"""Calls from unusual places: within another call of the same thread, deep in a stack, after a fork.

A signal handler, a finalizer or `on_drop` runs in the middle of its thread's work. Waiting for a
lock that the same thread holds, or for an event that it is setting, would never end.

Python calls our hooks at its own forks. A program that embeds Python (uWSGI) may fork without them;
the child then notices by its process number at the client's next call (`notice`). The child has a
copy of everything and owns none of it: the queue is its parent's to send, a connection to SQLite or
gRPC must not be used on both sides, and the thread is not copied.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from hubbub.errors import StateBusy

# Reading, entering and sending take at most some sixty.
_FRAMES: Final = 150
Result = TypeVar("Result")


def check_stack() -> None:
    """Raises RecursionError if the calling thread has fewer than 150 frames left.

    In the middle of reading a state, the same error would look like damage.
    """
    try:
        # Functions in C count towards the limit, too, but not three for each frame.
        sys._getframe(sys.getrecursionlimit() // 4)  # noqa: SLF001 its only name
    except ValueError:  # there are not so many frames
        return
    _use_frames(_FRAMES)


def with_own_stack(work: Callable[[], Result]) -> Result:
    """Returns what `work` returns in a thread of its own, whose call stack is empty.

    Raises the error of `work`; RecursionError if not even a thread's start fits on this stack.
    """
    results: list[Result] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # noqa: BLE001 the caller's thread raises it
            errors.append(error)

    thread = threading.Thread(target=run, name="hubbub-start")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _use_frames(frames: int) -> None:
    if frames:
        _use_frames(frames - 1)


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


_process: Final = [os.getpid()]
_noticing: Final = threading.RLock()
_following: Final[WeakKeyDictionary[object, Sequence[Any]]] = WeakKeyDictionary()


def follow(owner: object, parts: Sequence[Any]) -> None:
    """Makes the parts of an object follow every fork for as long as it lives.

    `before_fork` is called in this order, `after_fork_in_parent` and `after_fork_in_child` in
    reverse. A part may lack methods that it does not need.
    """
    _hook_in()
    _following[owner] = parts


def notice() -> None:
    """Resets everything if this process is a child that was forked without our hooks.

    Every call of a client begins here. Locks that another thread held at the fork are replaced.
    """
    if os.getpid() != _process[0]:
        with _noticing:
            if os.getpid() != _process[0]:
                _reset_child()


def _call_parts(method: str, *, newest_first: bool) -> None:
    parts = [part for parts in list(_following.values()) for part in parts]
    for part in reversed(parts) if newest_first else parts:
        if hasattr(part, method):
            getattr(part, method)()


def _reset_child() -> None:
    _call_parts("after_fork_in_child", newest_first=True)
    _process[0] = os.getpid()


@lru_cache
def _hook_in() -> None:
    """Registers the hooks, once."""
    # Python then takes the lock of `logging` after our hooks, which wait for calls.
    import logging  # noqa: F401, PLC0415 a client needs it, the import of the module does not

    if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
        os.register_at_fork(
            before=partial(_call_parts, "before_fork", newest_first=False),
            after_in_parent=partial(_call_parts, "after_fork_in_parent", newest_first=True),
            after_in_child=_reset_child,
        )
