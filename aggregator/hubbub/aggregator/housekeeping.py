"""Housekeeping: private keys go when no epoch needs them, and somebody is told before they run out.

Seen tags need none: Redis forgets a window's when its time is over.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hubbub.aggregator.opener import Opener
from hubbub.catalog import OpeningKeyPublic
from hubbub.catalog.rotation import forget_keys, still_needed
from hubbub.errors import KeysUnusable

__all__ = ["Housekeeping"]

_log: Final = logging.getLogger("hubbub.aggregator")

_LOOK_SECONDS: Final = 60.0
_DAY: Final = 86_400
_SOON_DAYS: Final = 21


class Housekeeping:
    """Looks after the opening keys: in the file at `path`, and in the opener's processes."""

    def __init__(
        self,
        path: Path,
        public: Sequence[OpeningKeyPublic],
        opener: Opener,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._public = public
        self._end = max((key.end for key in public), default=0)
        self._opener = opener
        self._clock = clock
        self._said: set[str] = set()

    @property
    def days_left(self) -> float:
        """For how many more days there is a key."""
        return (self._end - self._clock()) / _DAY

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Delete what is not needed any more; warn once if keys run out soon."""
        now = self._clock()
        held = set(self._opener.key_ids)
        old = [key.id for key in self._public if key.id in held and not still_needed(key, now)]
        if old:
            self._opener.forget(old)
            _log.info("opening keys %s forgotten: their epochs are closed", old)
            try:
                forget_keys(self._path, old)
            except KeysUnusable as error:
                self._say("file", f"old keys stay in their file: {error}; run: hubbub keys rotate")
        if self.days_left < _SOON_DAYS:
            until = datetime.fromtimestamp(self._end, UTC).date()
            self._say(
                "soon",
                f"there are opening keys until {until} alone: run hubbub keys rotate, and build "
                "and ship a bundle, or devices will stop reporting",
            )

    def _say(self, what: str, message: str) -> None:
        if what not in self._said:
            self._said.add(what)
            _log.warning(message)
