"""Models as they are asked for: coefficients with intervals, and how the rounds went."""

from dataclasses import dataclass

import numpy as np

from hubbub.aggregator.learning.rounds import FinishedRound
from hubbub.aggregator.query.engine import QueryEngine
from hubbub.aggregator.query.overview import iso_time
from hubbub.analysis.models import (
    Coefficient,
    Feature,
    Model,
    averaged,
    coefficients,
)
from hubbub.analysis.uncertainty.intervals import check_confidence
from hubbub.catalog import EPOCH_SECONDS, Metric, epoch_start
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.models.of_metric import codes_of_round
from hubbub.conservation import epoch_date
from hubbub.errors import UnknownMetric
from hubbub.errors.places import notice


@dataclass(frozen=True, slots=True)
class RoundLine:
    """One round. state: finished, running, or to come.

    number: 0 of where columns lie. reports: that taught it; 0 of one that is not over. noise: of
    its mean direction, whose length is at most 1. moved: how far its step moved the weights.
    """

    number: int
    date: str
    state: str
    reports: int
    noise: float
    moved: float


@dataclass(frozen=True, slots=True)
class LearnedModel:
    """A model as far as it has learned.

    epsilon: of each person, who is in one round, nats, as proven. number: the last round that is in
    it; -1 before any. rounds: how many there will be, after that of columns. reports: that are in
    it. finished: whether all rounds are. next: when the next state is worked out; None after the
    last. coefficients: per unit of each feature, the intercept last; none before the first step.
    low, high: between what a label lies that is a number. centre, weights: the state that devices
    learn by: where columns lie in [0, 1], and the weights of columns about it, the intercept last.
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


async def learned_models(query: QueryEngine, confidence: float) -> list[LearnedModel]:
    """Every model of the bundle."""
    names = [name for name, one in query.collected.bundle.metrics.items() if one.model]
    return [await learned_model(query, name, confidence) for name in names]


async def learned_model(query: QueryEngine, name: str, confidence: float) -> LearnedModel:
    """One model.

    Raises:
        UnknownMetric: the bundle has no such model.
        BadParameter: a confidence that is none.
    """
    metrics = query.collected.bundle.metrics
    metric = metrics.get(name)
    if metric is None or metric.model is None:
        known = sorted(n for n, one in metrics.items() if one.model)
        held = ", ".join(known) or "none: [models.NAME] of the catalog makes one"
        hint = f'; "{name}" is a metric, which hubbub query answers' if metric else ""
        raise UnknownMetric(f'model "{name[:60]}" is not in the bundle; it has {held}{hint}')
    check_confidence(confidence)
    done = await query.rounds.finished(name)
    now = query.collected.clocks.now()
    return _learned(metric, metric.model, done, confidence, now)


def _learned(
    metric: Metric, learning: Learning, done: list[FinishedRound], confidence: float, now: float
) -> LearnedModel:
    last, finished = (done[-1] if done else None), len(done) > learning.rounds
    first = done[0].epoch if done else learning.first_epoch(metric.epoch, now)
    following = learning.complete_at(len(done), metric.epoch, first)
    return LearnedModel(
        model=metric.name,
        description=metric.description,
        kind=learning.kind,
        mechanism=metric.mechanism,
        epsilon=metric.report_loss,
        confidence=confidence,
        number=len(done) - 1,
        rounds=learning.rounds,
        reports=sum(one.reports for one in done),
        finished=finished,
        next=None if finished else iso_time(following),
        low=learning.range[0],
        high=learning.range[1],
        coefficients=_coefficients(metric, learning, done, confidence),
        steps=[
            _line(metric, learning.epoch_of(number, metric.epoch, first), done, number, now)
            for number in range(learning.rounds + 1)
        ],
        centre=last.centre if last else [],
        weights=last.weights if last else [],
        notice=notice(development=metric.development),
    )


def _coefficients(
    metric: Metric, learning: Learning, done: list[FinishedRound], confidence: float
) -> list[Coefficient]:
    if len(done) < 2:  # noqa: PLR2004 where columns lie, and one step
        return []
    states = [one.state() for one in done[1:]]
    along = codes_of_round(metric, 0).along
    weights, stderrs = averaged(learning.kind, states, np.array(done[0].centre), along)
    features = tuple(Feature(*column) for column in learning.columns)
    model = Model(
        metric.name, learning.kind, metric.epsilon, features, *learning.range, learning.rounds
    )
    return coefficients(model, weights, stderrs, confidence)


def _line(
    metric: Metric, epoch: int, done: list[FinishedRound], number: int, now: float
) -> RoundLine:
    date = epoch_date(epoch, EPOCH_SECONDS[metric.epoch])
    if number >= len(done):
        state = "running" if epoch_start(epoch, metric.epoch) <= now else "to come"
        return RoundLine(number, date, state, 0, 0.0, 0.0)
    one = done[number]
    before = done[number - 1].weights if number else one.weights
    moved = float(np.linalg.norm(np.subtract(one.weights, before)))
    return RoundLine(number, date, "finished", one.reports, one.noise, moved)
