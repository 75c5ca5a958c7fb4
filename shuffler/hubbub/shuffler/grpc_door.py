"""The shuffler's gRPC services: Submit for devices, Status for operators; admission.py decides.

PRIVACY: a stream's count that grows as a report arrives links that report to whoever connected at
    that moment. So outside development nothing shows what waits in the pool of one stream: its
    terms change when a batch leaves, and never by fewer reports than a minimum batch.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import grpc
import grpc.aio

from hubbub.conservation import Window, sum_terms
from hubbub.errors import StoreUnavailable
from hubbub.runtime.rpc.connection_ends import end_connections
from hubbub.runtime.rpc.grpc_callers import Context, caller_of, come_back, refuse
from hubbub.runtime.rpc.rate_limiter import Limiter
from hubbub.shuffler.admission import Admission, ComeBack, Never
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import Stream
from hubbub.wire.v1.services_pb2 import (
    StatusRequest,
    StatusResponse,
    SubmitRequest,
    SubmitResponse,
    WindowStatus,
)

_NOTICE: Final = "hubbub-notice-bin"
# Callers accept 8 KiB of metadata; a larger notice is only sent with an answer.
_LARGEST_NOTICE: Final = 4 << 10
# gRPC keeps an answer until it is read, and cannot end the call. So models are left out past these
# limits of all unread ones, and of one address; the device requests them again in a minute.
_MAX_UNREAD_BYTES = 8 << 20
_MAX_UNREAD_BYTES_OF_CALLER = 1 << 20
# A device reads half a megabyte in seconds. If there is no room for others, slower connections are
# ended, and their addresses get no models for a while: so withholding models takes new addresses
# every few seconds.
_READ_SECONDS = 10.0
_REST_SECONDS: Final = 600.0

WindowTerms = Mapping[Window, Mapping[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class _Unread:
    """Models in an answer that is not read yet."""

    caller: str
    peer: str
    size: int
    since: float  # by the monotonic clock


class ShufflerService:
    """The gRPC service that accepts reports from devices."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._unread: dict[_Unread, None] = {}  # oldest first
        self._unread_of: Counter[str] = Counter()  # bytes, by caller
        self._slow = Limiter(1 / _REST_SECONDS, 0)
        self._looks = Limiter(1.0, 0)  # with 4,000 connections a look takes .1 s

    @property
    def unread_bytes(self) -> int:
        """Bytes of models in unread answers."""
        return self._unread_of.total()

    def admit(self, context: Context) -> float:
        """How long a caller must wait before its request is read; 0 to let it in."""
        return self._admission.wait_seconds(caller_of(context))

    def trailers(self) -> Sequence[tuple[str, str | bytes]]:
        """The notice, for callers that must come back: it lowers a flood before they are let in."""
        notice = self._admission.notice
        return ((_NOTICE, notice),) if 0 < len(notice) <= _LARGEST_NOTICE else ()

    def spoiled(self, context: Context, size: int) -> None:
        """Charges a caller for an unreadable message, by its size in bytes."""
        self._admission.spoiled(caller_of(context), size)

    async def Submit(self, request: SubmitRequest, context: Context) -> SubmitResponse:
        """Answers once the accepted reports are durable."""
        try:
            reports, tokens = request.reports, request.tokens
            response = await self._admission.take(reports, caller_of(context), tokens)
        except Never as never:
            await refuse(context, str(never))
        except ComeBack as back:
            if back.wait_seconds is None:
                await context.abort(grpc.StatusCode.UNAVAILABLE, str(back), tuple(self.trailers()))
            await come_back(context, back.wait_seconds, str(back), self.trailers)
        if not request.reports:
            # Before they are in the message, which keeps the memory of what is removed from it.
            response.models = self._models_for(context)
        return response

    def _models_for(self, context: Context) -> bytes:
        """The models for an answer; empty if too many are unread, of all or of its address."""
        models = self._admission.models
        if not models:
            return b""
        caller, peer, size = caller_of(context), context.peer(), len(models)
        unread = _Unread(caller, peer, size, time.monotonic())
        if self.unread_bytes + size > _MAX_UNREAD_BYTES:
            self._end_slow(unread.since - _READ_SECONDS)
        is_full = self.unread_bytes + size > _MAX_UNREAD_BYTES
        of_caller = self._unread_of[caller] + size > _MAX_UNREAD_BYTES_OF_CALLER
        if is_full or of_caller or self._slow.wait_seconds(caller):
            self._admission.refusals["calls_at_once" if is_full else "peer_calls"] += 1
            return b""
        self._unread[unread] = None
        self._unread_of[caller] += size
        context.add_done_callback(lambda _: self._forget(unread))  # type: ignore[arg-type]  # its stub asks for a class
        return models

    def _end_slow(self, since: float) -> None:
        """Ends connections with models that are unread since this moment or longer."""
        slow = list(takewhile(lambda unread: unread.since <= since, self._unread))
        if not slow or self._looks.wait_seconds(""):
            return
        self._looks.charge("", 1)
        if not end_connections({unread.peer for unread in slow}):
            return
        for unread in slow:
            self._admission.refusals["gave_way"] += 1
            self._slow.charge(unread.caller, 1)
            self._forget(unread)

    def _forget(self, unread: _Unread) -> None:
        if unread in self._unread:
            del self._unread[unread]
            self._unread_of[unread.caller] -= unread.size
            if not self._unread_of[unread.caller]:
                del self._unread_of[unread.caller]


