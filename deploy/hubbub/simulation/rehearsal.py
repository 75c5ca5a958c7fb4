"""A rehearsal: draws the totals of people with known values, and compares answers with the truth.

Totals come from the exact distributions of the shipped randomizers, and the query core answers
them like those in Redis. Nothing is sent or stored.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from hubbub.aggregator.query import EpochRange, EstimateQuery, QueryEngine
from hubbub.aggregator.query.answer_types import Estimated
from hubbub.aggregator.query.derived_answers import top
from hubbub.aggregator.query.experiments import EffectRow, experimented
from hubbub.aggregator.store.contract import DUMMIES, Counted, WindowTotals
from hubbub.analysis.answer import OF_NUMBERS
from hubbub.analysis.families import draw_epochs, family_for
from hubbub.analysis.families.draw_totals import Counts
from hubbub.analysis.strings.tree_search import detectable_share, shown_name
from hubbub.authoring.crowds.accountant import expected_dummies, gathered, minimum, named_dummies
from hubbub.bundles import Bundle
from hubbub.catalog import Metric, days_of_period
from hubbub.catalog.crowds.noise_dummies import count_noise, value_noise
from hubbub.catalog.discovery import counting
from hubbub.catalog.values.event_history_kinds import Activity, Retention
from hubbub.conservation import Window
from hubbub.errors import BadParameter
from hubbub.mechanisms import Totals
from hubbub.privacy.crowd_guarantees import smallest_crowd
from hubbub.privacy.many_epochs import composed_epsilon
from hubbub.privacy.noise_dummies_account import law_of
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.simulation.associations_and_figures import (
    Associated,
    FigureRow,
    PublicRow,
    associations,
    figure_rows,
    public_rows,
)
from hubbub.simulation.truth import Truth, above_most, true_values, with_truth

_TOP_VALUES: Final = 10  # as many as `hubbub top` shows
_EVERY: Final = EpochRange(epochs="all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to rehearse: who reports in how many epochs, and the question.

    `bundle` must contain the metric; `reports` people are drawn from the truth as from a
    population, None takes those of the file; `candidates` are strings to look for beside those of
    the file; `percentiles` are of numbers in parts, empty for the metric's or the usual ones.
    """

    bundle: Bundle
    metric: Metric
    truth: Truth
    epochs: int = 1
    reports: int | None = None
    confidence: float = 0.95
    candidates: tuple[str, ...] = ()
    percentiles: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Raises BadParameter if there are candidates and the metric is not over strings."""
        if self.candidates and family_for(self.metric.randomizer).KIND != "strings":
            raise BadParameter(
                f'metric "{self.metric.name}" is not over strings: leave "candidates" out'
            )

    @property
    def finds(self) -> bool:
        """Whether strings are discovered, without a list of candidates."""
        return family_for(self.metric.randomizer).FINDS and not self.candidates

    @property
    def above_most(self) -> int:
        """Number of people whose set has more values than a device reports."""
        return above_most(self.metric, self.truth.codes, self.truth.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Central:
    """What the smallest crowds reveal about one person, in one epoch and in all, in nats."""

    epoch: float
    all_epochs: float
    delta: float
    crowd: int
    honest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One value, true and as answered, in reports; for a mean in the metric's unit.

    `detected` and `consistent` (the likeliest histogram) are None for a mean; `shown` is whether it
    is in the top list, the only answer, or was discovered. `beginning` marks a discovered prefix of
    longer strings; `true` then counts all of those.
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
    """A percentile of numbers in parts: the edges of the part with the true one, and the answer."""

    percentile: float
    true_low: float
    true_high: float
    estimate: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the interval contains that whole part."""
        return self.low <= self.true_low and self.true_high <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The outcome of one rehearsal; `reports` counts those of all epochs that left the shuffler.

    Attributes:
        answered: whether the reports reach the minimum batch.
        withheld: epochs that did not leave, as they had fewer reports than the crowd.
        recall: part of the strings frequent enough to be discovered in 95% of cases that were;
            None without such strings. recall_begun: the same, counting prefixes of full length.
        associations: of every two parts. public: of every public value and value.
        percentiles: of numbers in parts. effects: of an experiment's arms.
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
    figures: tuple[FigureRow, ...] = ()


def central_of_plan(plan: Plan) -> Central | None:
    """The promise that every epoch that leaves keeps; None for a metric without a crowd."""
    crowd, promise = smallest_crowd(plan.metric), plan.metric.crowd
    if crowd is None or promise is None:
        return None
    return Central(
        epoch=central_epsilon(crowd, promise.delta),
        all_epochs=composed_epsilon([(crowd, plan.epochs)], promise.delta),
        delta=promise.delta,
        crowd=crowd.reports,
        honest=crowd.honest,
    )


