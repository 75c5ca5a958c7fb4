"""One caller's view: the same answers for their metrics only; others do not exist for them."""

from collections.abc import Callable, MutableMapping, Sequence
from copy import copy
from dataclasses import fields, replace
from typing import Any, Literal, Protocol

from hubbub.aggregator.query.answers import PipelineStatus, ReportCounts
from hubbub.aggregator.query.cache import CoalescedRead
from hubbub.aggregator.query.totals import TotalsByEpoch
from hubbub.bundles import Bundle

Sees = Callable[[str], bool]
"""Whether a metric of this name, or a tier, exists for somebody."""


class Viewer(Protocol):
    """The caller, as the query core sees them."""

    @property
    def sees_all(self) -> bool:
        """Whether no metric is hidden from them."""

    @property
    def may_all(self) -> bool:
        """Whether everything is allowed for all metrics."""

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
    """Totals and law as a caller may see them; `bundles` caches smaller bundles."""
    names = frozenset(filter(sees, collected.bundle.metrics))
    if names not in bundles:
        bundles[names] = _visible_bundle(collected.bundle, sees)
    own = copy(collected)
    own.bundle = bundles[names]

    async def counts() -> PipelineStatus:
        return _visible_status(await law.get(), sees)

    return own, CoalescedRead(counts)


def _visible_bundle(bundle: Bundle, sees: Sees) -> Bundle:
    """The bundle without hidden metrics, and without references to them."""
    metrics = {name: metric for name, metric in bundle.metrics.items() if sees(name)}
    for name, metric in metrics.items():
        if metric.supersedes and metric.supersedes not in metrics:
            metrics[name] = replace(metric, supersedes="")
    return replace(bundle, metrics=metrics)


def _visible_status(status: PipelineStatus, sees: Sees) -> PipelineStatus:
    """The law over the visible windows, with new sums."""
    windows = [window for window in status.windows if sees(window.stream)]
    return replace(
        status,
        # Without hidden windows: their balance is only for callers who may see them.
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
