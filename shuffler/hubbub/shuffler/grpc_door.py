"""The shuffler's gRPC services: Submit for devices, Status for operators; admission.py decides."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import grpc
import grpc.aio

from hubbub.errors import StoreUnavailable
from hubbub.runtime.rpc.callers import caller_of, come_back, refuse
from hubbub.shuffler.admission import Admission, ComeBack, Never
from hubbub.shuffler.shown_counts import ShownCounts
from hubbub.wire.v1.services_pb2 import (
    StatusRequest,
    StatusResponse,
    SubmitRequest,
    SubmitResponse,
    WindowStatus,
)

Context = grpc.aio.ServicerContext[Any, Any]

_NOTICE: Final = "hubbub-notice-bin"
# Callers accept 8 KiB of metadata; a larger notice is only sent with an answer.
_LARGEST_NOTICE: Final = 4 << 10
# gRPC keeps an answer until it is read, and cannot end the call. So models are left out past these
# limits of all unread ones, and of one address; the device requests them again in a minute.
_MAX_UNREAD_BYTES = 8 << 20
_MAX_UNREAD_BYTES_OF_CALLER = 1 << 20


class ShufflerService:
    """The gRPC service that accepts reports from devices."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._unread: Counter[str] = Counter()  # bytes of models in unread answers, by caller

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
        if response.models:
            self._limit_unread(response, context)
        return response

    def _limit_unread(self, response: SubmitResponse, context: Context) -> None:
        """Removes the models from an answer if too many of them are unread."""
        size, caller = len(response.models), caller_of(context)
        of_caller = self._unread[caller] + size > _MAX_UNREAD_BYTES_OF_CALLER
        if of_caller or self._unread.total() + size > _MAX_UNREAD_BYTES:
            self._admission.refusals["peer_calls" if of_caller else "calls_at_once"] += 1
            response.models = b""
            return
        self._unread[caller] += size

        def done(_context: Any) -> None:
            self._unread[caller] -= size
            if not self._unread[caller]:
                del self._unread[caller]

        context.add_done_callback(done)  # type: ignore[arg-type]  # its stub asks for a class


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
            counts = await self._counts.terms()
        except StoreUnavailable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        return StatusResponse(
            reserve=self._reserve,
            windows=[
                WindowStatus(stream=window.stream, epoch=window.epoch, terms=terms)
                for window, terms in counts.windows.items()
            ],
            total=counts.total,
        )
