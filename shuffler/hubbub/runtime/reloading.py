"""Reloads changed files while the service runs: all of them or none.

This happens at once on SIGHUP, else when files have changed and look the same at two looks in a
row, so that no half-written file is read.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BadParameter, HubbubError
from hubbub.runtime.clocks import Clock
from hubbub.runtime.monitoring.logs import facts

_log: Final = logging.getLogger("hubbub.runtime")

_LOOK_SECONDS: Final = 2.0

Take = Callable[[], Mapping[str, Any]]
"""Takes what was read into use, without a pause in between; answers what the log says of it."""

_Stamps = Mapping[Path, tuple[int, int, int] | None]


class Reloader:
    """Watches the files of a service, and reloads them when they change.

    Args:
        files: the files to watch, asked at every look, since a file may name others.
        load: reads and checks all of them, in a thread; raises HubbubError to change nothing.
        counts: counts reloads by outcome, taken or refused.
    """

    def __init__(
        self,
        files: Callable[[], Iterable[Path]],
        load: Callable[[], Take],
        counts: Counter[str],
        clock: Clock | None = None,
    ) -> None:
        self._files = files
        self._read = load
        self._clock = clock or Clock()
        self._wanted = asyncio.Event()
        self._used = self._stamps()
        self._counts = counts

    def reload(self) -> None:
        """Requests a reload now, as SIGHUP does."""
        self._wanted.set()

    async def run(self) -> None:
        """Looks every few seconds, until cancelled."""
        stamps = self._used
        while True:
            if await self._clock.wait(self._wanted, _LOOK_SECONDS):
                self._wanted.clear()
                stamps = self._stamps()
                await self._reload("SIGHUP")
                continue
            before, stamps = stamps, self._stamps()
            if stamps == before != self._used:
                paths = {**self._used, **stamps}
                changed = [p.name for p in paths if stamps.get(p) != self._used.get(p)]
                await self._reload("changed: " + " ".join(changed))

    async def _reload(self, why: str) -> None:
        # Later writes change these, so that the next look reads them.
        self._used = self._stamps()
        try:
            # Opening a pipe may block forever, and with it the end of the process.
            for path in self._used:
                if path.exists() and not path.is_file():
                    raise BadParameter(f"{path}: is not a file; create one")
            take = await asyncio.to_thread(self._read)
            details = take()
        except HubbubError as error:
            self._counts["refused"] += 1
            _log.warning(
                "not reloaded, the former files stay in use: %s", error, extra=facts(why=why)
            )
            return
        self._counts["taken"] += 1
        _log.info("reloaded", extra=facts(why=why, **details))

    def _stamps(self) -> _Stamps:
        stamps: dict[Path, tuple[int, int, int] | None] = dict.fromkeys(self._files())
        for path in stamps:
            with suppress(OSError):  # deleted: reading it fails
                status = path.stat()
                stamps[path] = (status.st_mtime_ns, status.st_ino, status.st_size)
        return stamps
