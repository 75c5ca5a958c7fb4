"""The conservation law: the aggregator's terms, and the shuffler's with what waits there."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import grpc
import grpc.aio

from hubbub.aggregator.store.contract import DELETED, TotalsReader
from hubbub.catalog import EPOCH_SECONDS, Metric, late_from
from hubbub.catalog.crowds.noise_dummies import count_noise, value_noise
from hubbub.conservation import Window, balances, sum_terms
from hubbub.epochs import epoch_dates, minute
from hubbub.errors.message_words import several
from hubbub.runtime.rpc.server import channel
from hubbub.runtime.tls import TlsFolder
from hubbub.wire.v1.services_pb2 import StatusRequest
from hubbub.wire.v1.stubs_and_handlers import stub

Terms = Mapping[Window, Mapping[str, int]]

_CALL_SECONDS: Final = 2.0
_FRESH_SECONDS: Final = 1.0


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


def upstream_reports(
    metric: Metric, epochs: Iterable[int], terms: Terms | None
) -> tuple[int | None, int | None]:
    """For a metric's epochs, reports that wait at the shuffler, and reports that it withheld.

    None if the shuffler does not show it: in production the waiting reports of a metric, and with
    secret numbers of dummies also the withheld ones.
    """
    if terms is None or count_noise(metric) or value_noise(metric):
        return None, None
    of_epochs = set(epochs)
    sums = sum_terms(
        counts
        for window, counts in terms.items()
        if window.stream in metric.streams and window.epoch in of_epochs
    )
    waiting = sums["pooled"] + sums["in_flight"] if metric.development else None
    return waiting, sums["withheld"]


def upstream_epochs(metric: Metric, terms: Terms | None) -> set[int]:
    """A metric's epochs of which the shuffler has had reports."""
    return {window.epoch for window in terms or () if window.stream in metric.streams}


def withheld_sentence(metric: Metric, epochs: Iterable[int], terms: Terms | None) -> str:
    """Which reports of these epochs the shuffler withheld, and why, without full stop.

    "" if there are none, or if the shuffler does not show it.
    """
    of_epochs = set(epochs)
    if upstream_reports(metric, of_epochs, terms)[1] is None:
        return ""
    counts_by_reason: dict[str, Counter[int]] = {}
    for window, counts in sorted((terms or {}).items()):
        if window.stream in metric.streams and window.epoch in of_epochs and counts.get("withheld"):
            epoch_counts = counts_by_reason.setdefault(_withheld_reason(metric, counts), Counter())
            epoch_counts[window.epoch] += counts["withheld"]
    texts = [
        f"the shuffler withheld {several(counts.total(), 'report')} of "
        f"{epoch_dates(range(min(counts), max(counts) + 1), EPOCH_SECONDS[metric.epoch])}, {reason}"
        for reason, counts in counts_by_reason.items()
    ]
    return "; ".join([*texts, "no answer contains them"] if texts else [])


def _withheld_reason(metric: Metric, counts: Mapping[str, int]) -> str:
    """Why the shuffler withheld reports of a stream in one epoch, by its terms."""
    if counts["withheld"] >= metric.fewest:
        return "whose stream its table had lacked for 30 days"
    if counts["withheld"] < counts.get("acknowledged", 0):
        return f"which came after the last batch and were fewer than {metric.fewest:,}"
    if metric.mix == "pool":
        return f"whose streams ended below the minimum batch of {metric.fewest:,}"
    return f"whose crowds were smaller than {metric.fewest:,}"