@dataclass(frozen=True, slots=True)
class DrawnStore:
    """A store of drawn totals."""

    windows: Mapping[Window, WindowTotals]

    async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
        """The totals of these windows."""
        return [self.windows[window] for window in windows]

    async def counted(self, streams: Collection[str]) -> Mapping[Window, Counted]:
        """The number of reports and dummies in each window of the streams."""
        ours = (pair for pair in self.windows.items() if pair[0].stream in streams)
        return {window: Counted(totals.counted, totals.dummies) for window, totals in ours}

    async def report_counts(self) -> Mapping[Window, Mapping[str, int]]:
        """The known terms of the conservation law of each window."""
        return {
            window: {"counted": totals.counted, DUMMIES: totals.dummies}
            for window, totals in self.windows.items()
        }


def rehearse(plan: Plan, runs: int, seed: int | None) -> Iterator[Run]:
    """Yields `runs` rehearsals, each with its own people and random numbers.

    `seed` makes them repeatable; None takes the system's randomness. Raises BadParameter if the
    metric cannot be drawn like this, or if the confidence is outside (0, 1).
    """
    metric = plan.metric
    if metric.memoized and (metric.report_on or metric.sampling < 1) and plan.epochs > 1:
        raise BadParameter(
            "a metric with sampling or a period, and with a permanent response, is rehearsed over "
            "one epoch: leave --epochs out"
        )
    if isinstance(metric.value_kind, Activity) and plan.epochs > 1:
        raise BadParameter(
            "an activity is rehearsed over one day, since a day's values follow from the days "
            "before it: leave --epochs out"
        )
    if isinstance(metric.value_kind, Retention) and plan.epochs == 1:
        raise BadParameter(
            "a retention is rehearsed over two weeks or more, in which the same people report: "
            "give --epochs 2 or more"
        )
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        yield _run(plan, rng)


