"""The shuffler's gRPC door: Submit for devices, Status for operators. admission.py decides."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import grpc
import grpc.aio

from hubbub.errors import StoreUnavailable
from hubbub.runtime import caller_of, come_back, refuse
from hubbub.shuffler.admission import Admission, ComeBack, Never
from hubbub.shuffler.hidden_counts import told_outside
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.streams import Stream
from hubbub.wire.v1.services_pb2 import (
    StatusRequest,
    StatusResponse,
    SubmitRequest,
    SubmitResponse,
    WindowStatus,
)
from hubbub.wire.v1.services_pb2_grpc import OperatorServicer, ShufflerServicer

Context = grpc.aio.ServicerContext[Any, Any]

_NOTICE: Final = "hubbub-notice-bin"
# Callers take 8 KiB of metadata; a larger notice comes with an answer alone.
_LARGEST_NOTICE: Final = 4 << 10


class ShufflerService(ShufflerServicer):
    """Takes reports from devices."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    def admit(self, context: Context) -> float:
        """How long a caller must wait, before its request is even read; 0 to let it in."""
        return self._admission.wait_seconds(caller_of(context))

    def trailers(self) -> Sequence[tuple[str, str | bytes]]:
        """The notice, for who has to come back: a flood is lowered by it before it is let in."""
        notice = self._admission.notice
        return ((_NOTICE, notice),) if 0 < len(notice) <= _LARGEST_NOTICE else ()

    def spoiled(self, context: Context, size: int) -> None:
        """Charge a caller for a message that could not be read, by its size in bytes."""
        self._admission.spoiled(caller_of(context), size)

    async def Submit(self, request: SubmitRequest, context: Context) -> SubmitResponse:
        """Answers once what was taken is durable."""
        answer = await self._admission.take(request.reports, caller_of(context), request.tokens)
        if isinstance(answer, Never):
            await refuse(context, answer.why)
        if isinstance(answer, ComeBack):
            if answer.wait_seconds is None:
                await context.abort(grpc.StatusCode.UNAVAILABLE, answer.why, tuple(self.trailers()))
            await come_back(context, answer.wait_seconds, answer.why, self.trailers)
        return answer.response()


class OperatorService(OperatorServicer):
    """Tells the shuffler's terms of the conservation law."""

    def __init__(
        self,
        pool: Pool,
        reserve: float = 0.0,
        streams: Callable[[], Mapping[str, Stream]] = dict,
    ) -> None:
        """reserve: how many minimum batches stay in an open pool, at least. streams: as now."""
        self._pool = pool
        self._streams = streams
        self._reserve = reserve

    async def Status(self, request: StatusRequest, context: Context) -> StatusResponse:
        """Counts per window, and nothing else.

        PRIVACY: to whoever asks, who may be the aggregator or an analyst: of a hidden number of
            reports what left alone. The exact terms are at /metrics, which is the operator's.
        """
        del request
        try:
            # Numbers that are drawn after these were counted are of streams that are known.
            counts = await self._pool.report_counts()
            hidden = await self._pool.hidden.windows(counts)
            told = told_outside(counts, self._streams(), hidden)
            return StatusResponse(
                reserve=self._reserve,
                windows=[
                    WindowStatus(stream=window.stream, epoch=window.epoch, terms=terms)
                    for window, terms in told.items()
                ],
            )
        except StoreUnavailable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
