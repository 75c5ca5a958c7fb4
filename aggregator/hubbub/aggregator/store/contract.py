"""Contract of the storage of totals, for redis.py and redis_and_files.py; files.py only reads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hubbub.conservation import Window

Integers = npt.NDArray[np.int64]

DELETED: Final = "counted:deleted"
"""Of the law: reports that were counted, and whose totals were deleted since."""
DUMMIES: Final = "counted:dummies"
"""Of the law: dummies that were counted; they are in the totals' cells, and are nobody's report."""


def without_excess(terms: Mapping[str, int]) -> Mapping[str, int]:
    """A window's terms of the law over all shards, without more dummies than counted reports.

    While a crowd arrives, its number of reports may be below zero: a part that was mostly counted
    before has fewer reports left than its share of dummies, which other parts make up for.
    """
    negative_count = min(terms.get("counted", 0), 0)
    if not negative_count:
        return terms
    return {**terms, "counted": 0, DUMMIES: terms[DUMMIES] + negative_count}


class Outcome(Enum):
    """Result of a commit."""

    APPLIED = "applied"
    ALREADY_APPLIED = "already_applied"
    """This batch id was applied before; nothing changed."""
    SEEN = "seen"
    """Some tags were counted in another batch; nothing changed. Fold again without them."""
    FULL = "full"
    """The window would hold more tags than it may; nothing changed."""
    FORGOTTEN = "forgotten"
    """Reports were counted here whose tags are forgotten: it takes none any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """All changes of one batch in one shard of a window.

    A report's tag determines its shard; a window has one shard unless it is busy.

    Args:
        tags: of the reports that `cells` sums up, 16 bytes each, all different.
        cells: sum of their payloads, shape (layout.size,); empty if there is nothing to add.
        duplicates: number of the batch's reports that were counted before.
        rejected: number of refused reports, by reason.
        batch_reports: number of the whole batch's counted reports, rounded down, which is the crowd
            of each; 0 if unknown.
        seen_until: when tags may be deleted, in seconds since 1970; `forget` deletes them.
        at: current time, in whole seconds since 1970; 0 if unknown.
        max_reports: limit of the shard's tags afterwards; None for any number.
        dummies: the part's share of the crowd's dummies, which are not counted as reports. It is
            more than the tags if most of the part was counted before (decision 0209).
        fillers: number of reports without an answer.
    """

    batch_id: bytes
    tags: Sequence[bytes]
    cells: Integers
    duplicates: int
    rejected: Mapping[str, int]
    seen_until: int
    shard: int = 0
    batch_reports: int = 0
    at: int = 0
    max_reports: int | None = None
    dummies: int = 0
    fillers: int = 0

    @property
    def terms(self) -> dict[str, int]:
        """Its terms of the law."""
        counts = {"counted": len(self.tags) - self.dummies, DUMMIES: self.dummies}
        counts |= {"duplicate": self.duplicates, "fillers": self.fillers}
        counts |= {f"rejected:{reason}": number for reason, number in self.rejected.items()}
        return {term: number for term, number in counts.items() if number}


class Counted(NamedTuple):
    """Numbers of reports and dummies in a window; every change increases one of them.

    Args:
        last: last change of its cells, as in WindowTotals. It distinguishes restored totals with
            the same number of reports.
    """

    reports: int
    dummies: int = 0
    last: bytes = b""

    @property
    def tags(self) -> int:
        """Number of reports and dummies together."""
        return self.reports + self.dummies

    @classmethod
    def of(cls, terms: Mapping[str, int], last: bytes = b"") -> "Counted":
        """The counts in a window's terms of the law."""
        return cls(terms.get("counted", 0), terms.get(DUMMIES, 0), last)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTotals:
    """The totals of a window.

    Args:
        cells: shape (layout.size,); empty if nothing was counted, or a file has them.
        counted: number of reports in the cells.
        batch_reports: counted reports of the smallest batch; 0 if unknown.
        at: when the last reports were counted, in seconds since 1970; 0 if unknown.
        dummies: number of dummies in the cells.
        last: for every shard, 8 bytes of the id of the batch that changed the cells last, or random
            ones; empty if unknown.
    """

    cells: Integers
    counted: int
    batch_reports: int
    at: int
    dummies: int = 0
    last: bytes = b""

    @property
    def state(self) -> tuple[int, int, bytes]:
        """Equal for the same totals in Redis and in a file, whichever of them has the cells."""
        return self.counted, self.dummies, self.last


class TotalsReader(Protocol):
    """Read access to totals per window."""

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """Totals of these windows, in their order."""

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        """Counts of all windows of these streams that have a report."""

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """Per window, the aggregator's terms of the conservation law."""


class DeletableTotals(TotalsReader, Protocol):
    """Totals per window, which can be deleted."""

    async def tag_ends(self) -> Mapping[Window, int]:
        """Windows whose tags are stored, and until when they are needed."""

    async def forget(self, window: Window) -> None:
        """Deletes a window's tags, and ids except the newest: it counts no more reports."""

    async def delete(self, window: Window, reports_in_file: int = 0) -> int:
        """Deletes a closed window's totals, and returns the number of reports.

        The law then has them as counted:deleted. Its tags are deleted before. `reports_in_file`
        is that number if the store has lost the window.
        """


class TotalsStore(DeletableTotals, Protocol):
    """Totals per window, changed by whole batches, each exactly once in every shard."""

    async def shards(self, window: Window) -> int:
        """Number of a window's shards, which the first call decides."""

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        """Applies a commit atomically; with SEEN, returns the tags that were counted before."""

    async def drop_cells(self, window: Window) -> None:
        """Drops a closed window's cells, which a file has; its counts stay.

        Its tags are deleted before.
        """

    async def counted_by_window(self) -> Mapping[Window, int]:
        """Number of tags of every window that has any."""

    async def room(self) -> float:
        """Number of bytes that can still be stored."""
