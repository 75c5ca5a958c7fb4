"""The conservation law: the aggregator's own terms, together with the shuffler's."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import grpc
import grpc.aio

from hubbub.aggregator.query.totals import EpochSelection
from hubbub.aggregator.store.contract import DELETED, TotalsReader
from hubbub.authoring.crowds.dummy_counts import hides_withheld
from hubbub.conservation import Window, balances, sum_terms
from hubbub.runtime.rpc.server import channel
from hubbub.runtime.tls import TlsFolder
from hubbub.wire.v1.methods import stub
from hubbub.wire.v1.services_pb2 import StatusRequest

Terms = Mapping[Window, Mapping[str, int]]

# Two services are queried one after the other: reports that move meanwhile are on neither side.
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.2
_CALL_SECONDS: Final = 2.0
_FRESH_SECONDS: Final = 1.0
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


class Shuffler:
    """Client of the shuffler's Operator service, which reads counts once a second at most.

    While a call is slow, callers that do not need fresh terms get the previous ones.

    Attributes:
        reserve: in minimum batches, if known.
        total: terms over all streams, as of the last call of `terms`.
    """

    def __init__(self, address: str, tls: TlsFolder | None) -> None:
        self._address, self._tls = address, tls
        self._channel = channel(address, "shuffler", tls=tls)
        self._cached_terms: tuple[float, Terms | None] | None = None
        self.reserve: float | None = None
        self.total: Mapping[str, int] = {}
        self._asking = asyncio.Lock()

    async def terms(self, *, fresh: bool = False) -> Terms | None:
        """Terms per window, up to a second old unless `fresh`; None without an answer."""
        if not fresh and self._cached_terms and self._asking.locked():
            return self._cached_terms[1]
        async with self._asking:
            now = asyncio.get_running_loop().time()
            if not fresh and self._cached_terms and now - self._cached_terms[0] < _FRESH_SECONDS:
                return self._cached_terms[1]
            try:
                status = await stub("Operator", self._channel).Status(
                    StatusRequest(), timeout=_CALL_SECONDS
                )
            except grpc.RpcError:
                terms = None
            else:
                self.reserve, self.total = status.reserve, dict(status.total)
                terms = {
                    Window(window.stream, window.epoch): dict(window.terms)
                    for window in status.windows
                }
            self._cached_terms = (asyncio.get_running_loop().time(), terms)
            return terms

    def renew(self) -> None:
        """Uses the current certificates in the folder. Raises KeysUnusable."""
        former = self._channel
        self._channel = channel(self._address, "shuffler", tls=self._tls)
        self._former = asyncio.create_task(former.close(_CALL_SECONDS))

    async def close(self) -> None:
        """Closes the channel."""
        await self._channel.close()


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
    shown = "not shown" if total.pooled is None else "shown for all streams together"
    return (
        f"Waiting reports are {shown}, and a stream from its first batch on: a number that grows "
        "as a report arrives would show which stream the report is of."
    )


def upstream_reports(
    selection: EpochSelection, terms: Terms | None
) -> tuple[int | None, int | None]:
    """For a metric's epochs, reports that wait at the shuffler, and reports that it withheld.

    None if the shuffler does not show it: in production the waiting reports of a metric, and with
    secret numbers of dummies also the withheld ones.
    """
    if terms is None or hides_withheld(selection.metric):
        return None, None
    streams, epochs = set(selection.metric.streams), set(selection.epochs)
    sums = sum_terms(
        counts
        for window, counts in terms.items()
        if window.stream in streams and window.epoch in epochs
    )
    waiting = sums["pooled"] + sums["in_flight"] if selection.metric.development else None
    return waiting, sums["withheld"]


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
