"""The aggregator's gRPC faces: Ingest for the shuffler, Query and Status for people."""

import asyncio
from collections.abc import Awaitable
from typing import Any, NoReturn, TypeVar

import grpc
import grpc.aio

import hubbub.wire.v1.services_pb2 as wire
from hubbub.accounting import Window
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.query import EstimateQuery, QueryEngine
from hubbub.aggregator.query.marks import Mark, check_mark
from hubbub.aggregator.query.messages import message
from hubbub.aggregator.query.totals import EpochRange
from hubbub.aggregator.store.contract import Outcome, TotalsStore
from hubbub.analysis import CONFIDENCE
from hubbub.errors import BadParameter, HubbubError
from hubbub.errors.status import status_of
from hubbub.runtime import continued
from hubbub.wire.v1.services_pb2_grpc import IngestServicer, OperatorServicer, QueryServicer

__all__ = ["Context", "IngestService", "OperatorService", "QueryService", "abort"]

Context = grpc.aio.ServicerContext[Any, Any]
Answer = TypeVar("Answer")
_Question = (
    wire.EstimateRequest
    | wire.TopRequest
    | wire.CompareRequest
    | wire.TrendRequest
    | wire.BreakdownRequest
)

_BATCH_ID_BYTES = 16


async def abort(context: Context, error: HubbubError) -> NoReturn:
    """End a call with the status that goes with an error."""
    await context.abort(grpc.StatusCode[status_of(error).grpc], str(error))
    raise AssertionError("abort does not return")


class IngestService(IngestServicer):
    """Takes batches from the shuffler."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    async def Apply(self, request: wire.Batch, context: Context) -> wire.BatchOutcome:
        """Count one batch; answered only once it is committed."""
        try:
            if len(request.batch_id) != _BATCH_ID_BYTES:
                raise BadParameter("a batch id has 16 bytes")
            with continued(_texts(context)):
                outcome = await self._intake.apply(
                    Window(request.stream, request.epoch),
                    request.batch_id,
                    request.key_id,
                    list(request.sealed),
                    request.dummies,
                )
        except HubbubError as error:
            await abort(context, error)
        return wire.BatchOutcome(already_applied=outcome is Outcome.ALREADY_APPLIED)


class OperatorService(OperatorServicer):
    """Tells the aggregator's terms of the conservation law."""

    def __init__(self, store: TotalsStore) -> None:
        self._store = store

    async def Status(self, request: wire.StatusRequest, context: Context) -> wire.StatusResponse:
        """Counts per window, and nothing else."""
        del request
        try:
            counts = await self._store.report_counts()
        except HubbubError as error:
            await abort(context, error)
        return wire.StatusResponse(
            windows=[
                wire.WindowStatus(stream=window.stream, epoch=window.epoch, terms=terms)
                for window, terms in counts.items()
            ]
        )


