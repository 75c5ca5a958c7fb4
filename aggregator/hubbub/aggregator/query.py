"""Query: which epochs hold what, and estimates for a metric over some of them."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hubbub.aggregator.store import TotalsStore
from hubbub.analysis import Answer, answer
from hubbub.catalog import Bundle, Metric, epoch_at
from hubbub.errors import BadParameter, BatchTooSmall
from hubbub.mechanisms import Totals
from hubbub.serving import Window

__all__ = ["Queried", "Query"]


@dataclass(frozen=True, slots=True)
class Queried:
    """Estimates of one metric over the epochs that were added up."""

    metric: Metric
    epochs: tuple[int, ...]
    answer: Answer


class Query:
    """Answers questions from the totals. Every method raises StoreUnavailable without Redis."""

    def __init__(
        self, bundle: Bundle, store: TotalsStore, clock: Callable[[], float] = time.time
    ) -> None:
        self._bundle = bundle
        self._store = store
        self._clock = clock

    async def metrics(self) -> list[tuple[Metric, list[int]]]:
        """Every metric, with the epochs that hold a report."""
        law = await self._store.law()
        held: dict[str, list[int]] = {name: [] for name in self._bundle.metrics}
        for window, terms in law.items():
            if terms.get("counted") and window.stream in held:
                held[window.stream].append(window.epoch)
        return [(metric, held[name]) for name, metric in self._bundle.metrics.items()]

    async def estimate(
        self, name: str, *, epochs: Sequence[int], last: int, candidates: Sequence[str]
    ) -> Queried:
        """Estimates over `epochs`; or the `last` ones up to now; or, with neither, the newest held.

        Raises:
            UnknownMetric: the bundle does not have the metric.
            BadParameter: epochs and last together, or candidates that do not fit.
            BatchTooSmall: fewer reports than the metric's minimum batch.
        """
        metric = self._bundle.metric(name)
        held = {m.name: epochs for m, epochs in await self.metrics()}[name]
        if epochs and last:
            raise BadParameter("give epochs or last, not both")
        if last:
            newest = epoch_at(self._clock(), metric.epoch)
            chosen = [epoch for epoch in held if newest - last < epoch <= newest]
        elif epochs:
            chosen = sorted(set(epochs).intersection(held))
        else:
            chosen = held[-1:]
        totals = Totals([0] * metric.randomizer.layout.size, 0)
        for epoch in chosen:
            totals = _sum(totals, await self._store.read(Window(name, epoch)))
        if totals.reports < metric.min_batch:
            raise BatchTooSmall(
                f'metric "{name}": {totals.reports} reports in the epochs asked, below its minimum '
                f"batch of {metric.min_batch}; ask for more epochs, or wait"
            )
        # In a thread: decoding strings takes seconds, and batches keep coming meanwhile.
        found = await asyncio.to_thread(
            answer, metric.randomizer, totals, metric.values, candidates
        )
        return Queried(metric, tuple(chosen), found)


def _sum(one: Totals, other: Totals) -> Totals:
    """Totals of disjoint sets of reports under one definition simply add."""
    cells = [a + b for a, b in zip(one.cells, other.cells, strict=True)]
    return Totals(cells, one.reports + other.reports)
