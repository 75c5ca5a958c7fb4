"""The shuffler's gRPC face: Submit for devices, Status for operators."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.unknown_fields import UnknownFieldSet

from hubbub.errors import StoreUnavailable
from hubbub.serving import Window
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

LARGEST_SUBMIT_BYTES: Final = 4 << 20
_MOST_REPORTS: Final = 1000

Context = grpc.aio.ServicerContext[Any, Any]


class ShufflerService(ShufflerServicer):
    """Takes reports from devices. It looks at no peer address and no metadata."""

    def __init__(
        self,
        table: StreamTable,
        intake: Intake,
        mixer: Mixer,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._table = table
        self._intake = intake
        self._mixer = mixer
        self._clock = clock

    async def Submit(self, request: SubmitRequest, context: Context) -> SubmitResponse:  # noqa: N802 named by the proto
        """Pool what can be taken, and say which could not and why."""
        if len(request.reports) > _MOST_REPORTS or len(UnknownFieldSet(request)):
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"more than {_MOST_REPORTS} reports, or fields that this version does not know",
            )
        now = self._clock()
        refused = []
        taken: dict[Window, list[bytes]] = defaultdict(list)
        for index, report in enumerate(request.reports):
            reason = self._refusal(report, now)
            if reason is None:
                taken[Window(report.stream, report.epoch)].append(report.sealed)
            else:
                refused.append(Refusal(index=index, reason=reason))
        if taken:
            try:
                await self._intake.add(taken)
            except StoreUnavailable:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the pool is away; send again")
        return SubmitResponse(refused=refused)

    def _refusal(self, report: SealedReport, now: float) -> "Reason.ValueType | None":
        if len(UnknownFieldSet(report)):
            return Reason.REASON_UNKNOWN_FIELD  # PRIVACY: it could carry an identifier
        reason = self._table.refusal(report, now)
        if reason is None and self._mixer.is_over(Window(report.stream, report.epoch)):
            return Reason.REASON_EXPIRED
        return reason


class OperatorService(OperatorServicer):
    """Tells the shuffler's terms of the conservation law."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def Status(self, request: StatusRequest, context: Context) -> StatusResponse:  # noqa: N802 named by the proto
        """Counts per window, and nothing else."""
        del request
        try:
            return StatusResponse(
                windows=[
                    WindowStatus(stream=window.stream, epoch=window.epoch, terms=terms)
                    for window, terms in (await self._pool.law()).items()
                ]
            )
        except StoreUnavailable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
