"""The aggregator's gRPC service Ingest, for the shuffler."""

from collections.abc import Mapping
from typing import Any, Final

import grpc
import grpc.aio

import hubbub.wire.v1.services_pb2 as wire
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.store.contract import Outcome
from hubbub.conservation import Window
from hubbub.errors import (
    BadParameter,
    HubbubError,
    ServiceUnavailable,
    StoreFull,
    StoreUnavailable,
    UnknownMetric,
)
from hubbub.runtime.monitoring.stages_and_traces import continued

Context = grpc.aio.ServicerContext[Any, Any]

_BATCH_ID_BYTES: Final = 16
# Errors of any other class are faults of the aggregator.
_CODES: Final[Mapping[type, grpc.StatusCode]] = {
    BadParameter: grpc.StatusCode.INVALID_ARGUMENT,
    ServiceUnavailable: grpc.StatusCode.UNAVAILABLE,
    StoreFull: grpc.StatusCode.RESOURCE_EXHAUSTED,
    UnknownMetric: grpc.StatusCode.NOT_FOUND,
    StoreUnavailable: grpc.StatusCode.UNAVAILABLE,
}


class IngestService:
    """Receives batches from the shuffler."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    async def Apply(self, request: wire.Batch, context: Context) -> wire.BatchOutcome:
        """Counts one batch; answers only after the commit."""
        try:
            if len(request.batch_id) != _BATCH_ID_BYTES:
                raise BadParameter("a batch id has 16 bytes")
            metadata = context.invocation_metadata() or ()
            texts = {name: value for name, value in metadata if isinstance(value, str)}
            with continued(texts):
                outcome = await self._intake.apply(
                    Window(request.stream, request.epoch),
                    request.batch_id,
                    request.key_id,
                    list(request.sealed),
                    request.dummies,
                )
        except HubbubError as error:
            kinds = (_CODES[kind] for kind in type(error).__mro__ if kind in _CODES)
            await context.abort(next(kinds, grpc.StatusCode.INTERNAL), str(error))
        return wire.BatchOutcome(already_applied=outcome is Outcome.ALREADY_APPLIED)
