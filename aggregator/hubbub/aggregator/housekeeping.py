"""Housekeeping: deletes keys and tags that no epoch needs, and warns before keys run out.

Deleted private keys and tags are lost, so no clock alone decides (decision 0224): the clocks must
have agreed for an hour, and reports of later epochs must have been counted.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hubbub.aggregator.ingest.intake import counted_starts
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.store.contract import TotalsStore
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, closing_time, epoch_at
from hubbub.catalog.epochs_and_periods import longest_epoch
from hubbub.errors import KeysUnusable, StoreUnavailable
from hubbub.keys.opening_key_files import forget_keys, still_needed
from hubbub.runtime.clocks import BELIEVED_SECONDS, Clocks

_log: Final = logging.getLogger("hubbub.aggregator")

_LOOK_SECONDS: Final = 60.0
_DAY: Final = 86_400
_SOON_DAYS: Final = 21


@dataclass(eq=False, kw_only=True)
class Housekeeping:
    """Maintains tags, and the opening keys in the file at `path` and in the opener's processes.

    Args:
        served: time of each key's last opened report, in seconds of `clocks.elapsed()`.
    """

    path: Path
    bundle: Bundle
    opener: Opener
    store: TotalsStore
    clocks: Clocks
    served: Mapping[int, float]
    _forgot: float | None = field(default=None, init=False)
    _logged: set[str] = field(default_factory=set, init=False)

    @property
    def end(self) -> int:
        """When the last opening key ends, in seconds since 1970."""
        return max((key.end for key in self.bundle.keys), default=0)

    @property
    def days_left(self) -> float:
        """Days for which there are still opening keys."""
        return (self.end - self.clocks.now()) / _DAY

    async def run(self) -> None:
        """Runs `look` repeatedly, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Deletes what is certainly no longer needed; warns once if keys run out soon."""
        if self.clocks.settled:
            try:
                await self._forget_a_key()
                await self._forget_tags()
            except StoreUnavailable as error:
                _log.debug("housekeeping waits: %s", error)
        if self.days_left < _SOON_DAYS:
            until = datetime.fromtimestamp(self.end, UTC).date()
            self._warn(
                "soon",
                f"the opening keys end on {until}: run hubbub keys rotate, then build and "
                "ship a bundle, or devices will stop reporting",
            )

    async def _forget_a_key(self) -> None:
        """Deletes at most one key, at most once an hour."""
        elapsed, key_ids = self.clocks.elapsed(), {key.id for key in self.opener.keys}
        if self._forgot is not None and elapsed - self._forgot < BELIEVED_SECONDS:
            return
        now = self.clocks.earliest()
        longest = longest_epoch(metric.epoch for metric in self.bundle.metrics.values())
        keys = [key for key in self.bundle.keys if key.id in key_ids]
        unneeded_keys = [key for key in keys if not still_needed(key, now, longest)]
        if not unneeded_keys:
            return
        starts = await counted_starts(self.bundle, self.store)
        for key in sorted(unneeded_keys, key=lambda key: key.end):
            why_kept = ""
            if elapsed - self.served.get(key.id, -_DAY) < _DAY:
                why_kept = "it opened reports within a day"
            elif not moved_past(starts, key.end, longest):
                why_kept = "no counted reports confirm the time since"
            if why_kept:
                self._warn(
                    f"key {key.id}",
                    f"opening key {key.id} has ended by this clock, but {why_kept}: it is kept; "
                    "if it has really ended, run: hubbub keys rotate --today",
                )
                continue
            self.opener.use([other for other in self.opener.keys if other.id != key.id])
            _log.info("opening key %d forgotten: its epochs are closed", key.id)
            self._forgot = elapsed
            try:
                forget_keys(self.path, [key.id])
            except KeysUnusable as error:
                self._warn("file", f"old keys stay in their file: {error}; run: hubbub keys rotate")
            return

    async def _forget_tags(self) -> None:
        """Deletes tags of windows closed for an hour, once a later epoch has reports."""
        now = self.clocks.earliest() - BELIEVED_SECONDS
        expired = {w: until for w, until in (await self.store.tag_ends()).items() if until <= now}
        starts = await counted_starts(self.bundle, self.store) if expired else []
        for window, until in expired.items():
            if starts and starts[-1] >= until:
                await self.store.forget(window)

    def _warn(self, what: str, message: str) -> None:
        if what not in self._logged:
            self._logged.add(what)
            _log.warning(message)


def moved_past(starts: Sequence[int], end: int, longest: str) -> bool:
    """Whether counted reports show that epochs that began before `end` are closed.

    The last of the later epochs must have begun when those before `end` were closed, and they must
    span two of the longest: a clock that was temporarily ahead leaves a gap instead. `longest` is
    the length of the longest epochs.
    """
    after = [start for start in starts if start >= end]
    closed = closing_time(epoch_at(end - 1, longest), longest)
    return bool(after) and after[-1] >= max(closed, after[0] + 2 * EPOCH_SECONDS[longest])
