"""A rehearsal: people whose values are known report to nobody; what is answered is set beside them.

Totals come from the exact law of the shipping randomizers, and the query core answers them as it
answers those in Redis. Nothing is sent, and nothing is kept.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from hubbub.aggregator.query import EpochRange, EstimateQuery, QueryEngine
from hubbub.aggregator.query.answers import Estimated
from hubbub.aggregator.query.experiments import EffectRow
from hubbub.aggregator.store.contract import DUMMIES, Counted, WindowTotals
from hubbub.analysis import OF_NUMBERS
from hubbub.analysis.families import draw_epochs, family_for
from hubbub.analysis.strings.tree_search import found_from, told_as
from hubbub.authoring.crowds.dummy_counts import expected_dummies, gathered, minimum
from hubbub.bundles import Bundle
from hubbub.catalog import Metric, days_of_period
from hubbub.catalog.crowds.hidden_counts import count_noise
from hubbub.catalog.crowds.noise_dummies import named_dummies, value_noise
from hubbub.catalog.discovery import counting
from hubbub.conservation import Window
from hubbub.errors import BadParameter
from hubbub.mechanisms import Totals
from hubbub.privacy.crowd import smallest_crowd
from hubbub.privacy.many_epochs import composed_epsilon
from hubbub.privacy.noisy_counts import law_of
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.simulation.beside import Associated, PublicRow, associations, public_rows
from hubbub.simulation.truth import Truth, above_most, true_values

_SHOWN: Final = 10  # as many as `hubbub top` shows
_EVERY: Final = EpochRange(epochs="all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is rehearsed: who reports in how many epochs, and what is asked.

    bundle: one that has the metric.
    reports: how many people, drawn from the truth as from a population; None for those of the file.
    candidates: strings to look for beside those of the file.
    """

    bundle: Bundle
    metric: Metric
    truth: Truth
    epochs: int = 1
    reports: int | None = None
    confidence: float = 0.95
    candidates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises BadParameter for candidates of a metric that is not over strings."""
        if self.candidates and family_for(self.metric.randomizer).KIND != "strings":
            raise BadParameter(
                f'metric "{self.metric.name}" is not over strings: leave candidates out'
            )

    @property
    def finds(self) -> bool:
        """Whether strings are found, and not looked for."""
        return family_for(self.metric.randomizer).FINDS and not self.candidates

    @property
    def above_most(self) -> int:
        """Of sets, how many people hold more values than a device tells."""
        return above_most(self.metric, self.truth.codes, self.truth.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Central:
    """What crowds of the smallest size say of one person: one epoch, and all of them, in nats."""

    epoch: float
    all_epochs: float
    delta: float
    crowd: int
    honest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One value: what is true and what was answered, in reports; of a mean, in its own unit.

    detected: None of a mean. shown: it is in the top list, or the only answer, or was found.
    beginning: of strings that were found, whether it is only what longer ones begin with; what is
        true is then of all of those together.
    consistent: the likely histogram's; None of a mean.
    """

    value: str
    true: float
    estimate: float
    low: float
    high: float
    detected: bool | None
    shown: bool
    beginning: bool = False
    consistent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileRow:
    """A percentile of numbers in parts: where the true one lies, between edges, and what was said.

    holds: whether the interval holds all of the part that the true one is in.
    """

    percentile: float
    true_low: float
    true_high: float
    estimate: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the interval has that part in it."""
        return self.low <= self.true_low and self.true_high <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One rehearsal. reports: how many were made in all, of those epochs that left the shuffler.

    answered: whether those were as many as the minimum batch.
    withheld: epochs that did not leave, having fewer reports than the metric's crowd.
    recall: where strings are found, of those that are found 95 times in 100 how many were, whole;
        None where nobody holds so frequent a one. recall_begun: the same of those that were found
        whole or by a beginning that is as long as the tree tells.
    associations: of parts, every two. public: of what is told apart, every part and value.
    percentiles: of numbers in parts. effects: of an experiment's arms, of the values file's.
    """

    reports: int
    values: tuple[Row, ...]
    answered: bool = True
    recall: float | None = None
    recall_begun: float | None = None
    withheld: int = 0
    associations: tuple[Associated, ...] = ()
    public: tuple[PublicRow, ...] = ()
    percentiles: tuple[PercentileRow, ...] = ()
    effects: tuple[EffectRow, ...] = ()


def central_of_plan(plan: Plan) -> Central | None:
    """The promise that every epoch keeps that leaves; None of a metric without one."""
    metric, crowd = plan.metric, smallest_crowd(plan.metric)
    if crowd is None:
        return None
    return Central(
        epoch=central_epsilon(crowd, metric.delta),
        all_epochs=composed_epsilon([(crowd, plan.epochs)], metric.delta),
        delta=metric.delta,
        crowd=crowd.reports,
        honest=crowd.honest,
    )


