"""Tasks beside a loop: what one of them fails with is raised in the loop, so that nobody misses it.

A task that nobody waits for dies unseen: what it did is begun again and again, or never.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any


class SideTasks:
    """Those of one loop, which calls `check` at each turn."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    def begin(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Work beside the loop; errors of stores and other services are for the work to bear."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def check(self) -> None:
        """Raises what a task has failed with, if any has."""
        if self._failure is not None:
            raise self._failure

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            self._failure = self._failure or task.exception()
