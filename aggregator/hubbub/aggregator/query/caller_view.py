"""What one caller sees: the same answers, of their metrics alone. Others do not exist for them."""

from collections.abc import Callable, MutableMapping, Sequence
from copy import copy
from dataclasses import fields, replace
from typing import Any, Literal, Protocol

from hubbub.aggregator.query.answers import PipelineStatus, ReportCounts
from hubbub.aggregator.query.cache import CoalescedRead
from hubbub.aggregator.query.candidates import CandidateLists, SavedList
from hubbub.aggregator.query.marks import Mark, Marks, mark_named
from hubbub.aggregator.query.totals import TotalsByEpoch
from hubbub.bundles import Bundle

Sees = Callable[[str], bool]
"""Whether a metric of this name, or a tier, exists for somebody."""


class Viewer(Protocol):
    """Who asks."""

    @property
    def sees_all(self) -> bool:
        """Whether no metric is hidden from them."""

    @property
    def may_all(self) -> bool:
        """Whether they may everything with all metrics."""

    def sees(self, metric: str) -> bool:
        """Whether a metric of this name, or a tier, exists for them."""

    def check(self, role: Literal["publisher"], metric: str = "") -> None:
        """Raise AccessRefused without this role for this metric; "": for any metric."""


Law = CoalescedRead[PipelineStatus]


def caller_view(
    collected: TotalsByEpoch,
    law: Law,
    sees: Sees,
    bundles: MutableMapping[frozenset[str], Bundle],
) -> tuple[TotalsByEpoch, Law]:
    """Totals and law as somebody sees them. bundles: made before, by what is seen."""
    names = frozenset(filter(sees, collected.bundle.metrics))
    if names not in bundles:
        bundles[names] = _visible_bundle(collected.bundle, sees)
    own = copy(collected)
    own.bundle = bundles[names]

    async def counts() -> PipelineStatus:
        return _visible_status(await law.get(), sees)

    return own, CoalescedRead(counts)


def _visible_bundle(bundle: Bundle, sees: Sees) -> Bundle:
    """The bundle without what is hidden, which nothing that is left names."""
    metrics = {name: metric for name, metric in bundle.metrics.items() if sees(name)}
    for name, metric in metrics.items():
        if metric.supersedes and metric.supersedes not in metrics:
            metrics[name] = replace(metric, supersedes="")
    return replace(bundle, metrics=metrics)


def _visible_status(status: PipelineStatus, sees: Sees) -> PipelineStatus:
    """The law over the windows that are left, added up anew."""
    windows = [window for window in status.windows if sees(window.stream)]
    return replace(
        status,
        # Not what hidden windows say: that they do not balance is theirs alone.
        balanced=None if status.balanced is None else all(window.balanced for window in windows),
        total=_total(status.total, windows),
        windows=windows,
    )


def _total(total: ReportCounts, windows: Sequence[ReportCounts]) -> ReportCounts:
    sums: dict[str, Any] = {
        field.name: None
        if getattr(total, field.name) is None
        else sum(getattr(window, field.name) or 0 for window in windows)
        for field in fields(total)
        if field.name not in {"stream", "epoch", "date", "balanced"}
    }
    balanced = None if total.balanced is None else all(window.balanced for window in windows)
    return replace(total, balanced=balanced, **sums)


class CallersLists:
    """Saved lists for one caller: everybody reads every list, and publishers write them."""

    def __init__(self, lists: CandidateLists, viewer: Viewer) -> None:
        self._lists = lists
        self._viewer = viewer

    async def all(self) -> list[SavedList]:
        """Every list, by name."""
        return await self._lists.all()

    async def find(self, name: str) -> tuple[str, ...]:
        """The strings of one list. Raises UnknownList."""
        return await self._lists.find(name)

    async def save(self, name: str, strings: Sequence[str], *, add: bool = False) -> SavedList:
        """Save a list. Raises AccessRefused for callers who are not publishers."""
        self._viewer.check("publisher")
        return await self._lists.save(name, strings, add=add)

    async def remove(self, name: str) -> None:
        """Remove a list. Raises AccessRefused for callers who are not publishers."""
        self._viewer.check("publisher")
        await self._lists.remove(name)


class CallersMarks:
    """Marks as one caller may read and write them: without those of hidden metrics."""

    def __init__(self, marks: Marks, viewer: Viewer) -> None:
        self._marks = marks
        self._viewer = viewer

    async def all(self, metric: str = "") -> list[Mark]:
        """Every mark that the caller sees, or those that a metric's trend has; by date."""
        marks = await self._marks.all(metric)
        return [mark for mark in marks if not mark.metric or self._viewer.sees(mark.metric)]

    async def save(self, mark: Mark) -> Mark:
        """Save a mark. Raises AccessRefused for callers who do not publish its metric."""
        self._viewer.check("publisher", mark.metric)
        return await self._marks.save(mark)

    async def remove(self, name: str, metric: str = "") -> None:
        """Remove a mark. Raises UnknownMark, BadParameter or AccessRefused."""
        self._viewer.check("publisher")
        mark = mark_named(await self.all(), name, metric)
        self._viewer.check("publisher", mark.metric)
        await self._marks.remove(mark.name, mark.metric)
