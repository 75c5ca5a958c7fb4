"""Checks the replies of Redis about the pool; what is malformed is left out and logged."""

import logging
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable
from hubbub.shuffler.shards import MAX_SHARDS, Place

_log: Final = logging.getLogger("hubbub.shuffler")

TERMS: Final = ("acknowledged", "dummies", "pooled", "in_flight", "withheld")
_MAX: Final = 1 << 53


class Level(NamedTuple):
    """A pool's state: the reports in it, and how often any were taken."""

    reports: int
    takes: int


class PoolReplies:
    """Reads the replies. What cannot be read is logged, each once."""

    def __init__(self) -> None:
        self._strange: set[str] = set()

    def windows(self, index: str, names: Iterable[bytes]) -> list[Window]:
        """The windows that an index names."""
        result = []
        for name in names:
            try:
                result.append(Window.parse(name))
            except ValueError:
                self._leave(f"shuffler:{index} has {name!r}, which is not a window")
        return sorted(result)

    def batch_id(self, place: Place, name: bytes) -> bytes | None:
        """The id of a batch in flight, or of a crowd; None if it is malformed."""
        try:
            return bytes.fromhex(name.decode("ascii"))
        except ValueError:
            self._leave(f"{place.stream}:{place.epoch} has a batch {name!r}, which is not an id")
            return None

    def shards(self, names: Iterable[bytes]) -> dict[Window, int]:
        """The windows in an index with their number of shards; the larger one if listed twice."""
        shard_counts: dict[Window, int] = {}
        for entry in names:
            name, _, number = entry.rpartition(b"/")
            try:
                window, shards = Window.parse(name), int(number)
            except ValueError:
                self._leave(f"shuffler:shards has {entry!r}, which is not a window's shards")
                continue
            if 1 < shards <= MAX_SHARDS:
                shard_counts[window] = max(shards, shard_counts.get(window, 1))
        return shard_counts

    def number(self, window: Window, raw: bytes | None) -> int:
        """The number of shards that a window began with; 1 if it is malformed."""
        try:
            shards = int(raw or 1)
        except ValueError:
            shards = 0
        if 1 <= shards <= MAX_SHARDS:
            return shards
        self._leave(f"the number of shards of {window.name} is unreadable")
        return 1

    def terms(self, window: Window, numbers: Sequence[bytes | int]) -> dict[str, int]:
        """A window's terms of the conservation law; all 0 if they are malformed."""
        try:
            return dict(zip(TERMS, map(_count, numbers), strict=True))
        except (ValueError, TypeError):
            self._leave(f"the number of reports in {window.name} is unreadable")
            return dict.fromkeys(TERMS, 0)

    def level(self, window: Window, numbers: Sequence[bytes | int]) -> Level:
        """The number of reports in a window's pool, and how often any were taken."""
        try:
            reports, takes = map(int, numbers)
        except ValueError as error:
            raise StoreUnavailable(f"{window.name}: its counts in Redis are not numbers") from error
        return Level(reports, takes)

    def _leave(self, what: str) -> None:
        if what not in self._strange:
            self._strange.add(what)
            _log.warning("in Redis %s; everything else continues", what)


def _count(raw: bytes | int) -> int:
    number = int(raw)
    if not 0 <= number < _MAX:
        raise ValueError("invalid count")
    return number
