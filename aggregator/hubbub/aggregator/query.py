"""Query: which epochs hold what, and estimates for a metric over some of them."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from hubbub.aggregator.store import TotalsStore
from hubbub.analysis import Answer, Plausibility, answer_tiers, plausibility, together
from hubbub.catalog import Bundle, Metric, closing_time, epoch_at
from hubbub.errors import BadParameter, BatchTooSmall
from hubbub.mechanisms import AnyMechanism, Totals
from hubbub.privacy.amplification import Amplified, amplified_of
from hubbub.serving import Window

__all__ = ["Queried", "Query"]


@dataclass(frozen=True, slots=True)
class Queried:
    """Estimates of one metric over the epochs that were added up.

    shuffled: of one report in the smallest batch that it came from, at the tier that hides least;
        None if totals were begun before batches' sizes were kept.
    """

    metric: Metric
    epochs: tuple[int, ...]
    answer: Answer
    plausibility: Plausibility
    shuffled: Amplified | None


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
        held = await self._held()
        return [(metric, _epochs(metric, held)) for metric in self._bundle.metrics.values()]

    async def estimate(
        self, name: str, *, epochs: Sequence[int], last: int, candidates: Sequence[str]
    ) -> Queried:
        """Estimates over `epochs`; or the `last` ones up to now; or, with neither, the newest held.

        name: of a metric, with all its tiers; or of one tier alone, such as "theme/0.5".

        Raises:
            UnknownMetric: the bundle does not have the metric.
            BadParameter: epochs and last together, or candidates that do not fit.
            BatchTooSmall: fewer reports than the metric's minimum batch.
        """
        metric = self._bundle.metric(name)
        held = await self._held()
        chosen = self._chosen(metric, held, epochs, last)
        tiers, crowds = await self._read(metric, held, chosen)
        # In a thread: decoding strings takes seconds, and batches keep coming meanwhile.
        found = await asyncio.to_thread(answer_tiers, tiers, metric.values, candidates)
        repeats = metric.limits.reports_per_epoch * len(chosen)
        judged = await asyncio.to_thread(_judged, tiers, repeats)
        shuffled = await asyncio.to_thread(_shuffled, crowds)
        return Queried(metric, tuple(chosen), found, judged, shuffled)

    async def closed(
        self, metric: Metric, epochs: Sequence[int]
    ) -> tuple[list[int], list[tuple[AnyMechanism, Totals]]]:
        """Totals that change no more, with the epochs they are of: these, or the newest closed.

        Raises:
            BadParameter: an epoch that still takes reports, or holds none.
            BatchTooSmall: fewer reports than the metric's minimum batch.
        """
        held = await self._held()
        known = _epochs(metric, held)
        over = [e for e in known if closing_time(e, metric.epoch) <= self._clock()]
        chosen = sorted(set(epochs)) or over[-1:]
        for epoch in chosen:
            if epoch not in over:
                closes = datetime.fromtimestamp(closing_time(epoch, metric.epoch), UTC)
                raise BadParameter(
                    f'metric "{metric.name}": epoch {epoch} has no final totals; an epoch with '
                    f"reports has them once it takes no more, this one at {closes:%Y-%m-%d %H:%M} "
                    "UTC"
                )
        tiers, _ = await self._read(metric, held, chosen)
        return chosen, tiers

    def _chosen(
        self, metric: Metric, held: Mapping[str, set[int]], epochs: Sequence[int], last: int
    ) -> list[int]:
        """The epochs that are meant, of those that hold reports."""
        known = _epochs(metric, held)
        if epochs and last:
            raise BadParameter("give epochs or last, not both")
        if last:
            newest = epoch_at(self._clock(), metric.epoch)
            return [epoch for epoch in known if newest - last < epoch <= newest]
        if epochs:
            return sorted(set(epochs).intersection(known))
        return known[-1:]

    async def _read(
        self, metric: Metric, held: Mapping[str, set[int]], chosen: Sequence[int]
    ) -> tuple[list[tuple[AnyMechanism, Totals]], list[tuple[AnyMechanism, int]]]:
        """Every tier's totals over these epochs, and the crowds of their batches.

        Raises:
            BatchTooSmall: fewer reports than the metric's minimum batch.
        """
        tiers = []
        crowds: list[tuple[AnyMechanism, int]] = []
        for stream in metric.streams:
            mechanism = self._bundle.metric(stream).randomizer
            totals = Totals([0] * mechanism.layout.size, 0)
            for epoch in chosen:
                if epoch in held[stream]:
                    window = Window(stream, epoch)
                    totals = _sum(totals, await self._store.read(window))
                    crowds.append((mechanism, await self._store.crowd(window)))
            tiers.append((mechanism, totals))
        reports = sum(totals.reports for _, totals in tiers)
        if reports < metric.min_batch:
            raise BatchTooSmall(
                f'metric "{metric.name}": {reports} reports in the epochs asked, below its minimum '
                f"batch of {metric.min_batch}; ask for more epochs, or wait"
            )
        return tiers, crowds

    async def _held(self) -> dict[str, set[int]]:
        """Per stream, the epochs that hold a report."""
        held: dict[str, set[int]] = {name: set() for name in self._bundle.streams}
        for window, terms in (await self._store.law()).items():
            if terms.get("counted") and window.stream in held:
                held[window.stream].add(window.epoch)
        return held


def _epochs(metric: Metric, held: Mapping[str, set[int]]) -> list[int]:
    """The epochs that hold a report of the metric, of any tier, ascending."""
    return sorted({epoch for stream in metric.streams for epoch in held[stream]})


def _judged(tiers: Sequence[tuple[AnyMechanism, Totals]], repeats: int) -> Plausibility:
    return together([plausibility(*tier, repeats) for tier in tiers if tier[1].reports])


def _shuffled(crowds: Sequence[tuple[AnyMechanism, int]]) -> Amplified | None:
    """The weakest central guarantee over all batches."""
    if not all(crowd for _, crowd in crowds):
        return None
    found = [amplified_of(mechanism, crowd) for mechanism, crowd in set(crowds)]
    return max(found, key=lambda one: one.epsilon, default=None)


def _sum(one: Totals, other: Totals) -> Totals:
    """Totals of disjoint sets of reports under one definition simply add."""
    cells = [a + b for a, b in zip(one.cells, other.cells, strict=True)]
    return Totals(cells, one.reports + other.reports)
