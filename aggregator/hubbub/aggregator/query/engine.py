"""The query engine: answers all queries, for every interface.

It computes nothing twice while totals are unchanged, and runs long computations in threads, so that
batches keep coming meanwhile.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from copy import copy
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final

from hubbub.aggregator.access.rights import EVERYONE, Caller
from hubbub.aggregator.ingest.arrivals import Arrivals
from hubbub.aggregator.learning.rounds import Rounds
from hubbub.aggregator.query.answer_store import AnswerStore, range_name, version_of
from hubbub.aggregator.query.answer_types import (
    Compared,
    Crossed,
    Estimated,
    MetricDetail,
    MetricLine,
    TopList,
)
from hubbub.aggregator.query.breakdowns import BrokenDown, Part, broken_down, field_of, parts_by
from hubbub.aggregator.query.cache import CoalescedRead, SingleFlightCache, Turns
from hubbub.aggregator.query.candidates import CandidateLists, with_candidates
from hubbub.aggregator.query.epoch_range import NEWEST, EpochRange
from hubbub.aggregator.query.estimating import (
    WHOLE,
    EstimateQuery,
    Page,
    RangeEstimate,
    estimate_range,
)
from hubbub.aggregator.query.figures import Figured, Figuring, meant
from hubbub.aggregator.query.marks import Marks
from hubbub.aggregator.query.overview import (
    detail,
    line,
    notes_of_figures,
    notes_of_levels,
    notes_of_outside,
    notes_of_places,
    notice_of,
    shifts_between,
    shown_epochs,
    until_first_batch,
    whole_answer,
)
from hubbub.aggregator.query.report_counts import (
    PipelineStatus,
    Shuffler,
    Terms,
    status,
    upstream_reports,
    visible_status,
)
from hubbub.aggregator.query.totals import EpochSelection, SelectedTotals, TotalsByEpoch
from hubbub.aggregator.query.trends import (
    Series,
    Trended,
    percentile_series,
    series,
    together,
)
from hubbub.aggregator.query.watched_reports import Watched, watched
from hubbub.aggregator.store.contract import TotalsReader
from hubbub.analysis.answer import Answer
from hubbub.analysis.answering import only_of_all
from hubbub.analysis.comparisons.change import changes
from hubbub.analysis.comparisons.cross import Cross, crossed
from hubbub.analysis.comparisons.top_values import Top, top
from hubbub.analysis.figures import Figure
from hubbub.bundles import Bundle
from hubbub.catalog import EPOCH_SECONDS, UNLISTED, Metric, reports_of_one
from hubbub.errors import BadParameter, BatchTooSmall
from hubbub.errors.development_messages import NOTICES
from hubbub.errors.grammar import several
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.stages import Stages
from hubbub.runtime.redis.command_lists import Hashes, MemoryServer
from hubbub.runtime.version import VERSION

# Number of values of all stored answers, about 100 MB; and of points of all trends.
_MAX_VALUES: Final = 500_000
# Beyond this many strings, or points of a trend, a query takes seconds and much memory.
_MANY_CANDIDATES: Final = 50_000
_MANY_POINTS: Final = 2000


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
        self.collected = TotalsByEpoch(bundle, store, clock, clocks)
        self._beyond = upstream
        self.answers = AnswerStore(server) if server else None
        server = server or MemoryServer()
        self.lists = CandidateLists(server, clock)
        self.marks = Marks(server)
        self.rounds = Rounds(server)
        self._arrivals = arrivals
        self._viewer = EVERYONE
        self._turns = Turns()
        self.use(bundle)
        self._law = CoalescedRead(lambda: status(store, upstream, self.collected.date_of))

    def use(self, bundle: Bundle) -> None:
        """Answers by this bundle, and drops everything computed by another."""
        self.collected.use(bundle)
        self._definitions: dict[str, tuple[Metric, str]] = {}
        self._estimates = SingleFlightCache[RangeEstimate](_MAX_VALUES, attrgetter("size"))
        self._trends = SingleFlightCache[list[Series]](
            _MAX_VALUES, lambda lines: sum(len(item.points) for item in lines)
        )
        self._tops = SingleFlightCache[Top](_MAX_VALUES, lambda best: len(best.values))
        self._crosses = SingleFlightCache[Cross](_MAX_VALUES, lambda table: len(table.cells))
        self._figures = SingleFlightCache[list[Figure]](_MAX_VALUES, len)
        self._visible: dict[frozenset[str], Bundle] = {}

    def seen_by(self, viewer: Caller) -> "QueryEngine":
        """The same for one caller: with their metrics only, and with their right to write."""
        if viewer.may_all:
            return self
        engine = copy(self)
        engine.marks = self.marks.seen_by(viewer)
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
        terms = await self._terms()
        return [
            await line(self.collected, selection, terms, self._reserve())
            for selection in await self.collected.all()
        ]

    async def metric(self, name: str) -> MetricDetail:
        """One metric, and what one person's report reveals."""
        selection = await self.collected.find(name, EpochRange(epochs="all"))
        terms = await self._terms()
        return await detail(self.collected, selection, terms, self._reserve())

    async def estimate(self, name: str, query: EstimateQuery, page: Page = WHOLE) -> Estimated:
        """Estimates over the requested epochs, added up."""
        query = await self._resolved(name, query)
        selection = await self.collected.find(name, query.range)
        estimated = None
        if self.answers:
            range_, version = range_name(selection, query), self._version(selection, query)
            estimated = await self.answers.find(selection.metric.name, range_, version)
        estimated = estimated or await self._whole_estimate(selection, query)
        terms = await self._terms()
        waiting, withheld = upstream_reports(selection, terms) if terms else (None, None)
        values, total = page.of(estimated.values, "rank")
        return replace(estimated, waiting=waiting, withheld=withheld, total=total, values=values)

    async def refresh(
        self, answers: AnswerStore, name: str, query: EstimateQuery, range_: str, at: str
    ) -> bool:
        """Stores the answer of a range, or confirms the stored one; returns whether it was new."""
        query = await self._resolved(name, query)
        selection = await self.collected.find(name, query.range)
        version = self._version(selection, query)
        if await answers.confirm(name, range_, version, at):
            return False
        await answers.keep(await self._whole_estimate(selection, query), range_, version, at)
        return True

    def _version(self, selection: EpochSelection, query: EstimateQuery) -> str:
        final = self.collected.is_final(selection)
        return version_of(self._definition(selection.metric), selection, query, final=final)

    def _definition(self, metric: Metric) -> str:
        """Text of a metric's definition; it differs between bundles that define it differently."""
        entry = self._definitions.get(metric.name)
        if entry is None or entry[0] != metric:
            entry = metric, repr((VERSION, metric))  # of this version alone
            self._definitions[metric.name] = entry
        return entry[1]

    def _envelope(
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
            "notice": notice_of(*selections) if selections[0].metric.central else self.notice(),
        }

    async def _whole_estimate(self, selection: EpochSelection, query: EstimateQuery) -> Estimated:
        """The whole answer, without the shuffler's terms."""
        estimate = await self.work(selection, query)
        envelope = self._envelope(query, estimate.answer.kind, selection)
        return await asyncio.to_thread(whole_answer, envelope, selection, query, estimate)

    async def top(self, name: str, query: EstimateQuery, number: int) -> TopList:
        """The most frequent values, and the confidence in their order."""
        query, selection, answer = await self._answer(name, query)
        question = (self._definition(selection.metric), query, number, selection.windows)
        best = await self._tops.get(
            question, selection.version, lambda: asyncio.to_thread(top, answer, number)
        )
        shares = [row.value.share or 0.0 for row in best.values]
        return TopList(
            **self._envelope(query, answer.kind, selection),
            set_confidence=best.set_confidence,
            order_confidence=best.order_confidence,
            values=list(best.values),
            notes=[
                *notes_of_levels(answer, shares, answer.reports),
                *notes_of_places([row.value for row in best.values]),
            ],
        )

    async def cross(self, name: str, query: EstimateQuery, parts: tuple[str, str, str]) -> Crossed:
        """Two parts as a table, with the first part's values as rows; a table per value of a third.

        `parts` are rows, columns and the third; "" is the first free part, or no third part.
        """
        query, selection, answer = await self._answer(name, query)

        async def make() -> Cross:
            selected, metric = await self._read(selection), selection.metric
            repeats = reports_of_one(metric, selection.epochs)
            return await asyncio.to_thread(
                crossed, selected.tiers(), metric.values, answer, parts, repeats
            )

        question = (self._definition(selection.metric), query, parts, selection.windows)
        table = await self._crosses.get(question, selection.version, make)
        return Crossed(
            **self._envelope(query, answer.kind, selection),
            rows=table.rows,
            columns=table.columns,
            parts=list(table.parts),
            by=table.by,
            slices=list(table.slices),
            association=table.association,
            values=list(table.cells),
        )

    async def breakdown(self, name: str, query: EstimateQuery, by: str = "") -> BrokenDown:
        """Each value of the public field `by` ("" for the first), compared with all others.

        Values with fewer reports than the minimum batch are named without an answer.
        """
        query, selection, answer = await self._answer(name, query)
        parts = parts_by(self.collected.bundle, selection, by)
        if not query.candidates and selection.metric.values is None and answer.kind == "values":
            # Each part is queried for the strings that were found in all reports.
            query = replace(query, candidates=tuple(value.value for value in answer.values))
        works = {
            part.name: (
                await self.work(part.own, query),
                await self.work(part.rest, query) if part.rest else None,
            )
            for part in parts
            if part.is_answered
        }
        envelope, terms = self._envelope(query, answer.kind, selection), await self._terms()
        return await asyncio.to_thread(
            broken_down, envelope, parts, works, terms, field_of(selection.metric, by)
        )

    async def figures(
        self, name: str, query: EstimateQuery, by: str = "", *, by_cohort: bool = False
    ) -> Figured:
        """Conversions of a funnel, a rate, numbers of actives, or shares that come back.

        There are rows for each value of the public field `by`; "" for all devices together; with
        `by_cohort`, for each first week. Raises TooFewEpochs if no device can have come back yet.
        """
        metric = self.collected.bundle.metric(name)
        query, kind = meant(metric, await self._resolved(name, query), by_cohort=by_cohort)
        selection = await self.collected.find(name, query.range)
        parts = (
            parts_by(self.collected.bundle, selection, by) if by else [Part("", selection, None)]
        )
        answered = [part for part in parts if part.is_answered or not by]
        if not answered:
            await self._read(selection)  # raises BatchTooSmall where all parts are too few

        values = [
            replace(figure, part=part.name)
            for part in answered
            for figure in await self.figures_of(part.own, query.confidence, by_cohort=by_cohort)
        ]
        unanswered = [
            f"{part.name}: {several(part.own.reports, 'report')}, below the minimum batch of "
            f"{metric.fewest:,}"
            for part in parts
            if part not in answered and (part.own.reports or part.name != UNLISTED)
        ]
        return Figured(
            **self._envelope(query, metric.kind, selection),
            whose=kind.whose,
            by=by,
            values=values,
            notes=[*notes_of_figures(values, selection.reports), *unanswered],
        )

    async def compare(
        self, name: str, query: EstimateQuery, after: EpochRange, page: Page = WHOLE
    ) -> Compared:
        """The change between the range of `query` and `after`, from the earlier to the later one.

        Raises TooFewEpochs if a range has no epoch.
        """
        query = await self._resolved(name, query)
        *holdings, why = await self.collected.pair(name, query.range, after)
        first, second = (holding.epochs for holding in holdings)
        if shared := set(first) & set(second):
            raise BadParameter(
                f"both ranges hold {holdings[0].date(min(shared))}: their errors would not be "
                "independent; compare ranges without common epochs"
            )
        if first and second and first[0] > second[-1]:
            holdings.reverse()
        works = [await self.work(holding, query) for holding in holdings]
        old, new = [work.answer for work in works]
        value_changes = changes(*only_of_all(old, new))
        shifts = await asyncio.to_thread(shifts_between, holdings[0].metric, query, *works)
        values, total = page.of(value_changes, "p_value")
        bounds = [(row.difference, row.low, row.high) for row in value_changes]
        return Compared(
            **self._envelope(query, old.kind, *holdings),
            before_epochs=list(holdings[0].epochs),
            after_epochs=list(holdings[1].epochs),
            before_dates=holdings[0].dates,
            after_dates=holdings[1].dates,
            before_reports=old.reports,
            after_reports=new.reports,
            total=total,
            values=values,
            chosen=why,
            percentiles=shifts,
            notes=notes_of_outside(bounds, "A difference", old.reports + new.reports),
        )

    async def trend(
        self, name: str, query: EstimateQuery, values: Sequence[str] = (), number: int = 5
    ) -> Trended:
        """Epoch by epoch: these values, or the `number` most frequent ones of the whole range.

        Metrics that this one supersedes are joined where they listed the value. If the query has
        percentiles, they are followed instead of values, for this metric alone.
        """
        if query.percentiles and values:
            raise BadParameter("a trend follows values or percentiles: leave one of the two out")
        query = await self._resolved(name, query)
        selection, *before = await self.collected.joined(name, query.range)
        before = [] if query.percentiles else before
        joined = [former for former in before if former.reports >= former.metric.fewest]
        answer = (await self.work(selection, query)).answer

        async def make() -> list[Series]:
            if query.percentiles:
                selected = await self._read(selection)
                return await asyncio.to_thread(percentile_series, selected, query)
            collected = [await self._read(source) for source in (selection, *joined)]
            parts = [part for source in collected for part in source.by_list()]
            async with self._turn(query, points=(len(values) or number) * len(parts)):
                return await asyncio.to_thread(
                    series,
                    parts,
                    answer,
                    values=values,
                    number=number,
                    candidates=query.candidates,
                )

        union = together([selection, *joined])
        question = (self._definition(union.metric), query, tuple(values), number, union.windows)
        envelope = self._envelope(query, answer.kind, union)
        if query.percentiles:
            envelope["kind"] = "ranges"  # what is followed is in the metric's unit
        envelope["epochs"] = shown_epochs(self.collected, union, union.epochs)
        lines = await self._trends.get(question, union.version, make)
        points = [point for line in lines for point in line.points]
        # Of a number in ranges the mean is followed, and no share.
        has_note = not (query.percentiles or answer.kind == "ranges")
        levels = [point.share for point in points] if has_note else []
        fewest = min((point.reports for point in points), default=0)
        return Trended(
            **envelope,
            min_batch=selection.metric.fewest,
            series=lines,
            notes=notes_of_levels(answer, levels, fewest),
            joined=[former.metric.name for former in joined],
        )

    async def status(self) -> PipelineStatus:
        """Where every report is."""
        law = await self._law.get()
        visible = law if self._viewer.sees_all else visible_status(law, self._viewer.sees)
        return replace(visible, notice=self.notice())

    async def watch(self, after: int) -> Watched:
        """Reports counted after this number; none in production."""
        bundle = self.collected.bundle
        new = self._arrivals.after(after) if self._arrivals else []
        return await asyncio.to_thread(watched, bundle, new, self.notice())

    def notice(self) -> str:
        """What is said before every answer of this bundle; "" in production."""
        return NOTICES[self.collected.bundle.development]

    async def _answer(
        self, name: str, query: EstimateQuery
    ) -> tuple[EstimateQuery, EpochSelection, Answer]:
        """The query with its candidate strings, its epochs, and the answer to it."""
        query = await self._resolved(name, query)
        selection = await self.collected.find(name, query.range)
        return query, selection, (await self.work(selection, query)).answer

    async def _resolved(self, name: str, query: EstimateQuery) -> EstimateQuery:
        """The query with all of its candidate strings."""
        metric = self.collected.bundle.metric(name)
        if metric.values is not None and not (query.lists or query.likely):
            return query  # which are listed
        return await with_candidates(metric, query, self.lists, self.estimate)

    async def _terms(self) -> Terms | None:
        return await self._beyond.terms() if self._beyond else None

    def _reserve(self) -> float | None:
        return self._beyond.reserve if self._beyond else None

    def _turn(self, query: EstimateQuery, points: int = 0) -> AbstractAsyncContextManager[None]:
        """The queue for expensive questions; cheap ones do not wait."""
        large = len(query.candidates) > _MANY_CANDIDATES or points > _MANY_POINTS
        return self._turns.turn() if query.likely or large else nullcontext()

    async def figures_of(
        self, selection: EpochSelection, confidence: float, *, by_cohort: bool = False
    ) -> list[Figure]:
        """The figures of these epochs, conversions and weeks in their order, the newest first."""
        metric = selection.metric

        async def make() -> list[Figure]:
            figuring = Figuring(
                collected=self.collected,
                selected=await self._read(selection),
                confidence=confidence,
                by_cohort=by_cohort,
            )
            return await asyncio.to_thread(figuring.figures)

        running = self.collected.now() // EPOCH_SECONDS[metric.epoch]
        closed = sum(self.collected.is_closed(metric, epoch) for epoch in selection.epochs)
        definition = self._definition(metric)
        question = (definition, selection.windows, confidence, by_cohort, running, closed)
        return await self._figures.get(question, selection.version, make)

    async def work(self, selection: EpochSelection, query: EstimateQuery) -> RangeEstimate:
        """The estimates of these epochs."""

        async def make() -> RangeEstimate:
            with self._stages.of("answer"):
                selected = await self._read(selection)
                # Such a query takes seconds of a processor; other queries run beside it.
                async with self._turn(query):
                    return await asyncio.to_thread(estimate_range, selected, query)

        newest_query = replace(query, range=NEWEST, percentiles=(), below=())
        question = (self._definition(selection.metric), newest_query, selection.windows)
        return await self._estimates.get(question, selection.version, make)

    async def _read(self, selection: EpochSelection) -> SelectedTotals:
        """Totals of all windows. Raises BatchTooSmall, with what the first batch waits for."""
        try:
            return await self.collected.read(selection)
        except BatchTooSmall as error:
            whole = await self.collected.find(selection.metric.name, EpochRange(epochs="all"))
            terms, has_left = await self._terms(), bool(whole.counted)
            hint = until_first_batch(selection.metric, terms, self._reserve(), has_left=has_left)
            raise BatchTooSmall(f"{error}. {hint}" if hint else str(error)) from error
