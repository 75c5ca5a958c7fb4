"""Handling of forks: what a process does before one, and what parent and child do after.

Python calls our hooks at its own forks. A program that embeds Python (uWSGI) may fork without them;
the child then notices by its process number at the client's next call (`notice`).

The child has a copy of everything and owns none of it: the queue is its parent's to send, a
connection to SQLite or gRPC must not be used on both sides, and the thread is not copied.
"""

import os
import threading
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Final
from weakref import WeakKeyDictionary

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


def _call(method: str, *, newest_first: bool) -> None:
    parts = [part for parts in list(_following.values()) for part in parts]
    for part in reversed(parts) if newest_first else parts:
        if hasattr(part, method):
            getattr(part, method)()


def _reset_child() -> None:
    _call("after_fork_in_child", newest_first=True)
    _process[0] = os.getpid()


@lru_cache
def _hook_in() -> None:
    """Registers the hooks, once."""
    # Python then takes the lock of `logging` after our hooks, which wait for calls.
    import logging  # noqa: F401, PLC0415 a client needs it, the import of the module does not

    if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
        os.register_at_fork(
            before=partial(_call, "before_fork", newest_first=False),
            after_in_parent=partial(_call, "after_fork_in_parent", newest_first=True),
            after_in_child=_reset_child,
        )
