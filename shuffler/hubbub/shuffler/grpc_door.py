"""The shuffler's gRPC face: Submit for devices, Status for operators."""

from collections import Counter, defaultdict
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.unknown_fields import UnknownFieldSet

from hubbub.accounting import Window
from hubbub.errors import StoreFull, StoreUnavailable
from hubbub.runtime import Clocks, Limiter, come_back, network, refuse
from hubbub.shuffler.backpressure import Backpressure
from hubbub.shuffler.intake import Intake
from hubbub.shuffler.mixer import Mixer
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.streams import StreamTable
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import (
    Reason,
    Refusal,
    StatusRequest,
    StatusResponse,
    SubmitRequest,
    SubmitResponse,
    WindowStatus,
)
from hubbub.wire.v1.services_pb2_grpc import OperatorServicer, ShufflerServicer

__all__ = ["LARGEST_SUBMIT_BYTES", "OperatorService", "ShufflerService"]

LARGEST_SUBMIT_BYTES: Final = 2 << 20
_MAX_REPORTS: Final = 1000
# Redis said no to a write: by then `Pressure` has looked again.
_FULL_SECONDS: Final = 1.0
# A stream that has piled up does not drain at once.
_CROWDED_SECONDS: Final = 20.0

Context = grpc.aio.ServicerContext[Any, Any]


class ShufflerService(ShufflerServicer):
    """Takes reports from devices. Of a caller it sees the address, for the limiter alone.

    counts: reports by what became of them: "taken", or why not.
    """

    def __init__(
        self,
        table: StreamTable,
        intake: Intake,
        mixer: Mixer,
        *,
        limiter: Limiter,
        pressure: Backpressure,
        clocks: Clocks | None = None,
    ) -> None:
        self._table = table
        self._intake = intake
        self._mixer = mixer
        self._limiter = limiter
        self._pressure = pressure
        self._clocks = clocks or Clocks()
        self.counts: Counter[str] = Counter()
        self.turned_away: Counter[str] = Counter()

    def admit(self, context: Context) -> float:
        """How long a caller must wait, before its request is even read; 0 to let it in."""
        wait_seconds = self._pressure.wait_seconds
        if wait_seconds:
            self.turned_away["no_room"] += 1
            return wait_seconds
        wait_seconds = self._limiter.wait_seconds(network(context.peer()))
        if wait_seconds:
            self.turned_away["peer_limit"] += 1
        return wait_seconds

    def spoiled(self, context: Context, size: int) -> None:
        """A caller's message was none: it costs as much as one of so many bytes."""
        cost = max(1, size * _MAX_REPORTS // LARGEST_SUBMIT_BYTES)
        self._limiter.charge(network(context.peer()), cost)

    async def Submit(self, request: SubmitRequest, context: Context) -> SubmitResponse:
        """Pool what can be taken, and say which could not and why."""
        # A request without a report costs as much as one with one; with too many, as the largest.
        cost = min(max(1, len(request.reports)), _MAX_REPORTS)
        self._limiter.charge(network(context.peer()), cost)
        if len(request.reports) > _MAX_REPORTS:
            await refuse(context, f"more than {_MAX_REPORTS} reports")
        now = self._clocks.earliest(), self._clocks.latest()
        refused = []
        taken: dict[Window, list[bytes]] = defaultdict(list)
        for index, report in enumerate(request.reports):
            reason = self._refusal(report, *now)
            if reason is None:
                taken[Window(report.stream, report.epoch)].append(report.sealed)
            else:
                refused.append(Refusal(index=index, reason=reason))
        # What has no room waits on the devices; they send the rest again with it: the same members.
        waiting = [taken.pop(w) for w in list(taken) if self._pressure.is_crowded(w.stream)]
        if taken:
            try:
                await self._intake.add(taken)
            except StoreFull:
                self._pressure.full()
                self.turned_away["store_full"] += 1
                await come_back(context, _FULL_SECONDS, "the pool is full; send again later")
            except StoreUnavailable:
                self.turned_away["store_away"] += 1
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the pool is away; send again")
        for window, sealed in taken.items():
            self._pressure.took(window.stream, len(sealed))
            self.counts["taken"] += len(sealed)
        for refusal in refused:
            self.counts[Reason.Name(refusal.reason).removeprefix("REASON_").lower()] += 1
        if waiting:
            self.turned_away["stream_full"] += 1
            await come_back(context, _CROWDED_SECONDS, "no room for one of these metrics now")
        return SubmitResponse(refused=refused)

    def _refusal(
        self, report: SealedReport, earliest: float, latest: float
    ) -> "Reason.ValueType | None":
        if len(UnknownFieldSet(report)):
            return Reason.REASON_UNKNOWN_FIELD  # PRIVACY: it could carry an identifier
        reason = self._table.refusal(report, earliest, latest)
        if reason is None and Window(report.stream, report.epoch) in self._mixer.closed:
            return Reason.REASON_EXPIRED
        return reason


class OperatorService(OperatorServicer):
    """Tells the shuffler's terms of the conservation law."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def Status(self, request: StatusRequest, context: Context) -> StatusResponse:
        """Counts per window, and nothing else."""
        del request
        try:
            return StatusResponse(
                windows=[
                    WindowStatus(stream=window.stream, epoch=window.epoch, terms=terms)
                    for window, terms in (await self._pool.report_counts()).items()
                ]
            )
        except StoreUnavailable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
