"""Where totals live: the contract, which redis.py and filed.py keep; files.py that of reading."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hubbub.conservation import Window
from hubbub.mechanisms import Totals

Integers = npt.NDArray[np.int64]

DELETED: Final = "counted:deleted"
"""Of the law: reports that were counted, and whose totals were deleted since."""
DUMMIES: Final = "counted:dummies"
"""Of the law: dummies that were counted; they are in the totals' cells, and are nobody's report."""


def settled(terms: Mapping[str, int]) -> Mapping[str, int]:
    """A window's terms of the law over all shards, where no more are dummies than were counted.

    While its crowd comes in its reports may stand below zero: of a part that was mostly counted
    before, more are said to be dummies than are left of it, and other parts make it up.
    """
    below = min(terms.get("counted", 0), 0)
    if not below:
        return terms
    return {**terms, "counted": 0, DUMMIES: terms[DUMMIES] + below}


class Outcome(Enum):
    """What became of a commit."""

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
    """All that one batch changes in one shard of a window.

    A report's tag says which shard it belongs to; a window has one unless it is hot.

    tags: of the reports that `cells` sums up, 16 bytes each, all different.
    cells: what they add, shape (layout.size,); empty if there is nothing to add.
    duplicates: how many of the batch's reports were counted before.
    rejected: how many were refused, by reason.
    batch_reports: how many reports of the whole batch are counted, at most as many as truly are; 0
        if that is not known: they are the crowd that each of them hides in.
    seen_until: when tags may be forgotten, in seconds since 1970; somebody has to (forget).
    at: when this is, in whole seconds since 1970; 0 if it is not known.
    max_reports: tags that the shard may hold afterwards; None for any number.
    dummies: how many reports less are counted than there are tags: a crowd's dummies, by its share.
        More than there are tags, if most of the part was counted before (decision 0209).
    fillers: how many of the batch's reports were none, and only hid that there was none.
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
        """What the law has of it."""
        counts = {"counted": len(self.tags) - self.dummies, DUMMIES: self.dummies}
        counts |= {"duplicate": self.duplicates, "fillers": self.fillers}
        counts |= {f"rejected:{reason}": number for reason, number in self.rejected.items()}
        return {term: number for term, number in counts.items() if number}


class Counted(NamedTuple):
    """How many reports a window holds, and how many dummies: one grows with every change of it.

    last: of what changed its cells last, as WindowTotals has it. Totals that were put back, and
    then counted as many reports as before, are others.
    """

    reports: int
    dummies: int = 0
    last: bytes = b""

    @property
    def tags(self) -> int:
        """How many both are."""
        return self.reports + self.dummies

    @classmethod
    def of(cls, terms: Mapping[str, int], last: bytes = b"") -> "Counted":
        """From a window's terms of the law."""
        return cls(terms.get("counted", 0), terms.get(DUMMIES, 0), last)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTotals:
    """What a window holds.

    cells: shape (layout.size,), or empty if nothing was counted, or a file has them. counted: how
    many reports they sum up. batch_reports: counted of the smallest batch, 0 if that is not known.
    at: when the last reports were counted, in seconds since 1970; 0 if it is not known.
    dummies: how many the cells hold beside the reports.
    last: 8 bytes of the id of the batch that changed the cells last, or random ones, of every
    shard; empty if that is not known.
    """

    cells: Integers
    counted: int
    batch_reports: int
    at: int
    dummies: int = 0
    last: bytes = b""

    @property
    def totals(self) -> Totals:
        """As mechanisms take them."""
        return Totals(cells=self.cells.tolist(), reports=self.counted, dummies=self.dummies)


class TotalsReader(Protocol):
    """Totals per window, to be asked about."""

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """What each of these windows holds, in their order."""
        ...

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        """What every window of these streams holds, where it holds any report."""
        ...

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """Per window, the aggregator's terms of the conservation law."""
        ...


class TotalsStore(TotalsReader, Protocol):
    """Totals per window, changed by whole batches, each exactly once in every shard."""

    async def shards(self, window: Window) -> int:
        """How many shards a window has: decided once, when it is first asked about."""
        ...

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        """Apply a commit whole or not at all; with SEEN, the tags that were counted before."""
        ...

    async def remembered(self) -> Mapping[Window, int]:
        """Every window whose tags are held, and until when they are needed."""
        ...

    async def forget(self, window: Window) -> None:
        """Forget a window's tags, and ids but the newest: it counts no report any more."""
        ...

    async def delete(self, window: Window, filed: int = 0) -> int:
        """Delete a closed window's totals; the law has their reports as counted:deleted.

        Answers how many they are. Its tags are forgotten before. filed: of how many reports a file
        has the totals, where the store has lost the window.
        """
        ...

    async def drop_cells(self, window: Window) -> None:
        """Drop a closed window's cells, which a file has; all that is counted of it stays.

        Its tags are forgotten before.
        """
        ...

    async def counted_by_window(self) -> Mapping[Window, int]:
        """How many tags every window holds that holds any."""
        ...

    async def room(self) -> float:
        """How many bytes more there is room for."""
        ...