class ShownCounts:
    """Reads the terms from the pool. Methods raise StoreUnavailable.

    `streams` returns the current stream table; in `development` every term is shown as it is.
    """

    def __init__(
        self,
        pool: Pool,
        streams: Callable[[], Mapping[str, Stream]],
        *,
        development: bool = False,
    ) -> None:
        self._pool = pool
        self._streams = streams
        self._development = development

    async def terms(self) -> tuple[WindowTerms, Mapping[str, int]]:
        """The terms that may be shown to every caller: per window, and over all streams as of now.

        The latter are empty if the former add up. Without "pooled" they omit waiting reports.
        """
        terms = await self._pool.report_counts()
        # Numbers drawn later belong to streams of the table.
        hidden = await self._pool.hidden.windows(terms)
        streams = self._streams()
        noisy = {name for name, stream in streams.items() if stream.is_noisy}
        hidden = hidden | {window for window in terms if window.stream in noisy}
        if self._development:
            hidden_terms = departed_terms({w: terms[w] for w in hidden}, streams, hidden)
            return {w: terms[w] for w in terms.keys() - hidden} | hidden_terms, {}
        windows = departed_terms(terms, streams, hidden)
        # PRIVACY: a total that omits some streams shows when a report of those arrived, and a total
        #     that includes them shows the number that is hidden.
        hides = hidden or noisy
        total = sum_terms((windows if hides else terms).values())
        if hides:
            del total["pooled"]
        return windows, total

    async def windows(self) -> WindowTerms:
        """The terms per window."""
        windows, _ = await self.terms()
        return windows


def departed_terms(
    terms: WindowTerms, streams: Mapping[str, Stream], hidden: Collection[Window]
) -> dict[Window, Mapping[str, int]]:
    """The terms of what has left each window's pool; windows that nothing has left are omitted.

    `hidden` are the windows with a drawn number. For those, withheld reports are not shown, since
    the number of late reports is without noise, and dummies are shown by their expected number.
    """
    counts: dict[Window, Mapping[str, int]] = {}
    for window, counted in terms.items():
        departures = counted["acknowledged"] + counted["dummies"] - counted["pooled"]
        dummies, withheld = counted["dummies"], counted["withheld"]
        if window in hidden:
            departures, withheld = departures - withheld, 0
            stream = streams.get(window.stream)
            # While a crowd leaves shard by shard, fewer than all its dummies may have left.
            dummies = min(stream.expected_dummies, departures) if stream else 0
        if departures > 0:
            counts[window] = {
                "acknowledged": departures - dummies,
                "dummies": dummies,
                "pooled": 0,
                "in_flight": counted["in_flight"],
                "withheld": withheld,
            }
    return counts


class OperatorService:
    """Shows the shuffler's terms of the conservation law to operators and the aggregator."""

    def __init__(self, counts: ShownCounts, reserve: float = 0.0) -> None:
        """Sets the counts; `reserve` is how many minimum batches stay in an open pool."""
        self._counts = counts
        self._reserve = reserve

    async def Status(self, request: StatusRequest, context: Context) -> StatusResponse:
        """Answers with counts per window and in total, and nothing else."""
        del request
        try:
            terms_by_window, total = await self._counts.terms()
        except StoreUnavailable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        windows = [
            WindowStatus(stream=window.stream, epoch=window.epoch, terms=terms)
            for window, terms in terms_by_window.items()
        ]
        return StatusResponse(reserve=self._reserve, windows=windows, total=total)
