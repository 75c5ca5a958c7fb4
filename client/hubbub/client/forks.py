"""Handling of forks: what a process does before one, and what parent and child do after.

Python calls our hooks at its own forks. A program that embeds Python (uWSGI) may fork without them;
the child then notices by its process number at the client's next call (`notice`).

The child has a copy of everything and owns none of it: the queue is its parent's to send, a
connection to SQLite or gRPC must not be used on both sides, and the thread is not copied.
"""

import os
import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol, runtime_checkable
from weakref import WeakKeyDictionary


@runtime_checkable
class _StartsAnew(Protocol):
    """A part that is reset in a child."""

    def after_fork_in_child(self) -> None: ...


@runtime_checkable
class _StandsStill(_StartsAnew, Protocol):
    """A part that pauses during a fork."""

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...


_process: Final = [os.getpid()]
_noticing: Final = threading.RLock()
_following: Final[WeakKeyDictionary[object, Sequence[Any]]] = WeakKeyDictionary()


def follow(owner: object, parts: Sequence[Any]) -> None:
    """Makes the parts of an object follow every fork for as long as it lives.

    They pause in this order and continue in reverse. A part may lack methods that it does not need.
    """
    _following[owner] = parts


def notice() -> None:
    """Resets everything if this process is a child that was forked without our hooks.

    Every call of a client begins here. Locks that another thread held at the fork are replaced.
    """
    if os.getpid() != _process[0]:
        with _noticing:
            if os.getpid() != _process[0]:
                _in_child()


def _parts() -> list[Any]:
    return [part for parts in list(_following.values()) for part in parts]


def _before() -> None:
    for part in _parts():
        if isinstance(part, _StandsStill):
            part.before_fork()


def _in_parent() -> None:
    for part in reversed(_parts()):
        if isinstance(part, _StandsStill):
            part.after_fork_in_parent()


def _in_child() -> None:
    for part in reversed(_parts()):
        if isinstance(part, _StartsAnew):
            part.after_fork_in_child()
    _process[0] = os.getpid()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
