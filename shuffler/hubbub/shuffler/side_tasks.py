"""Tasks beside a loop, whose errors are raised in the loop so that nobody misses them.

A task that nobody awaits fails unseen: its work would be restarted for ever, or never done.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any


class SideTasks:
    """The side tasks of one loop, which must call `check` at each turn."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    def begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Starts a side task; it must handle errors of stores and services itself."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def check(self) -> None:
        """Raises the error of a failed task, if any."""
        if self._failure is not None:
            raise self._failure

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            self._failure = self._failure or task.exception()