@dataclass(frozen=True, slots=True)
class DrawnStore:
    """Drawn totals, in the place of a store."""

    windows: Mapping[Window, WindowTotals]

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """What these windows hold."""
        return [self.windows[window] for window in windows]

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        """What each window of the streams holds."""
        return {
            w: Counted(window_totals.counted, window_totals.dummies)
            for w, window_totals in self.windows.items()
            if w.stream in streams
        }

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """The terms of the law that are known of each."""
        return {
            window: {"counted": window_totals.counted, DUMMIES: window_totals.dummies}
            for window, window_totals in self.windows.items()
        }


def rehearse(plan: Plan, runs: int, seed: int | None) -> Iterator[Run]:
    """So many runs, one after the other, every one with coins and people of its own.

    seed: of the coins; None for the system's.

    Raises:
        BadParameter: what cannot be drawn; a confidence outside (0, 1).
    """
    metric = plan.metric
    if metric.memoized and (metric.report_on or metric.sampling < 1) and plan.epochs > 1:
        raise BadParameter(
            "a metric with sampling or a period, and with a permanent response, is rehearsed over "
            "one epoch: leave --epochs out"
        )
    chance = np.random.default_rng(seed)
    for _ in range(runs):
        yield _run(plan, chance)


def _run(plan: Plan, chance: np.random.Generator) -> Run:
    metric, codes = plan.metric, list(plan.truth.codes)
    mechanism: Any = metric.randomizer
    counts = np.array(plan.truth.counts, dtype=np.int64)
    if plan.reports is not None:
        counts = chance.multinomial(plan.reports, counts / counts.sum())
    reported = np.zeros_like(counts)
    windows = {}
    streams = np.array(plan.truth.streams or [metric.name] * len(codes))
    # Who takes part is drawn anew in every epoch.
    parts = plan.epochs if metric.report_on or counting(metric) < 1 else 1
    epoch = withheld = 0
    for part in _taking_part(plan, counts, parts, chance):
        for stream in dict.fromkeys(streams.tolist()):
            own = np.where(streams == stream, part, 0)
            drawn = draw_epochs(mechanism, codes, own.tolist(), plan.epochs // parts, chance)
            for number, totals in enumerate(drawn, start=epoch):
                window_totals = as_window(metric, totals, chance)
                if window_totals is None:
                    withheld += 1
                    continue
                reported += own
                if totals.reports:
                    windows[Window(stream, number)] = window_totals
        epoch += plan.epochs // parts
    reports = int(reported.sum())
    if reports < metric.min_batch:
        return Run(reports=reports, values=(), answered=False, withheld=withheld)
    return asyncio.run(_told(plan, DrawnStore(windows), reported, withheld))


async def _told(
    plan: Plan, drawn: DrawnStore, reported: "np.typing.NDArray[np.int64]", withheld: int
) -> Run:
    """What every face would say, each beside its truth. reported: of each code, how many did."""
    metric, codes, reports = plan.metric, list(plan.truth.codes), int(reported.sum())
    query = QueryEngine(plan.bundle, drawn, clock=lambda: 0.0)
    question = _asked(plan)
    answer, visible_names = await _answered(plan, query, question)
    begun: list[str] = codes
    if plan.finds:
        begun = [told_as(metric.randomizer, code) for code in codes]
    rows = tuple(_beside(metric, begun, reported, answer, visible_names))
    public: list[PublicRow] = []
    effects: list[EffectRow] = []
    if plan.truth.streams:
        people = replace(plan.truth, codes=tuple(begun), counts=tuple(reported.tolist()))
        names = [value.value for value in answer.values]
        public = await public_rows(query, metric, question, people, names)
        if metric.experiment:
            tried = await query.experiment(metric.experiment.name, plan.confidence)
            effects = tried.values
    whole = [row.value for row in rows if not row.beginning]
    return Run(
        reports=reports,
        values=rows,
        recall=_recall(plan, codes, reported, whole),
        recall_begun=_recall(plan, begun, reported, [row.value for row in rows]),
        withheld=withheld,
        associations=tuple(await associations(query, metric, question, codes, reported)),
        public=tuple(public),
        percentiles=tuple(_percentiles(rows, answer)),
        effects=tuple(effects),
    )


def _percentiles(rows: Sequence[Row], answer: Estimated) -> Iterator[PercentileRow]:
    """Every percentile beside the part that the true one is in."""
    people = np.array([row.true for row in rows[: max(len(answer.edges) - 1, 0)]])
    if not people.sum():
        return
    below = np.cumsum(people) / people.sum()
    for row in answer.percentiles:
        part = int(np.searchsorted(below, row.percentile / 100 - 1e-12))
        yield PercentileRow(
            percentile=row.percentile,
            true_low=answer.edges[part],
            true_high=answer.edges[part + 1],
            estimate=row.estimate,
            low=row.low,
            high=row.high,
        )


def as_window(metric: Metric, totals: Totals, chance: np.random.Generator) -> WindowTotals | None:
    """What an epoch holds once these reports have left, with the dummies among them.

    None where they do not leave: they are fewer than the metric's crowd.
    """
    cells, each = np.array(totals.cells, dtype=np.int64), int(metric.dummies_each)
    size, named = len(cells), np.zeros_like(cells)
    evenly = each * totals.reports
    evenly += int(chance.binomial(totals.reports, metric.dummies_each - each))
    if noise := count_noise(metric):
        evenly += int(chance.choice(len(noise.weights), p=law_of(noise)))
    if noise := value_noise(metric):
        named = chance.choice(len(noise.weights), size, p=law_of(noise))
    pooled = totals.reports + evenly + int(named.sum())
    needed = gathered(minimum(metric), metric.made_each)
    if metric.crowd and pooled < needed + max(int(named.sum()), named_dummies(metric)):
        return None
    if evenly + metric.dummies:
        cells += chance.multinomial(evenly + metric.dummies, [1 / size] * size)
    expected = expected_dummies(metric)
    return WindowTotals(
        cells=cells + named,
        counted=pooled + metric.dummies - expected,
        batch_reports=0,
        at=0,
        dummies=expected,
    )


def _taking_part(
    plan: Plan, counts: "np.typing.NDArray[np.int64]", parts: int, chance: np.random.Generator
) -> Iterator["np.typing.NDArray[np.int64]"]:
    """How many of each value report in so many epochs, or in the one that stands for all."""
    metric, rest = plan.metric, counts
    for epoch in range(parts):
        part = counts
        if metric.report_on:
            days = days_of_period(metric.period, epoch)
            rest = counts if epoch == days.start else rest
            part = chance.binomial(rest, 1 / (days.stop - epoch))
            rest = rest - part
        share = counting(metric)
        yield part if share == 1 else chance.binomial(part, share)


def _asked(plan: Plan) -> EstimateQuery:
    strings: tuple[str, ...] = ()
    if plan.metric.randomizer.VALUES == "strings" and not plan.finds:
        strings = tuple(dict.fromkeys((*plan.truth.codes, *plan.candidates)))
    return EstimateQuery(range=_EVERY, confidence=plan.confidence, candidates=strings)


async def _answered(
    plan: Plan, query: QueryEngine, question: EstimateQuery
) -> tuple[Estimated, set[str]]:
    """The estimates, and which values their top list would show."""
    metric = plan.metric
    answer = await query.estimate(metric.name, question)
    if answer.kind in OF_NUMBERS or plan.finds:
        return answer, {value.value for value in answer.values}
    top = await query.top(metric.name, question, _SHOWN)
    return answer, {value.value.value for value in top.values}


def _beside(
    metric: Metric,
    codes: Sequence[Any],
    reported: "np.typing.NDArray[np.int64]",
    answer: Estimated,
    visible_names: Collection[str],
) -> Iterator[Row]:
    """Every value's answer beside its truth."""
    names = [value.value for value in answer.values]
    true = true_values(metric.randomizer, names, codes, reported)
    beginnings = set(answer.beginnings)
    for value, truth in zip(answer.values, true.tolist(), strict=True):
        yield Row(
            value=value.value,
            true=truth,
            estimate=value.estimate,
            low=value.low,
            high=value.high,
            detected=value.detected,
            shown=value.value in visible_names,
            beginning=value.value in beginnings,
            consistent=value.consistent,
        )


def _recall(
    plan: Plan,
    codes: Sequence[str],
    reported: "np.typing.NDArray[np.int64]",
    strings: Sequence[str],
) -> float | None:
    """Of the strings that are found 95 times in 100, how many were."""
    if not plan.finds:
        return None
    tree: Any = plan.metric.randomizer
    reports = int(reported.sum())
    counts: Counter[str] = Counter()
    for code, number in zip(codes, reported.tolist(), strict=True):
        counts[code] += number
    least = found_from(tree, reports) * reports
    frequent = {name for name, number in counts.items() if number > least}
    return len(frequent & set(strings)) / len(frequent) if frequent else None
