"""The conservation law: the aggregator's own terms, together with the shuffler's."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from hubbub.aggregator.query.shuffler_terms import Shuffler
from hubbub.aggregator.store.contract import DELETED, TotalsReader
from hubbub.conservation import Window, balances, sum_terms

# Two services are queried one after the other: reports that move meanwhile are on neither side.
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.2
# The terms that only the shuffler has.
_BEYOND: Final = ("acknowledged", "dummies", "pooled", "in_flight", "withheld")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCounts:
    """Terms of the conservation law for one stream in one epoch.

    The sum of acknowledged and dummies equals the sum of the other terms.

    Args:
        date: None for an unknown stream.
        acknowledged, dummies, pooled, in_flight, withheld: terms of the shuffler; None if unknown.
        fillers: reports without an answer.
        deleted: counted reports whose totals were deleted.
    """

    stream: str
    epoch: int
    date: str | None
    acknowledged: int | None
    dummies: int | None
    pooled: int | None
    in_flight: int | None
    counted: int
    duplicate: int
    rejected: int
    fillers: int
    withheld: int | None
    balanced: bool | None
    deleted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """The conservation law: where every report is.

    Args:
        complete: whether the shuffler's terms are known; otherwise `balanced` is None.
        waiting: why the waiting reports of streams, or of all, are not shown; "" if they are.
    """

    complete: bool
    balanced: bool | None
    total: ReportCounts
    windows: list[ReportCounts]
    notice: str = ""
    waiting: str = ""


async def status(
    store: TotalsReader,
    upstream: Shuffler | None,
    date_of: Callable[[Window], str | None] = lambda _: None,
) -> PipelineStatus:
    """The law over every window; reads again for a second if it seems not to balance."""
    for _ in range(_TRIES):
        # The aggregator first: reports counted meanwhile appear as in flight, not twice.
        counted = await store.report_counts()
        upstream_terms = await upstream.terms(fresh=True) if upstream else None
        upstream_total = upstream.total if upstream and upstream_terms is not None else {}
        lines = [
            _line(
                window,
                date_of(window),
                counted.get(window, {}),
                None if upstream_terms is None else upstream_terms.get(window, {}),
                shows_pooled=not upstream_total,
            )
            for window in sorted({*counted, *(upstream_terms or {})})
        ]
        if upstream_terms is None or all(line.balanced for line in lines):
            break
        await asyncio.sleep(_PAUSE_SECONDS)
    is_known = upstream_terms is not None
    beyond_all = upstream_total or sum_terms((upstream_terms or {}).values())
    total = _line(
        Window("all", 0),
        None,
        sum_terms(counted.values()),
        beyond_all if is_known else None,
        shows_pooled="pooled" in beyond_all,
    )
    return PipelineStatus(
        complete=is_known,
        balanced=all(line.balanced for line in lines) if is_known else None,
        total=replace(total, deleted=sum(line.deleted for line in lines)),
        windows=lines,
        waiting=_waiting(total) if upstream_total else "",
    )


def _waiting(total: ReportCounts) -> str:
    """What is shown of waiting reports outside development, and why not more."""
    text = "not shown" if total.pooled is None else "shown for all streams together"
    return (
        f"Waiting reports are {text}, and a stream from its first batch on: a number that grows "
        "as a report arrives would show which stream the report is of."
    )


def _line(
    window: Window,
    date: str | None,
    counted_terms: Mapping[str, int],
    counts: Mapping[str, int] | None,
    *,
    shows_pooled: bool,
) -> ReportCounts:
    terms: dict[str, Any] = sum_terms([counted_terms, counts or {}])
    balanced = None if counts is None else balances(terms)
    if counts is None:
        terms |= dict.fromkeys(_BEYOND)
    elif not shows_pooled:
        terms["pooled"] = None
    return ReportCounts(
        stream=window.stream,
        epoch=window.epoch,
        date=date,
        **terms,
        balanced=balanced,
        deleted=counted_terms.get(DELETED, 0),
    )


def visible_status(status: PipelineStatus, sees: Callable[[str], bool]) -> PipelineStatus:
    """The law over the windows whose metrics a caller `sees`, with new sums."""
    windows = [window for window in status.windows if sees(window.stream)]
    # Without hidden windows: their balance is only for callers who may see them.
    balanced = None if status.balanced is None else all(window.balanced for window in windows)
    sums: dict[str, Any] = {
        field.name: sum(getattr(window, field.name) or 0 for window in windows)
        for field in fields(ReportCounts)
        if field.name not in {"stream", "epoch", "date", "balanced"}
        and getattr(status.total, field.name) is not None
    }
    total = replace(status.total, balanced=balanced, **sums)
    if status.waiting:  # what waits is shown for all streams together at most
        total = replace(total, pooled=None)
    waiting = status.waiting and _waiting(total)
    return replace(status, balanced=balanced, total=total, windows=windows, waiting=waiting)
