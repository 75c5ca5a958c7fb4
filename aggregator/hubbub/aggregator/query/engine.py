"""The query engine: answers what analysts ask, once for every face.

Nothing is worked out twice while totals are what they were, and what takes long is done in threads:
batches keep coming meanwhile.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

from hubbub.aggregator.query.answers import (
    Compared,
    Estimated,
    MetricDetail,
    MetricLine,
    PipelineStatus,
    Series,
    TopList,
    Trended,
)
from hubbub.aggregator.query.cache import CoalescedRead, SingleFlightCache
from hubbub.aggregator.query.estimating import EstimateQuery, RangeEstimate, estimate_range
from hubbub.aggregator.query.overview import detail, iso_time, line, shown_epochs, shuffled
from hubbub.aggregator.query.report_counts import Terms, UpstreamCounts, status, upstream_reports
from hubbub.aggregator.query.totals import EpochRange, EpochSelection, TotalsByEpoch
from hubbub.aggregator.query.trends import series
from hubbub.aggregator.store.contract import TotalsReader
from hubbub.analysis import Top, changes, top
from hubbub.catalog import EPOCH_SECONDS, Bundle, epoch_start
from hubbub.errors import BadParameter
from hubbub.runtime import Clocks, Stages

__all__ = ["WHOLE", "EstimateQuery", "Page", "QueryEngine"]

Row = TypeVar("Row")

# Answers are kept up to so many values in all, about 100 MB; and of trends as many points.
_MAX_VALUES: Final = 500_000


@dataclass(frozen=True, slots=True)
class Page:
    """Which of the values: all from `first` on, or `number` of them; as listed or by rank."""

    first: int = 0
    number: int | None = None
    by_rank: bool = False

    def of(self, rows: Sequence[Row], rank: Callable[[Row], Any]) -> list[Row]:
        """The rows of this page."""
        ordered = sorted(rows, key=rank) if self.by_rank else rows
        end = None if self.number is None else self.first + self.number
        return list(islice(ordered, self.first, end))


WHOLE: Final = Page()


class QueryEngine:
    """Answers questions from the totals. Every method raises StoreUnavailable without Redis.

    Each that takes a metric's name, with all its tiers or of one alone ("theme/0.5"), raises
    UnknownMetric; BadParameter for a range that is none, or candidates that do not fit;
    BatchTooSmall for fewer reports than the metric's minimum batch.

    upstream: where the shuffler's terms of the law come from; without, they are not known. stages:
    measures how long answers took that were not cached. clock, clocks: as TotalsByEpoch has them.
    """

    def __init__(
        self,
        bundle: Bundle,
        store: TotalsReader,
        upstream: UpstreamCounts | None = None,
        clock: Callable[[], float] = time.time,
        stages: Stages | None = None,
        *,
        clocks: Clocks | None = None,
    ) -> None:
        self._stages = stages or Stages()
        self.collected = TotalsByEpoch(bundle, store, clock, clocks)
        self._beyond = upstream
        self._answers: SingleFlightCache[RangeEstimate] = SingleFlightCache(_MAX_VALUES)
        self._trends: SingleFlightCache[list[Series]] = SingleFlightCache(_MAX_VALUES)
        self._tops: SingleFlightCache[Top] = SingleFlightCache(_MAX_VALUES)
        self._law = CoalescedRead(lambda: status(store, upstream))

    async def metrics(self) -> list[MetricLine]:
        """Every metric, with what is held of it."""
        terms = await self._terms()
        return [await line(self.collected, held, terms) for held in await self.collected.all()]

    async def metric(self, name: str) -> MetricDetail:
        """One metric, and what one person's report reveals."""
        selection = await self.collected.find(name, EpochRange(epochs="all"))
        return await detail(self.collected, selection, await self._terms())

    async def estimate(self, name: str, query: EstimateQuery, page: Page = WHOLE) -> Estimated:
        """Estimates over the epochs that are meant, added up."""
        selection = await self.collected.find(name, query.range)
        estimate = await self._work(selection, query)
        metric, found = selection.metric, estimate.answer
        waiting, withheld = upstream_reports(selection, await self._terms())
        first, last = (epoch_start(selection.epochs[i], metric.epoch) for i in (0, -1))
        return Estimated(
            metric=metric.name,
            description=metric.description,
            epochs=list(selection.epochs),
            since=iso_time(first),
            until=iso_time(last + EPOCH_SECONDS[metric.epoch]),
            final=all(self.collected.is_closed(metric, epoch) for epoch in selection.epochs),
            updated=iso_time(estimate.updated) if estimate.updated else None,
            reports=found.reports,
            waiting=waiting,
            withheld=withheld,
            mechanism=metric.mechanism,
            epsilon=metric.report_loss,
            shuffled=shuffled(estimate.shuffled) if estimate.shuffled else None,
            kind=found.kind,
            confidence=found.confidence,
            honest_p_value=estimate.plausibility.p_value,
            findings=list(estimate.plausibility.findings),
            mean=found.mean,
            others=found.others,
            fit_p_value=found.fit_p_value,
            twins=list(found.twins),
            total=len(found.values),
            values=page.of(found.values, lambda value: value.rank or 0),
        )

    async def top(self, name: str, query: EstimateQuery, number: int) -> TopList:
        """The most frequent values, and how sure their order is."""
        selection = await self.collected.find(name, query.range)
        found = (await self._work(selection, query)).answer

        async def make() -> tuple[Top, int]:
            return await asyncio.to_thread(top, found, number), number

        best = await self._tops.get((selection.metric.name, query, number, selection.version), make)
        return TopList(
            metric=selection.metric.name,
            epochs=list(selection.epochs),
            reports=found.reports,
            confidence=found.confidence,
            set_confidence=best.set_confidence,
            order_confidence=best.order_confidence,
            values=list(best.values),
        )

    async def compare(
        self, name: str, query: EstimateQuery, after: EpochRange, page: Page = WHOLE
    ) -> Compared:
        """What differs between two ranges: that of `query`, before, and `after`."""
        holdings = [await self.collected.find(name, one) for one in (query.range, after)]
        if shared := set(holdings[0].epochs) & set(holdings[1].epochs):
            raise BadParameter(
                f"both ranges hold epoch {min(shared)}: their errors would not be independent; "
                "compare epochs that are in one of them alone"
            )
        old, new = [(await self._work(holding, query)).answer for holding in holdings]
        return Compared(
            metric=holdings[0].metric.name,
            kind=old.kind,
            confidence=old.confidence,
            before_epochs=list(holdings[0].epochs),
            after_epochs=list(holdings[1].epochs),
            before_reports=old.reports,
            after_reports=new.reports,
            total=len(old.values),
            values=page.of(changes(old, new), lambda change: change.p_value),
        )

    async def trend(
        self, name: str, query: EstimateQuery, values: Sequence[str] = (), number: int = 5
    ) -> Trended:
        """Epoch by epoch: these values, or the `number` most frequent ones of the whole range."""
        selection = await self.collected.find(name, query.range)
        answer = (await self._work(selection, query)).answer

        async def make() -> tuple[list[Series], int]:
            held = await self.collected.read(selection)
            found = await asyncio.to_thread(
                series,
                *(self.collected, selection, held, answer),
                values=values,
                number=number,
                candidates=query.candidates,
            )
            return found, sum(len(one.points) for one in found)

        key = (selection.metric.name, query, tuple(values), number, selection.version)
        return Trended(
            metric=selection.metric.name,
            kind=answer.kind,
            confidence=answer.confidence,
            min_batch=selection.metric.min_batch,
            epochs=shown_epochs(self.collected, selection, selection.epochs),
            series=await self._trends.get(key, make),
        )

    async def status(self) -> PipelineStatus:
        """Where every report is."""
        return await self._law.get()

    async def _terms(self) -> Terms | None:
        return await self._beyond.terms() if self._beyond else None

    async def _work(self, selection: EpochSelection, query: EstimateQuery) -> RangeEstimate:
        """What the totals of these epochs say."""

        async def make() -> tuple[RangeEstimate, int]:
            with self._stages.of("answer"):
                held = await self.collected.read(selection)
                worked = await asyncio.to_thread(
                    estimate_range, self.collected, selection, held, query
                )
            return worked, len(worked.answer.values)

        key = (selection.metric.name, query.confidence, query.candidates, selection.version)
        return await self._answers.get(key, make)
