"""The aggregator's gRPC faces: Ingest for the shuffler, Query and Status for people."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from google.protobuf.message import Message

import hubbub.wire.v1.services_pb2 as wire
from hubbub.aggregator.access.grpc_door import Context, GrpcDoor, abort
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.query import EstimateQuery, QueryEngine
from hubbub.aggregator.query.marks import Mark, check_mark
from hubbub.aggregator.query.messages import message
from hubbub.aggregator.query.models import learned_model, learned_models
from hubbub.aggregator.query.totals import EpochRange
from hubbub.aggregator.store.contract import Outcome, TotalsStore
from hubbub.analysis import CONFIDENCE
from hubbub.conservation import Window
from hubbub.errors import BadParameter, HubbubError
from hubbub.runtime import continued
from hubbub.wire.v1.services_pb2_grpc import IngestServicer, OperatorServicer, QueryServicer

_Question = (
    wire.EstimateRequest
    | wire.TopRequest
    | wire.CompareRequest
    | wire.TrendRequest
    | wire.BreakdownRequest
)

_BATCH_ID_BYTES = 16


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

    def __init__(self, store: TotalsStore, door: GrpcDoor) -> None:
        self._store = store
        self._door = door

    async def Status(self, request: wire.StatusRequest, context: Context) -> wire.StatusResponse:
        """Counts per window, and nothing else."""
        async with self._door.answering(context, request) as caller:
            counts = await self._store.report_counts()
        return wire.StatusResponse(
            windows=[
                wire.WindowStatus(stream=window.stream, epoch=window.epoch, terms=terms)
                for window, terms in counts.items()
                if caller.sees(window.stream)
            ]
        )


class QueryService(QueryServicer):
    """Answers analysts' questions."""

    def __init__(self, query: QueryEngine, door: GrpcDoor) -> None:
        self._query = query
        self._door = door

    @asynccontextmanager
    async def _asked(self, context: Context, request: Message) -> AsyncIterator[QueryEngine]:
        """What answers a question, of the metrics that who asks it sees."""
        async with self._door.answering(context, request) as caller:
            yield self._query.seen_by(caller)

    async def Metrics(self, request: wire.MetricsRequest, context: Context) -> wire.MetricsResponse:
        """Every metric, with the epochs that hold a report."""
        async with self._asked(context, request) as query:
            found = await query.metrics()
        return wire.MetricsResponse(metrics=[message(wire.MetricLine, line) for line in found])

    async def Describe(self, request: wire.DescribeRequest, context: Context) -> wire.MetricDetail:
        """One metric, and what one person's report reveals."""
        async with self._asked(context, request) as query:
            found = await query.metric(request.metric)
        return message(wire.MetricDetail, found)

    async def Estimate(self, request: wire.EstimateRequest, context: Context) -> wire.Estimated:
        """Estimates with their intervals."""
        async with self._asked(context, request) as query:
            asked = _estimate_query(request.range, request)
            found = await query.estimate(request.metric, asked)
        # In a thread: a million values take seconds.
        return await asyncio.to_thread(message, wire.Estimated, found)

    async def Top(self, request: wire.TopRequest, context: Context) -> wire.TopList:
        """The most frequent values, and how sure their order is."""
        async with self._asked(context, request) as query:
            asked = _estimate_query(request.range, request)
            found = await query.top(request.metric, asked, request.number)
        return message(wire.TopList, found)

    async def Compare(self, request: wire.CompareRequest, context: Context) -> wire.Compared:
        """What differs between two ranges."""
        async with self._asked(context, request) as query:
            asked = _estimate_query(request.before, request)
            after = _range(request.after)
            found = await query.compare(request.metric, asked, after)
        return await asyncio.to_thread(message, wire.Compared, found)

    async def Trend(self, request: wire.TrendRequest, context: Context) -> wire.Trended:
        """Some values epoch by epoch."""
        async with self._asked(context, request) as query:
            asked = _estimate_query(request.range, request)
            values = list(request.values)
            found = await query.trend(request.metric, asked, values, request.number)
        return message(wire.Trended, found)

    async def Cross(self, request: wire.CrossRequest, context: Context) -> wire.Crossed:
        """Two parts as a table, or by a third."""
        async with self._asked(context, request) as query:
            asked = EstimateQuery(_range(request.range), request.confidence or CONFIDENCE)
            parts = request.rows, request.columns, request.by
            found = await query.cross(request.metric, asked, parts)
        return message(wire.Crossed, found)

    async def Breakdown(self, request: wire.BreakdownRequest, context: Context) -> wire.BrokenDown:
        """A metric by one of its public fields."""
        async with self._asked(context, request) as query:
            asked = _estimate_query(request.range, request)
            found = await query.breakdown(request.metric, asked, request.by)
        return await asyncio.to_thread(message, wire.BrokenDown, found)

    async def Models(self, request: wire.ModelsRequest, context: Context) -> wire.ModelsResponse:
        """Every model, as far as it has learned."""
        async with self._asked(context, request) as query:
            found = await learned_models(query, request.confidence or CONFIDENCE)
        return wire.ModelsResponse(models=[message(wire.LearnedModel, one) for one in found])

    async def Model(self, request: wire.ModelRequest, context: Context) -> wire.LearnedModel:
        """One model, as far as it has learned."""
        async with self._asked(context, request) as query:
            found = await learned_model(query, request.model, request.confidence or CONFIDENCE)
        return message(wire.LearnedModel, found)

    async def ListCandidates(
        self, request: wire.ListCandidatesRequest, context: Context
    ) -> wire.SavedLists:
        """Every list of strings that is saved."""
        async with self._asked(context, request) as query:
            found = await query.lists.all()
        return wire.SavedLists(lists=[message(wire.SavedList, one) for one in found])

    async def ShowCandidates(
        self, request: wire.ShowCandidatesRequest, context: Context
    ) -> wire.CandidateList:
        """The strings of one."""
        async with self._asked(context, request) as query:
            found = await query.lists.find(request.name)
        return wire.CandidateList(name=request.name, total=len(found), candidates=found)

    async def SaveCandidates(
        self, request: wire.SaveCandidatesRequest, context: Context
    ) -> wire.SavedList:
        """Save one, or add to it."""
        async with self._asked(context, request) as query:
            saved = await query.lists.save(request.name, request.candidates, add=request.add)
        return message(wire.SavedList, saved)

    async def RemoveCandidates(
        self, request: wire.RemoveCandidatesRequest, context: Context
    ) -> wire.RemoveCandidatesResponse:
        """Forget one."""
        async with self._asked(context, request) as query:
            await query.lists.remove(request.name)
        return wire.RemoveCandidatesResponse()

    async def ListMarks(self, request: wire.ListMarksRequest, context: Context) -> wire.MarkList:
        """Every mark, or those of a metric's trend."""
        async with self._asked(context, request) as query:
            found = await query.marks.all(request.metric)
        return wire.MarkList(marks=[message(wire.Mark, one) for one in found])

    async def SaveMark(self, request: wire.Mark, context: Context) -> wire.Mark:
        """Set one."""
        async with self._asked(context, request) as query:
            mark = Mark(request.name, request.date, request.text, request.metric)
            check_mark(mark, query.collected.bundle)
            saved = await query.marks.save(mark)
        return message(wire.Mark, saved)

    async def RemoveMark(
        self, request: wire.RemoveMarkRequest, context: Context
    ) -> wire.RemoveMarkResponse:
        """Forget one."""
        async with self._asked(context, request) as query:
            await query.marks.remove(request.name, request.metric)
        return wire.RemoveMarkResponse()

    async def Pipeline(
        self, request: wire.PipelineRequest, context: Context
    ) -> wire.PipelineStatus:
        """The conservation law."""
        async with self._asked(context, request) as query:
            found = await query.status()
        return message(wire.PipelineStatus, found)

    async def Watch(self, request: wire.WatchRequest, context: Context) -> wire.Watched:
        """Reports as they come."""
        async with self._asked(context, request) as query:
            found = await query.watch(request.after)
        return message(wire.Watched, found)


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
        asked.likely if isinstance(asked, wire.EstimateRequest) else 0.0,
    )
