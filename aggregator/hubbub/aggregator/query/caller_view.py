"""What one caller sees: the same answers, of their metrics alone. Others do not exist for them."""

from collections.abc import Callable, MutableMapping, Sequence
from copy import copy
from dataclasses import fields, replace
from typing import Any, Protocol

from hubbub.aggregator.query.answers import PipelineStatus, ReportCounts
from hubbub.aggregator.query.cache import CoalescedRead
from hubbub.aggregator.query.marks import Mark, Marks
from hubbub.aggregator.query.totals import TotalsByEpoch
from hubbub.catalog import Bundle
from hubbub.errors import BadParameter, UnknownMark

Sees = Callable[[str], bool]
"""Whether a metric of this name, or a tier, exists for somebody."""


class Viewer(Protocol):
    """Who asks."""

    @property
    def sees_all(self) -> bool:
        """Whether no metric is hidden from them."""

    def sees(self, metric: str) -> bool:
        """Whether a metric of this name, or a tier, exists for them."""


Law = CoalescedRead[PipelineStatus]


def caller_view(
    collected: TotalsByEpoch,
    marks: Marks,
    law: Law,
    sees: Sees,
    bundles: MutableMapping[frozenset[str], Bundle],
) -> tuple[TotalsByEpoch, Marks, Law]:
    """Totals, marks and law as somebody sees them. bundles: made before, by what is seen."""
    names = frozenset(filter(sees, collected.bundle.metrics))
    if names not in bundles:
        bundles[names] = _visible_bundle(collected.bundle, sees)
    own = copy(collected)
    own.bundle = bundles[names]

    async def counts() -> PipelineStatus:
        return _visible_status(await law.get(), sees)

    return own, _VisibleMarks(marks, sees), CoalescedRead(counts)


def _visible_bundle(bundle: Bundle, sees: Sees) -> Bundle:
    """The bundle without what is hidden, which nothing that is left names."""
    metrics = {name: metric for name, metric in bundle.metrics.items() if sees(name)}
    for name, metric in metrics.items():
        if metric.supersedes and metric.supersedes not in metrics:
            metrics[name] = replace(metric, supersedes="")
    return replace(bundle, metrics=metrics)


def _visible_status(status: PipelineStatus, sees: Sees) -> PipelineStatus:
    """The law over the windows that are left, added up anew."""
    windows = [one for one in status.windows if sees(one.stream)]
    return replace(
        status,
        # Not what hidden windows say: that they do not balance is theirs alone.
        balanced=None if status.balanced is None else all(one.balanced for one in windows),
        total=_total(status.total, windows),
        windows=windows,
    )


def _total(total: ReportCounts, windows: Sequence[ReportCounts]) -> ReportCounts:
    sums: dict[str, Any] = {
        one.name: None
        if getattr(total, one.name) is None
        else sum(getattr(window, one.name) or 0 for window in windows)
        for one in fields(total)
        if one.name not in {"stream", "epoch", "date", "balanced"}
    }
    balanced = None if total.balanced is None else all(one.balanced for one in windows)
    return replace(total, balanced=balanced, **sums)


class _VisibleMarks:
    """Marks but for those of hidden metrics."""

    def __init__(self, marks: Marks, sees: Sees) -> None:
        self._marks = marks
        self._sees = sees

    async def all(self, metric: str = "") -> list[Mark]:
        """Every mark, or those that a metric's trend has; by date."""
        return [mark for mark in await self._marks.all(metric) if self._shows(mark)]

    async def save(self, mark: Mark) -> Mark:
        """Save a mark, in place of one of its name. Raises BadParameter if the name is taken."""
        if any(one.name == mark.name and not self._shows(one) for one in await self._marks.all()):
            raise BadParameter(f'a mark\'s name "{mark.name}" is taken; choose another')
        return await self._marks.save(mark)

    async def remove(self, name: str) -> None:
        """Forget one. Raises UnknownMark."""
        shown = [one.name for one in await self.all()]
        if name not in shown:
            there = ", ".join(sorted(shown)[:20]) or "none"
            raise UnknownMark(f'no mark is called "{name[:60]}"; set are: {there}')
        await self._marks.remove(name)

    def _shows(self, mark: Mark) -> bool:
        return not mark.metric or self._sees(mark.metric)