class QueryService(QueryServicer):
    """Answers analysts' questions."""

    def __init__(self, query: QueryEngine) -> None:
        self._query = query

    async def Metrics(self, request: wire.MetricsRequest, context: Context) -> wire.MetricsResponse:
        """Every metric, with the epochs that hold a report."""
        del request
        with_errors = _answered(context, self._query.metrics())
        return wire.MetricsResponse(
            metrics=[message(wire.MetricLine, line) for line in await with_errors]
        )

    async def Describe(self, request: wire.DescribeRequest, context: Context) -> wire.MetricDetail:
        """One metric, and what one person's report reveals."""
        return message(
            wire.MetricDetail, await _answered(context, self._query.metric(request.metric))
        )

    async def Estimate(self, request: wire.EstimateRequest, context: Context) -> wire.Estimated:
        """Estimates with their intervals."""
        asked = _estimate_query(request.range, request)
        found = await _answered(context, self._query.estimate(request.metric, asked))
        # In a thread: a million values take seconds.
        return await asyncio.to_thread(message, wire.Estimated, found)

    async def Top(self, request: wire.TopRequest, context: Context) -> wire.TopList:
        """The most frequent values, and how sure their order is."""
        asked = _estimate_query(request.range, request)
        found = await _answered(context, self._query.top(request.metric, asked, request.number))
        return message(wire.TopList, found)

    async def Compare(self, request: wire.CompareRequest, context: Context) -> wire.Compared:
        """What differs between two ranges."""
        asked = _estimate_query(request.before, request)
        after = _range(request.after)
        found = await _answered(context, self._query.compare(request.metric, asked, after))
        return await asyncio.to_thread(message, wire.Compared, found)

    async def Trend(self, request: wire.TrendRequest, context: Context) -> wire.Trended:
        """Some values epoch by epoch."""
        asked = _estimate_query(request.range, request)
        found = self._query.trend(request.metric, asked, list(request.values), request.number)
        return message(wire.Trended, await _answered(context, found))

    async def Cross(self, request: wire.CrossRequest, context: Context) -> wire.Crossed:
        """Two parts as a table."""
        asked = EstimateQuery(_range(request.range), request.confidence or CONFIDENCE)
        parts = request.rows, request.columns
        found = await _answered(context, self._query.cross(request.metric, asked, parts))
        return message(wire.Crossed, found)

    async def Breakdown(self, request: wire.BreakdownRequest, context: Context) -> wire.BrokenDown:
        """A metric by one of its public fields."""
        asked = _estimate_query(request.range, request)
        found = await _answered(context, self._query.breakdown(request.metric, asked, request.by))
        return await asyncio.to_thread(message, wire.BrokenDown, found)

    async def ListCandidates(
        self, request: wire.ListCandidatesRequest, context: Context
    ) -> wire.SavedLists:
        """Every list of strings that is saved."""
        del request
        found = await _answered(context, self._query.lists.all())
        return wire.SavedLists(lists=[message(wire.SavedList, one) for one in found])

    async def ShowCandidates(
        self, request: wire.ShowCandidatesRequest, context: Context
    ) -> wire.CandidateList:
        """The strings of one."""
        found = await _answered(context, self._query.lists.find(request.name))
        return wire.CandidateList(name=request.name, total=len(found), candidates=found)

    async def SaveCandidates(
        self, request: wire.SaveCandidatesRequest, context: Context
    ) -> wire.SavedList:
        """Save one, or add to it."""
        saving = self._query.lists.save(request.name, request.candidates, add=request.add)
        return message(wire.SavedList, await _answered(context, saving))

    async def RemoveCandidates(
        self, request: wire.RemoveCandidatesRequest, context: Context
    ) -> wire.RemoveCandidatesResponse:
        """Forget one."""
        await _answered(context, self._query.lists.remove(request.name))
        return wire.RemoveCandidatesResponse()

    async def ListMarks(self, request: wire.ListMarksRequest, context: Context) -> wire.MarkList:
        """Every mark, or those of a metric's trend."""
        found = await _answered(context, self._query.marks.all(request.metric))
        return wire.MarkList(marks=[message(wire.Mark, one) for one in found])

    async def SaveMark(self, request: wire.Mark, context: Context) -> wire.Mark:
        """Set one."""
        mark = Mark(request.name, request.date, request.text, request.metric)

        async def saving() -> Mark:
            check_mark(mark, self._query.collected.bundle)
            return await self._query.marks.save(mark)

        return message(wire.Mark, await _answered(context, saving()))

    async def RemoveMark(
        self, request: wire.RemoveMarkRequest, context: Context
    ) -> wire.RemoveMarkResponse:
        """Forget one."""
        await _answered(context, self._query.marks.remove(request.name))
        return wire.RemoveMarkResponse()

    async def Pipeline(
        self, request: wire.PipelineRequest, context: Context
    ) -> wire.PipelineStatus:
        """The conservation law."""
        del request
        return message(wire.PipelineStatus, await _answered(context, self._query.status()))

    async def Watch(self, request: wire.WatchRequest, context: Context) -> wire.Watched:
        """Reports as they come."""
        return message(wire.Watched, await _answered(context, self._query.watch(request.after)))


def _texts(context: Context) -> dict[str, str]:
    """The call's headers that are text."""
    given = context.invocation_metadata() or ()
    return {name: value for name, value in given if isinstance(value, str)}


def _range(given: wire.Range) -> EpochRange:
    return EpochRange(given.last, given.epochs)


def _estimate_query(given: wire.Range, asked: _Question) -> EstimateQuery:
    return EstimateQuery(
        _range(given),
        asked.confidence or CONFIDENCE,
        tuple(asked.candidates),
        tuple(asked.lists),
        isinstance(asked, wire.EstimateRequest) and asked.anytime,
    )


async def _answered(context: Context, question: Awaitable[Answer]) -> Answer:
    """The answer, or the call's end with the status of what was wrong."""
    try:
        return await question
    except HubbubError as error:
        await abort(context, error)