def _run(plan: Plan, rng: np.random.Generator) -> Run:
    metric, codes = plan.metric, list(plan.truth.codes)
    mechanism: Any = metric.randomizer
    counts = np.array(plan.truth.counts, dtype=np.int64)
    if plan.reports is not None:
        counts = rng.multinomial(plan.reports, counts / counts.sum())
    reported = np.zeros_like(counts)
    windows = {}
    streams = np.array(plan.truth.streams or [metric.name] * len(codes))
    # Participants are drawn anew in every epoch.
    parts = plan.epochs if metric.report_on or counting(metric) < 1 else 1
    epoch = withheld = 0
    for part in _taking_part(plan, counts, parts, rng):
        for stream in dict.fromkeys(streams.tolist()):
            people = np.where(streams == stream, part, 0)
            drawn = draw_epochs(mechanism, codes, people.tolist(), plan.epochs // parts, rng)
            for number, totals in enumerate(drawn, start=epoch):
                window_totals = as_window(metric, totals, rng)
                if window_totals is None:
                    withheld += 1
                    continue
                reported += people
                if totals.reports:
                    windows[Window(stream, number)] = window_totals
        epoch += plan.epochs // parts
    reports = int(reported.sum())
    if reports < metric.min_batch:
        return Run(reports=reports, values=(), answered=False, withheld=withheld)
    return asyncio.run(_run_of(plan, DrawnStore(windows), reported, withheld))


async def _run_of(plan: Plan, drawn_store: DrawnStore, reported: Counts, withheld: int) -> Run:
    """Asks all questions of drawn totals; `reported` is the number of reports of each code."""
    metric, codes, reports = plan.metric, list(plan.truth.codes), int(reported.sum())
    query = QueryEngine(plan.bundle, drawn_store, clock=lambda: 0.0)
    strings: tuple[str, ...] = ()
    if metric.randomizer.VALUES == "strings" and not plan.finds:
        strings = tuple(dict.fromkeys((*codes, *plan.candidates)))
    question = EstimateQuery(range=_EVERY, confidence=plan.confidence, candidates=strings)
    answer = await query.estimate(metric.name, replace(question, percentiles=plan.percentiles))
    visible_names = {value.value for value in answer.values}  # those that a top list would show
    if answer.kind not in OF_NUMBERS and not plan.finds:
        top_list = await top(query, metric.name, question, _TOP_VALUES)
        visible_names = {value.value.value for value in top_list.values}
    begun: list[str] = codes
    if plan.finds:
        begun = [shown_name(metric.randomizer, code) for code in codes]
    names, beginnings = [value.value for value in answer.values], set(answer.beginnings)
    truths = true_values(metric.randomizer, names, begun, reported).tolist()
    rows = tuple(
        with_truth(
            Row, value, true=truth, shown=name in visible_names, beginning=name in beginnings
        )
        for name, value, truth in zip(names, answer.values, truths, strict=True)
    )
    public: list[PublicRow] = []
    effects: list[EffectRow] = []
    if plan.truth.streams:
        people = replace(plan.truth, codes=tuple(begun), counts=tuple(reported.tolist()))
        public = await public_rows(query, metric, question, people, names)
        if metric.experiment:
            effects = (await experimented(query, metric.experiment.name, plan.confidence)).values
    complete = [row.value for row in rows if not row.beginning]
    return Run(
        reports=reports,
        values=rows,
        recall=_recall(plan, codes, reported, complete),
        recall_begun=_recall(plan, begun, reported, [row.value for row in rows]),
        withheld=withheld,
        associations=tuple(await associations(query, metric, question, codes, reported)),
        public=tuple(public),
        percentiles=tuple(_percentiles(rows, answer)),
        effects=tuple(effects),
        figures=tuple(await figure_rows(query, metric, question, plan.truth)),
    )


def _percentiles(rows: Sequence[Row], answer: Estimated) -> Iterator[PercentileRow]:
    people = np.array([row.true for row in rows[: max(len(answer.edges) - 1, 0)]])
    if not people.sum():
        return
    cumulative = np.cumsum(people) / people.sum()
    for row in answer.percentiles:
        part = int(np.searchsorted(cumulative, row.percentile / 100 - 1e-12))
        low, high = answer.edges[part : part + 2]
        yield with_truth(PercentileRow, row, true_low=low, true_high=high)


def as_window(metric: Metric, totals: Totals, rng: np.random.Generator) -> WindowTotals | None:
    """The totals of an epoch that has left the shuffler, dummies included.

    None if it does not leave, as it has fewer reports than the metric's crowd.
    """
    cells, dummies_each = np.array(totals.cells, dtype=np.int64), int(metric.made_each)
    size, named = len(cells), np.zeros_like(cells)
    evenly = dummies_each * totals.reports
    evenly += int(rng.binomial(totals.reports, metric.made_each - dummies_each))
    if noise := count_noise(metric):
        evenly += int(rng.choice(len(noise.weights), p=law_of(noise)))
    if named_law := value_noise(metric):
        named += named_law.draw(lambda law: int(rng.choice(len(law.weights), p=law_of(law))))
    pooled = totals.reports + evenly + int(named.sum())
    needed_reports = gathered(minimum(metric), metric.made_each)
    if metric.crowd and pooled < needed_reports + max(int(named.sum()), named_dummies(metric)):
        return None
    dummies = metric.crowd.dummies if metric.crowd else 0
    if evenly + dummies:
        cells += rng.multinomial(evenly + dummies, [1 / size] * size)
    expected = expected_dummies(metric)
    counted = pooled + dummies - expected
    return WindowTotals(
        cells=cells + named, counted=counted, batch_reports=0, at=0, dummies=expected
    )


def _taking_part(
    plan: Plan, counts: Counts, parts: int, rng: np.random.Generator
) -> Iterator[Counts]:
    """Yields the number of reports of each value in each epoch, or in one that stands for all."""
    metric, remaining = plan.metric, counts
    for epoch in range(parts):
        part = counts
        if metric.report_on:
            days = days_of_period(metric.period, epoch)
            remaining = counts if epoch == days.start else remaining
            part = rng.binomial(remaining, 1 / (days.stop - epoch))
            remaining = remaining - part
        share = counting(metric)
        yield part if share == 1 else rng.binomial(part, share)


def _recall(
    plan: Plan,
    codes: Sequence[str],
    reported: Counts,
    strings: Sequence[str],
) -> float | None:
    """The part of strings frequent enough to be discovered in 95% of cases that were."""
    if not plan.finds:
        return None
    tree: Any = plan.metric.randomizer
    reports, counts = int(reported.sum()), Counter[str]()
    for code, number in zip(codes, reported.tolist(), strict=True):
        counts[code] += number
    least = detectable_share(tree, reports) * reports
    frequent = {name for name, number in counts.items() if number > least}
    return len(frequent & set(strings)) / len(frequent) if frequent else None
