"""Where totals live: the contract, and its fake in memory. redis.py is the real one."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hubbub.accounting import Window
from hubbub.mechanisms import Totals

Integers = npt.NDArray[np.int64]

DELETED: Final = "counted:deleted"
"""Of the law: reports that were counted, and whose totals were deleted since."""
DUMMIES: Final = "counted:dummies"
"""Of the law: dummies that were counted; they are in the totals' cells, and are nobody's report."""


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


@dataclass(frozen=True, slots=True)
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
    dummies: how many of the tags count as a crowd's dummies.
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
        told = {"counted": len(self.tags) - self.dummies, DUMMIES: self.dummies}
        told |= {"duplicate": self.duplicates, "fillers": self.fillers}
        told |= {f"rejected:{reason}": number for reason, number in self.rejected.items()}
        return {term: number for term, number in told.items() if number}


class Counted(NamedTuple):
    """How many reports a window holds, and how many dummies: one grows with every change of it."""

    reports: int
    dummies: int = 0

    @classmethod
    def of(cls, terms: Mapping[str, int]) -> "Counted":
        """From a window's terms of the law."""
        return cls(terms.get("counted", 0), terms.get(DUMMIES, 0))


@dataclass(frozen=True, slots=True)
class WindowTotals:
    """What a window holds.

    cells: shape (layout.size,), or empty if nothing was counted. counted: how many reports they sum
    up. batch_reports: counted of the smallest batch, 0 if
    that is not known.
    at: when the last reports were counted, in seconds since 1970; 0 if it is not known.
    dummies: how many the cells hold beside the reports.
    """

    cells: Integers
    counted: int
    batch_reports: int
    at: int
    dummies: int = 0

    @property
    def totals(self) -> Totals:
        """As mechanisms take them."""
        return Totals(self.cells.tolist(), self.counted, self.dummies)


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

    async def delete(self, window: Window) -> int:
        """Delete a closed window's totals; the law has their reports as counted:deleted.

        Answers how many they are. Its tags are forgotten before.
        """
        ...

    async def counted_by_window(self) -> Mapping[Window, int]:
        """How many tags every window holds that holds any."""
        ...

    async def room(self) -> float:
        """How many bytes more there is room for."""
        ...


@dataclass(slots=True)
class _Sums:
    cells: Integers | None = None
    tags: set[bytes] = field(default_factory=set)
    batches: set[bytes] = field(default_factory=set)
    terms: dict[str, int] = field(default_factory=dict)
    batch_sizes: list[int] = field(default_factory=list)
    at: int = 0


class MemoryStore:
    """A store in this process's memory: fast, and gone with it. Passes the same tests."""

    def __init__(self, shards: int = 1) -> None:
        self._shards = shards
        self._windows: dict[Window, list[_Sums]] = {}
        self._until: dict[Window, int] = {}

    async def shards(self, window: Window) -> int:
        """How many shards a window has: decided once, when it is first asked about."""
        return len(self._windows.setdefault(window, [_Sums() for _ in range(self._shards)]))

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        """Apply a commit whole or not at all; with SEEN, the tags that were counted before."""
        await self.shards(window)
        sums = self._windows[window][commit.shard]
        if commit.batch_id in sums.batches:
            return Outcome.ALREADY_APPLIED, frozenset()
        counted = sums.terms.get("counted", 0) + sums.terms.get(DUMMIES, 0)
        if len(commit.tags) and counted and not sums.tags:
            return Outcome.FORGOTTEN, frozenset()
        seen = sums.tags.intersection(commit.tags)
        if seen:
            return Outcome.SEEN, frozenset(seen)
        if commit.max_reports is not None and 0 < len(commit.tags) > commit.max_reports - counted:
            return Outcome.FULL, frozenset()
        self._until.setdefault(window, commit.seen_until)
        sums.batches.add(commit.batch_id)
        sums.tags.update(commit.tags)
        if len(commit.tags):
            sums.cells = commit.cells.copy() if sums.cells is None else sums.cells + commit.cells
            sums.batch_sizes.append(commit.batch_reports)
            sums.at = commit.at
        for term, number in commit.terms.items():
            sums.terms[term] = sums.terms.get(term, 0) + number
        return Outcome.APPLIED, frozenset()

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """What each of these windows holds, in their order."""
        return [self._held(self._windows.get(window, [])) for window in windows]

    def _held(self, shards: Sequence[_Sums]) -> WindowTotals:
        parts = [sums.cells for sums in shards if sums.cells is not None]
        cells = np.sum(parts, axis=0) if parts else np.zeros(0, dtype=np.int64)
        counted = sum(sums.terms.get("counted", 0) for sums in shards)
        batch_reports = min(
            (batch_reports for sums in shards for batch_reports in sums.batch_sizes), default=0
        )
        dummies = sum(sums.terms.get(DUMMIES, 0) for sums in shards)
        return WindowTotals(
            cells, counted, batch_reports, max((sums.at for sums in shards), default=0), dummies
        )

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        """What every window of these streams holds, where it holds any report."""
        counts = (await self.report_counts()).items()
        found = {w: Counted.of(terms) for w, terms in counts if w.stream in streams}
        return {window: held for window, held in found.items() if held.reports}

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """Per window, the aggregator's terms of the conservation law."""
        return {
            window: sum((Counter(sums.terms) for sums in shards), Counter())
            for window, shards in sorted(self._windows.items())
        }

    async def remembered(self) -> Mapping[Window, int]:
        """Every window whose tags are held, and until when they are needed."""
        return dict(self._until)

    async def forget(self, window: Window) -> None:
        """Forget a window's tags, and ids but the newest: it counts no report any more."""
        self._until.pop(window, None)
        for sums in self._windows.get(window, []):
            sums.tags.clear()

    async def delete(self, window: Window) -> int:
        """Delete a closed window's totals; the law has their reports as counted:deleted."""
        number = 0
        for sums in self._windows.get(window, []):
            counted = sums.terms.get("counted", 0) + sums.terms.pop(DUMMIES, 0)
            sums.terms["counted"] = 0
            sums.terms[DELETED] = sums.terms.get(DELETED, 0) + counted
            sums.cells, sums.batch_sizes, sums.at = None, [], 0
            number += counted
        return number

    async def counted_by_window(self) -> Mapping[Window, int]:
        """How many tags every window holds that holds any."""
        shards = {window: self._windows[window] for window in self._until}
        return {window: sum(len(sums.tags) for sums in own) for window, own in shards.items()}

    async def room(self) -> float:
        """Infinity: memory has no limit here."""
        return inf
