"""The aggregator's gRPC faces: Ingest for the shuffler, Query and Status for people."""

from typing import Any, NoReturn

import grpc
import grpc.aio

from hubbub.aggregator.intake import Intake
from hubbub.aggregator.query import Query
from hubbub.aggregator.store import Outcome, TotalsStore
from hubbub.errors import (
    BadParameter,
    BatchTooSmall,
    BudgetExhausted,
    HubbubError,
    StoreUnavailable,
    UnknownMetric,
)
from hubbub.privacy.amplification import ASSUMPTION, Amplified
from hubbub.serving import Window
from hubbub.wire.v1.services_pb2 import (
    Batch,
    BatchOutcome,
    EstimateRequest,
    EstimateResponse,
    MetricsRequest,
    MetricsResponse,
    MetricSummary,
    Shuffled,
    StatusRequest,
    StatusResponse,
    ValueEstimate,
    WindowStatus,
)
from hubbub.wire.v1.services_pb2_grpc import IngestServicer, OperatorServicer, QueryServicer

__all__ = ["Context", "IngestService", "OperatorService", "QueryService", "abort"]

Context = grpc.aio.ServicerContext[Any, Any]

_BATCH_ID_BYTES = 16
_STATUS = {
    UnknownMetric: grpc.StatusCode.NOT_FOUND,
    BadParameter: grpc.StatusCode.INVALID_ARGUMENT,
    BatchTooSmall: grpc.StatusCode.FAILED_PRECONDITION,
    BudgetExhausted: grpc.StatusCode.FAILED_PRECONDITION,
    StoreUnavailable: grpc.StatusCode.UNAVAILABLE,
}


async def abort(context: Context, error: HubbubError) -> NoReturn:
    """End a call with the status that goes with an error."""
    await context.abort(_STATUS.get(type(error), grpc.StatusCode.INTERNAL), str(error))
    raise AssertionError("abort does not return")


class IngestService(IngestServicer):
    """Takes batches from the shuffler."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    async def Apply(self, request: Batch, context: Context) -> BatchOutcome:  # noqa: N802 named by the proto
        """Count one batch; answered only once it is committed."""
        try:
            if len(request.batch_id) != _BATCH_ID_BYTES:
                raise BadParameter("a batch id has 16 bytes")
            outcome = await self._intake.apply(
                Window(request.stream, request.epoch),
                request.batch_id,
                request.key_id,
                list(request.sealed),
            )
        except HubbubError as error:
            await abort(context, error)
        return BatchOutcome(already_applied=outcome is Outcome.ALREADY_APPLIED)


class OperatorService(OperatorServicer):
    """Tells the aggregator's terms of the conservation law."""

    def __init__(self, store: TotalsStore) -> None:
        self._store = store

    async def Status(self, request: StatusRequest, context: Context) -> StatusResponse:  # noqa: N802 named by the proto
        """Counts per window, and nothing else."""
        del request
        try:
            law = await self._store.law()
        except HubbubError as error:
            await abort(context, error)
        return StatusResponse(
            windows=[
                WindowStatus(stream=window.stream, epoch=window.epoch, terms=terms)
                for window, terms in law.items()
            ]
        )


class QueryService(QueryServicer):
    """Tells estimates, and which metrics there are."""

    def __init__(self, query: Query) -> None:
        self._query = query

    async def Metrics(self, request: MetricsRequest, context: Context) -> MetricsResponse:  # noqa: N802 named by the proto
        """Every metric, with the epochs that hold a report."""
        del request
        try:
            metrics = await self._query.metrics()
        except HubbubError as error:
            await abort(context, error)
        return MetricsResponse(
            metrics=[
                MetricSummary(
                    name=metric.name,
                    description=metric.description,
                    mechanism=metric.mechanism,
                    epsilon=metric.report_loss,
                    epoch_length=metric.epoch,
                    epochs=epochs,
                )
                for metric, epochs in metrics
            ]
        )

    async def Estimate(self, request: EstimateRequest, context: Context) -> EstimateResponse:  # noqa: N802 named by the proto
        """Estimates with their intervals."""
        try:
            queried = await self._query.estimate(
                request.metric,
                epochs=list(request.epochs),
                last=request.last,
                candidates=list(request.candidates),
            )
        except HubbubError as error:
            await abort(context, error)
        return EstimateResponse(
            metric=queried.metric.name,
            epochs=queried.epochs,
            reports=queried.answer.reports,
            mechanism=queried.metric.mechanism,
            epsilon=queried.metric.report_loss,
            confidence=queried.answer.confidence,
            kind=queried.answer.kind,
            plausibility=queried.plausibility.p_value,
            findings=queried.plausibility.findings,
            shuffled=_shuffled(queried.shuffled),
            values=[
                ValueEstimate(
                    value=value.value,
                    estimate=value.estimate,
                    stderr=value.stderr,
                    low=value.low,
                    high=value.high,
                    share=value.share,
                    detected=value.detected,
                    fitted=value.fitted,
                )
                for value in queried.answer.values
            ],
        )


def _shuffled(found: Amplified | None) -> Shuffled | None:
    if found is None:
        return None
    return Shuffled(
        epsilon=found.epsilon, delta=found.delta, reports=found.reports, assumption=ASSUMPTION
    )
