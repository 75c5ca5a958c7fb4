"""The query engine: what all questions share. Each further question is a function of its module.

It computes nothing twice while totals are unchanged, and runs long computations in threads, so that
batches keep coming meanwhile.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, nullcontext
from copy import copy
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, TypeVar

from hubbub.aggregator.access.tokens import EVERYONE, Caller
from hubbub.aggregator.ingest.development_reports import Arrivals
from hubbub.aggregator.learning_rounds import Rounds
from hubbub.aggregator.query.answer_store import AnswerStore, version_of
from hubbub.aggregator.query.answer_types import Estimated, MetricDetail, MetricLine
from hubbub.aggregator.query.arriving_reports import Watched, arriving_reports
from hubbub.aggregator.query.cache import CoalescedRead, SingleFlightCache, Turns
from hubbub.aggregator.query.candidates import CandidateLists, with_candidates
from hubbub.aggregator.query.conservation_law import (
    PipelineStatus,
    Shuffler,
    status,
    upstream_reports,
    visible_status,
    withheld_sentence,
)
from hubbub.aggregator.query.epoch_range import NEWEST, EpochRange
from hubbub.aggregator.query.estimating import (
    WHOLE,
    AnswerPlan,
    EstimateQuery,
    Page,
    RangeEstimate,
    estimate_range,
)
from hubbub.aggregator.query.marked_days import Marks
from hubbub.aggregator.query.metric_answer import notice_of, whole_answer
from hubbub.aggregator.query.overview import detail, line
from hubbub.aggregator.query.totals import EpochSelection, TotalsByEpoch, together
from hubbub.aggregator.store.contract import TotalsReader
from hubbub.analysis.answer import Answer
from hubbub.bundles import Bundle
from hubbub.catalog import Metric
from hubbub.errors.message_words import NOTICES
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.redis.command_sender import Hashes, MemoryServer

# Number of values of all results in memory, of all kinds, about 100 MB.
_MAX_VALUES: Final = 500_000
# Beyond this many strings, or points of a trend, a query takes seconds and much memory.
_MANY_CANDIDATES: Final = 50_000
_MANY_POINTS: Final = 2000

Value = TypeVar("Value")


class QueryEngine:
    """Answers questions from the totals. Every method raises StoreUnavailable without Redis.

    A method with a metric's name (or one tier's, "theme/0.5") raises UnknownMetric; BadParameter
    for an invalid range, or candidates that do not fit; and BatchTooSmall for fewer reports than
    the metric's minimum batch.

    Args:
        upstream: source of the shuffler's terms; without it they are unknown.
        stages: measures the time of answers that were not cached.
        clocks: as for TotalsByEpoch.
        server: Redis of finished answers, saved lists, marks and rounds; by default this process
            has the lists, marks and rounds, and finishes every answer itself.
        arrivals: in development, the newest reports.
    """

    def __init__(
        self,
        bundle: Bundle,
        store: TotalsReader,
        upstream: Shuffler | None = None,
        clock: Callable[[], float] = time.time,
        stages: Stages | None = None,
        *,
        clocks: Clocks | None = None,
        server: Hashes | None = None,
        arrivals: Arrivals | None = None,
    ) -> None:
        self._stages = stages or Stages()
        self.collected = TotalsByEpoch(bundle, store, clock, clocks, upstream)
        self.answers = AnswerStore(server) if server else None
        server = server or MemoryServer()
        self.lists = CandidateLists(server, clock)
        self.marks = Marks(server)
        self.rounds = Rounds(server)
        self._arrivals = arrivals
        self._viewer = EVERYONE
        self._turns = Turns()
        self.use(bundle)
        collected = self.collected
        self._law = CoalescedRead(
            lambda: status(store, upstream, collected.date_of, collected.is_over)
        )

    def use(self, bundle: Bundle) -> None:
        """Answers by this bundle, and drops everything computed by another.

        `notice` is then what precedes every answer of this bundle; "" in production.
        """
        self.collected.use(bundle)
        # A caller may see a metric without the hidden metric that it supersedes.
        self._plans = {
            (name, metric.supersedes): AnswerPlan.of(metric)
            for name, metric in bundle.metrics.items()
        }
        self._results = SingleFlightCache[Any](_MAX_VALUES)
        self.notice = NOTICES[bundle.development]
        self._visible: dict[frozenset[str], Bundle] = {}

    def for_viewer(self, viewer: Caller) -> "QueryEngine":
        """The same for one caller: with their metrics only, and with their right to write."""
        engine = copy(self)
        engine.marks = self.marks.for_viewer(viewer)
        if not viewer.sees_all:
            engine.collected = copy(self.collected)
            engine.collected.bundle = self._visible_bundle(viewer)
            engine._viewer = viewer  # noqa: SLF001 of the same class
        return engine

    def _visible_bundle(self, viewer: Caller) -> Bundle:
        """The bundle without hidden metrics, and without references to them."""
        bundle = self.collected.bundle
        names = frozenset(filter(viewer.sees, bundle.metrics))
        if names not in self._visible:
            metrics = {name: metric for name, metric in bundle.metrics.items() if name in names}
            for name, metric in metrics.items():
                if metric.supersedes and metric.supersedes not in metrics:
                    metrics[name] = replace(metric, supersedes="")
            self._visible[names] = replace(bundle, metrics=metrics)
        return self._visible[names]

    async def metrics(self) -> list[MetricLine]:
        """All metrics, with their reports."""
        terms = await self.collected.terms()
        return [
            await line(self.collected, selection, terms)
            for selection in await self.collected.find_all()
        ]

    async def metric(self, name: str) -> MetricDetail:
        """One metric, and what one person's report reveals."""
        selection = await self.collected.find(name, EpochRange(epochs="all"))
        return await detail(self.collected, selection, await self.collected.terms())

    async def estimate(self, name: str, query: EstimateQuery, page: Page = WHOLE) -> Estimated:
        """Estimates over the requested epochs, added up."""
        query = await self.resolved(name, query)
        selection = await self.collected.find(name, query.range)
        estimated = None
        if self.answers:
            # It is stored under its only epoch's date, or the query's range.
            one_date = selection.dates if len(selection.epochs) == 1 else ""
            range_ = query.range.last or one_date or query.range.epochs
            version = self._version(selection, query)
            estimated = await self.answers.find(selection.metric.name, range_, version)
        estimated = estimated or await self._whole_estimate(selection, query)
        waiting = withheld = None
        if self.collected.upstream:
            terms = await self.collected.upstream.terms()
            epochs = self.collected.with_upstream(selection, query.range, terms)
            waiting, withheld = upstream_reports(selection.metric, epochs, terms)
            if sentence := withheld_sentence(selection.metric, epochs, terms):
                notes = [f"{sentence[0].upper()}{sentence[1:]}.", *estimated.notes]
                estimated = replace(estimated, notes=notes)
        values, total = page.of(estimated.values, "rank")
        return replace(estimated, waiting=waiting, withheld=withheld, total=total, values=values)

    async def refresh(
        self, answers: AnswerStore, name: str, query: EstimateQuery, range_: str, stored_at: str
    ) -> bool:
        """Stores the answer of a range, or confirms the stored one; returns whether it was new."""
        query = await self.resolved(name, query)
        selection = await self.collected.find(name, query.range)
        version = self._version(selection, query)
        if await answers.confirm(name, range_, version, stored_at):
            return False
        await answers.keep(await self._whole_estimate(selection, query), range_, version, stored_at)
        return True

    def _version(self, selection: EpochSelection, query: EstimateQuery) -> str:
        final = self.collected.is_final(selection)
        return version_of(self._plan(selection.metric).definition, selection, query, final=final)

    def _plan(self, metric: Metric) -> AnswerPlan:
        """The plan of a metric's answers; that of a tier or a cell, from its first question on."""
        plan = self._plans.get((metric.name, metric.supersedes))
        if plan is None or plan.metric != metric:
            plan = self._plans[metric.name, metric.supersedes] = AnswerPlan.of(metric)
        return plan

    def envelope(
        self, query: EstimateQuery, kind: str, *selections: EpochSelection
    ) -> dict[str, Any]:
        """Fields of every answer; `selections`, of one metric, are all that the answer covers."""
        selection = together(selections) if selections[1:] else selections[0]
        return {
            "metric": selections[0].metric.name,
            "kind": kind,
            "confidence": query.confidence,
            "epochs": list(selection.epochs),
            "dates": selection.dates,
            "final": self.collected.is_final(selection),
            "reports": selection.reports,
            "lists": list(query.lists),
            "unit": selections[0].metric.unit,
            "notice": notice_of(*selections) if selections[0].metric.central else self.notice,
        }

    async def _whole_estimate(self, selection: EpochSelection, query: EstimateQuery) -> Estimated:
        """The whole answer, without the shuffler's terms."""
        estimate = await self.work(selection, query)
        envelope = self.envelope(query, estimate.answer.kind, selection)
        plan = self._plan(selection.metric)
        return await asyncio.to_thread(whole_answer, plan, envelope, selection, query, estimate)

    async def status(self) -> PipelineStatus:
        """Where every report is."""
        law = await self._law.get()
        visible = law if self._viewer.sees_all else visible_status(law, self._viewer.sees)
        return replace(visible, notice=self.notice)

    async def watch(self, after: int) -> Watched:
        """Reports counted after this number; none in production."""
        bundle = self.collected.bundle
        new = self._arrivals.newer_than(after) if self._arrivals else []
        return await asyncio.to_thread(arriving_reports, bundle, new, self.notice)

    async def find_answer(
        self, name: str, query: EstimateQuery
    ) -> tuple[EstimateQuery, EpochSelection, Answer]:
        """The query with its candidate strings, its epochs, and the answer to it."""
        query = await self.resolved(name, query)
        selection = await self.collected.find(name, query.range)
        return query, selection, (await self.work(selection, query)).answer

    async def resolved(self, name: str, query: EstimateQuery) -> EstimateQuery:
        """The query with all of its candidate strings."""
        metric = self.collected.bundle.metric(name)
        if metric.values is not None and not (query.candidates or query.lists or query.likely):
            return query  # which are listed
        return await with_candidates(metric, query, self.lists, self.estimate)

    def turn(self, query: EstimateQuery, points: int = 0) -> AbstractAsyncContextManager[None]:
        """The queue for expensive questions about strings or trends; cheap ones do not wait."""
        large = len(query.candidates) > _MANY_CANDIDATES or points > _MANY_POINTS
        return self._turns.turn() if query.likely or large else nullcontext()

    async def work(self, selection: EpochSelection, query: EstimateQuery) -> RangeEstimate:
        """The estimates of these epochs."""
        plan = self._plan(selection.metric)

        async def make() -> RangeEstimate:
            with self._stages.of("answer"):
                selected = await self.collected.read(selection)
                # Strings take seconds of a processor; other queries run beside them.
                async with self.turn(query) if plan.names is None else nullcontext():
                    return await asyncio.to_thread(estimate_range, plan, selected, query)

        question = ("estimates", replace(query, range=NEWEST, percentiles=(), below=()))
        return await self.cached(question, selection, make, attrgetter("size"))

    async def cached(
        self,
        question: Hashable,
        selection: EpochSelection,
        make: Callable[[], Awaitable[Value]],
        size_of: Callable[[Value], int] = len,  # type: ignore[assignment]  # of lists
    ) -> Value:
        """What `make` returns, made once while the metric and its totals are unchanged.

        `question` and `selection` contain everything on which the result depends; `size_of`
        returns its memory, in numbers of values.
        """
        key = (question, self._plan(selection.metric), selection.epochs)
        version = tuple(sorted(selection.counted.items()))  # stays the same while the totals do
        result: Value = await self._results.get(key, version, make, size_of)
        return result
