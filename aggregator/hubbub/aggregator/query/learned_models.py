"""Answers about models: coefficients with intervals, and the progress of the rounds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hubbub.aggregator.learning_rounds import FinishedRound, due_at
from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.estimating import stated_epsilon
from hubbub.aggregator.query.metric_answer import iso_time
from hubbub.analysis.models.definition import Coefficient, Model, coefficients
from hubbub.analysis.models.descent import averaged, averaged_weights
from hubbub.analysis.models.model_quality import edges_of, judge
from hubbub.catalog import EPOCH_SECONDS, Metric, epoch_start
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.models.model_metric import bins_for, codes_of_round, judging
from hubbub.epochs import epoch_date
from hubbub.errors import UnknownMetric
from hubbub.errors.message_words import NOTICES


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundLine:
    """One round.

    Args:
        number: 0 is the round that measures columns.
        state: finished, running, or to come.
        reports: number used by a finished round.
        noise: of the mean direction, whose length is at most 1.
        moved: change of the weights.
    """

    number: int
    date: str
    state: str
    reports: int
    noise: float
    moved: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBin:
    """People with similar predictions.

    Args:
        lowest, highest: range of predictions; the first and last bin include everything beyond.
        people: share of the evaluating devices.
        estimate, low, high: share with the label, or mean label, with its interval, which covers
            the whole range if `people` is not above 0.
    """

    lowest: float
    highest: float
    people: float
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Quality of the finished model on people who did not train it.

    Args:
        share: of all devices.
        date, state: of the evaluation round.
        reports: 0 until it is over.
        auc: for logistic, from bins, so slightly low, with its interval; otherwise None.
        accuracy: for softmax, how often the likeliest class is right.
    """

    share: float
    date: str
    state: str
    reports: int
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    calibration: list[JudgedBin]
    accuracy: float | None = None
    accuracy_low: float | None = None
    accuracy_high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedModel:
    """A model and its progress.

    Args:
        epsilon: of each person, in nats, proven.
        number: last round used; -1 before any.
        rounds: number of rounds after the round of columns.
        reports: number used.
        next: when the next state is computed; None after the last.
        coefficients: per unit of each feature, the intercept last; empty before the first step.
        low, high: range of a numeric label.
        centre, weights: the state for devices: column centres in [0, 1], and weights, the intercept
            last; for an evaluated model the mean weights.
        edges: limits of the score bins.
    """

    model: str
    description: str
    kind: str
    mechanism: str
    epsilon: float
    confidence: float
    number: int
    rounds: int
    reports: int
    finished: bool
    next: str | None
    low: float
    high: float
    coefficients: list[Coefficient]
    steps: list[RoundLine]
    centre: list[float]
    weights: list[float]
    notice: str
    edges: list[float]
    held_out: HeldOut | None