def until_first_batch(
    metric: Metric, terms: Terms | None, reserve: float | None, *, has_left: bool
) -> str:
    """Why there is no batch yet, without full stop; "" if nothing waits, or a batch has left.

    `terms` are the shuffler's, if known; `reserve` is its smallest reserve in minimum batches.
    PRIVACY: of a stream whose waiting reports the shuffler does not show, it depends only on the
    catalog, on the reserve, and on whether a batch `has_left`.
    """
    waiting = [
        window
        for window, counts in (terms or {}).items()
        if window.stream == metric.name
        and 0 < counts.get("pooled", 0) == counts.get("acknowledged")
    ]
    reserve_count = round(metric.fewest * (reserve or 0.0)) if metric.mix == "pool" else 0
    stay = f", of which {reserve_count:,} stay behind" if reserve_count else ""
    first = metric.fewest + reserve_count
    withheld = f"fewer than {metric.fewest:,} by then are withheld"
    if not terms or not waiting:
        if has_left or metric.development:
            return "" if has_left or terms is None else _until_counted(metric, terms)
        release_moment = "once the epoch and its grace are over"
        hidden = "how many wait is not shown"
        if metric.mix == "epoch":
            return (
                f"{metric.fewest:,} reports of an epoch leave the shuffler together "
                f"{release_moment}, or not at all; {hidden}"
            )
        return (
            f"{first:,} reports of an epoch must reach the shuffler for the first batch{stay}; it "
            f"leaves after the shuffler's random delay, or {release_moment}; {withheld}; {hidden}"
        )
    newest = max(waiting, key=lambda window: window.epoch)
    pooled = terms[newest]["pooled"]
    latest = minute(late_from(newest.epoch, metric.epoch))
    if metric.mix == "epoch":
        return (
            f"{pooled:,} of the {metric.fewest:,} reports of a crowd wait at the shuffler; they "
            f"leave together at {latest}, or not at all"
        )
    return (
        f"{pooled:,} of {first:,} reports wait at the shuffler until the first batch{stay}, or "
        f"until {latest} at the latest; {withheld}"
    )


def _until_counted(metric: Metric, terms: Terms) -> str:
    """In development: whether reports are on their way."""
    streams = {*metric.streams}
    in_flight = sum(
        n.get("in_flight", 0) for window, n in terms.items() if window.stream in streams
    )
    if in_flight:
        return f"{several(in_flight, 'report')} left the shuffler; ask again in a few seconds"
    none = "no report has reached the shuffler yet"
    if metric.value_kind.COUNTS:
        return f"{none}; a device sends its {metric.kind} after the end of the {metric.epoch}"
    return f"{none}; in development a report arrives within a second or two: ask again"


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
    is_over: Callable[[Window], bool] = lambda _: False,
) -> PipelineStatus:
    """The law over every window; reads again for a second if it seems not to balance.

    The shuffler deletes its counters of a window that `is_over`: those acknowledged are then those
    that arrived.
    """
    for _ in range(_TRIES):
        # The aggregator first: reports counted meanwhile appear as in flight, not twice.
        counted = await store.report_counts()
        upstream_terms = await upstream.terms(fresh=True) if upstream else None
        upstream_total = upstream.total if upstream and upstream_terms is not None else {}
        if upstream_terms is not None:
            final_terms = {
                window: {"acknowledged": sum(sum_terms([terms]).values())}
                for window, terms in counted.items()
                if window not in upstream_terms and is_over(window)
            }
            upstream_terms = {**upstream_terms, **final_terms}
            if upstream_total:
                acknowledged = sum_terms([upstream_total, *final_terms.values()])["acknowledged"]
                upstream_total = {**upstream_total, "acknowledged": acknowledged}
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
        waiting=_waiting_note(total) if upstream_total else "",
    )


def _waiting_note(total: ReportCounts) -> str:
    """What is shown of waiting reports outside development, and why not more."""
    text = "not shown" if total.pooled is None else "shown for all streams together"
    return (
        f"Waiting reports are {text}, and a stream is listed after its first batch: a number that "
        "grew when a report arrived would show the report's stream."
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
    waiting = status.waiting and _waiting_note(total)
    return replace(status, balanced=balanced, total=total, windows=windows, waiting=waiting)
