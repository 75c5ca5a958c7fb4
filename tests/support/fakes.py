"""What the aggregator keeps in Redis, kept in memory: passes the tests of the real ones."""

import secrets
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from hubbub.aggregator.releases.release_log import ReleaseLog
from hubbub.aggregator.store.contract import (
    DELETED,
    DUMMIES,
    Commit,
    Counted,
    Integers,
    Outcome,
    WindowTotals,
    without_excess,
)
from hubbub.conservation import Window
from hubbub.mechanisms import Totals


@dataclass(slots=True)
class _Sums:
    cells: Integers | None = None
    tags: set[bytes] = field(default_factory=set)
    batches: set[bytes] = field(default_factory=set)
    terms: dict[str, int] = field(default_factory=dict)
    batch_sizes: list[int] = field(default_factory=list)
    at: int = 0
    last: bytes = b""


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
        duplicate_tags = sums.tags.intersection(commit.tags)
        if duplicate_tags:
            return Outcome.SEEN, frozenset(duplicate_tags)
        if commit.max_reports is not None and 0 < len(commit.tags) > commit.max_reports - counted:
            return Outcome.FULL, frozenset()
        self._until.setdefault(window, commit.seen_until)
        sums.batches.add(commit.batch_id)
        sums.tags.update(commit.tags)
        if len(commit.tags):
            sums.cells = commit.cells.copy() if sums.cells is None else sums.cells + commit.cells
            sums.batch_sizes.append(commit.batch_reports)
            sums.at, sums.last = commit.at, commit.batch_id
        for term, number in commit.terms.items():
            sums.terms[term] = sums.terms.get(term, 0) + number
        return Outcome.APPLIED, frozenset()

    async def count(self, window: Window, totals: Totals) -> None:
        """Add totals as one batch of reports that were never counted before."""
        prefix = secrets.token_bytes(8)
        tags = [prefix + number.to_bytes(8, "big") for number in range(totals.reports)]
        cells = np.array(totals.cells)
        reports = totals.reports
        await self.add(
            window,
            Commit(
                batch_id=2 * prefix,
                tags=tags,
                cells=cells,
                duplicates=0,
                rejected={},
                seen_until=1 << 40,
                batch_reports=reports,
            ),
        )

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """What each of these windows holds, in their order."""
        return [self._summed_shards(self._windows.get(window, [])) for window in windows]

    def _summed_shards(self, shards: Sequence[_Sums]) -> WindowTotals:
        parts = [sums.cells for sums in shards if sums.cells is not None]
        cells = np.sum(parts, axis=0) if parts else np.zeros(0, dtype=np.int64)
        counts = Counter[str]()
        for sums in shards:
            counts.update(sums.terms)
        batch_reports = min(
            (batch_reports for sums in shards for batch_reports in sums.batch_sizes), default=0
        )
        at = max((sums.at for sums in shards), default=0)
        counted, dummies, last = Counted.of(without_excess(counts), _last_batches(shards))
        return WindowTotals(
            cells=cells,
            counted=counted,
            batch_reports=batch_reports,
            at=at,
            dummies=dummies,
            last=last,
        )

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        """What every window of these streams holds, where it holds any report."""
        counts = (await self.report_counts()).items()
        result = {
            w: Counted.of(terms, _last_batches(self._windows[w]))
            for w, terms in counts
            if w.stream in streams
        }
        return {window: count for window, count in result.items() if count.reports}

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """Per window, the aggregator's terms of the conservation law."""
        counts: dict[Window, Counter[str]] = {}
        for window, shards in sorted(self._windows.items()):
            counts[window] = Counter()
            for sums in shards:
                counts[window].update(sums.terms)
        return {window: without_excess(terms) for window, terms in counts.items()}

    async def tag_ends(self) -> Mapping[Window, int]:
        """Every window whose tags are held, and until when they are needed."""
        return dict(self._until)

    async def forget(self, window: Window) -> None:
        """Forget a window's tags, and ids but the newest: it counts no report any more."""
        self._until.pop(window, None)
        for sums in self._windows.get(window, []):
            sums.tags.clear()

    async def delete(self, window: Window, reports_in_file: int = 0) -> int:
        """Delete a closed window's totals; the law has their reports as counted:deleted."""
        number = 0
        await self.shards(window)
        if reports_in_file and not self._windows[window][0].terms:
            self._windows[window][0].terms["counted"] = reports_in_file
        for sums in self._windows[window]:
            counted = sums.terms.get("counted", 0) + sums.terms.pop(DUMMIES, 0)
            sums.terms["counted"] = 0
            sums.terms[DELETED] = sums.terms.get(DELETED, 0) + counted
            sums.cells, sums.batch_sizes, sums.at, sums.last = None, [], 0, b""
            number += counted
        return number

    async def drop_cells(self, window: Window) -> None:
        """Drop a closed window's cells, which a file has; all that is counted of it stays."""
        for sums in self._windows.get(window, []):
            sums.cells = None

    async def counted_by_window(self) -> Mapping[Window, int]:
        """How many tags every window holds that holds any."""
        shards = {window: self._windows[window] for window in self._until}
        return {
            window: sum(len(sums.tags) for sums in window_sums)
            for window, window_sums in shards.items()
        }

    async def room(self) -> float:
        """Infinity: memory has no limit here."""
        return inf


def _last_batches(shards: Sequence[_Sums]) -> bytes:
    """What changed the cells of these last."""
    return b"".join(sums.last for sums in shards)


class MemoryReleaseLog(ReleaseLog):
    """A record in this process's memory. Passes the same tests."""

    def __init__(self) -> None:
        self._stored: list[bytes] = []
        self._reported_unreadable = 0

    async def _texts(self) -> list[bytes]:
        return list(self._stored)

    async def _append(self, length: int, text: str) -> list[bytes]:
        if more := self._stored[length:]:
            return more
        self._stored.append(text.encode())
        return []