async def learned_model(query: QueryEngine, name: str, confidence: float) -> LearnedModel:
    """One model. Raises UnknownMetric."""
    metrics = query.collected.bundle.metrics
    metric = metrics.get(name)
    if metric is None or metric.model is None:
        names = sorted(n for n, metric in metrics.items() if metric.model)
        listing = ", ".join(names) or "none: [models.NAME] of the catalog makes one"
        hint = f'; "{name}" is a metric: use hubbub query' if metric else ""
        raise UnknownMetric(f'model "{name[:60]}" is not in the bundle; it has {listing}{hint}')
    learning, done = metric.model, await query.rounds.finished(name)
    now = query.collected.clocks.now()
    first_epoch = done[0].epoch if done else learning.first_epoch(metric.epoch, now)
    lines = [
        _line(metric, learning.epoch_of(number, metric.epoch, first_epoch), done, number, now)
        for number in range(learning.last_round + 1)
    ]
    judged = done[learning.last_round].judged if len(done) > learning.last_round else ()
    done = done[: learning.rounds + 1]
    last_round, finished = (done[-1] if done else None), len(done) > learning.rounds
    following = due_at(metric, learning, done, now)
    if metric.development and not done and following <= now:  # not begun: rounds come again
        following += (learning.last_round + 1) * EPOCH_SECONDS[metric.epoch]
    weights: list[float] = last_round.weights if last_round else []
    edges: list[float] = []
    if learning.held_out and finished:
        # The finished model for its evaluation: centred weights, and edges of bins.
        mean_weights = averaged_weights([round_.state() for round_ in done[1:]])
        weights = mean_weights.tolist()
        edges = edges_of(np.array(done[0].centre), mean_weights, bins_for(metric.epsilon))
    return LearnedModel(
        model=metric.name,
        description=metric.description,
        kind=learning.kind,
        mechanism=metric.mechanism,
        epsilon=stated_epsilon(metric),
        confidence=confidence,
        number=len(done) - 1,
        rounds=learning.rounds,
        reports=sum(round_.reports for round_ in done),
        finished=finished,
        next=None if finished else iso_time(following),
        low=learning.range[0],
        high=learning.range[1],
        coefficients=_coefficients(metric, learning, done, confidence),
        steps=lines[: learning.rounds + 1],
        centre=last_round.centre if last_round else [],
        weights=weights,
        notice=NOTICES[metric.development],
        edges=edges,
        held_out=_evaluation(metric, learning, lines[-1], judged, edges, confidence=confidence),
    )


def _evaluation(
    metric: Metric,
    learning: Learning,
    line: RoundLine,
    judged: Sequence[int],
    edges: Sequence[float],
    *,
    confidence: float,
) -> HeldOut | None:
    """The evaluation in the round of `line`; `judged` is () until that is over."""
    if not learning.held_out:
        return None
    judgement = None
    if judged and edges and line.reports >= metric.fewest:
        counts = np.array(judged, dtype=np.float64)
        judgement = judge(learning.kind, judging(metric).channel, counts, edges, confidence)
    low, width = learning.range[0], learning.range[1] - learning.range[0]
    rates: dict[str, float | None] = {}
    for name in ("auc", "accuracy"):
        rate = getattr(judgement, name, None)
        for end, field in (("", "estimate"), ("_low", "low"), ("_high", "high")):
            rates[name + end] = getattr(rate, field, None)
    return HeldOut(
        share=learning.held_out,
        date=line.date,
        state=line.state,
        reports=judgement.reports if judgement else line.reports,
        **rates,
        calibration=[
            JudgedBin(
                lowest=low + width * group.lowest,
                highest=low + width * group.highest,
                people=group.people,
                estimate=low + width * group.true.estimate,
                low=low + width * group.true.low,
                high=low + width * group.true.high,
            )
            for group in (judgement.calibration if judgement else ())
        ],
    )


def _coefficients(
    metric: Metric, learning: Learning, done: list[FinishedRound], confidence: float
) -> list[Coefficient]:
    if len(done) < 2:  # noqa: PLR2004 where columns lie, and one step
        return []
    states = [round_.state() for round_ in done[1:]]
    weights, stderrs = averaged(
        learning.kind, states, np.array(done[0].centre), codes_of_round(metric, 1)
    )
    model = Model(
        name=metric.name,
        kind=learning.kind,
        epsilon=metric.epsilon,
        columns=learning.columns,
        range=learning.range,
        classes=learning.classes,
    )
    return coefficients(model, weights, stderrs, confidence)


def _line(
    metric: Metric, epoch: int, done: list[FinishedRound], number: int, now: float
) -> RoundLine:
    state = "running" if epoch_start(epoch, metric.epoch) <= now else "to come"
    date = epoch_date(epoch, EPOCH_SECONDS[metric.epoch])
    line = RoundLine(number=number, date=date, state=state, reports=0, noise=0.0, moved=0.0)
    if number >= len(done):
        return line
    round_ = done[number]
    before = done[number - 1].weights if number else round_.weights
    change = float(np.linalg.norm(np.subtract(round_.weights, before)))
    return replace(line, state="finished", reports=round_.reports, noise=round_.noise, moved=change)
