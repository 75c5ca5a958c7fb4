"""Rehearses a model by rounds of randomized gradients, beside a fit to the raw data."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.draw_totals import Counts
from hubbub.analysis.families.vector import unit_of
from hubbub.analysis.models import descent
from hubbub.analysis.models.definition import Model, foretold, into_classes, settled
from hubbub.analysis.models.model_quality import Evaluation, Judgement, edges_of, evaluate, judge
from hubbub.catalog.models.model_metric import bins_for, judging
from hubbub.mechanisms.gradient import ModelKind, longest
from hubbub.mechanisms.mechanism import MAX_CELLS
from hubbub.mechanisms.vector_codes import VectorCodes, words_for
from hubbub.simulation.model_and_people_files import People

_MAX_BOOKS = 1 << 16


@dataclass(frozen=True, slots=True)
class Trained:
    """The model of one run, and its quality on the test people.

    `judgement` is its quality by randomized reports of held-out people; None without them.
    """

    learned: descent.Learned
    judged: Evaluation
    judgement: Judgement | None


def codes_of(model: Model) -> VectorCodes:
    """The mechanism of a model's rounds, for its columns and intercept."""
    words = words_for(model.epsilon)
    books = min(MAX_CELLS // words, _MAX_BOOKS)
    return VectorCodes(epsilon=model.epsilon, dimensions=model.dimensions, words=words, books=books)


def rehearse_model(
    model: Model,
    people: People,
    test: People,
    *,
    reports: int | None,
    runs: int,
    seed: int | None,
    confidence: float = 0.95,
) -> Iterator[Trained]:
    """Yields `runs` trained models, each with another order of people and other random numbers.

    `confidence` is the level of the intervals in `judgement`.
    """
    for rng in np.random.default_rng(seed).spawn(runs):
        size = len(people.labels)
        # Everybody once, or a number of people with repetition.
        chosen_people = rng.permutation(size) if reports is None else rng.integers(0, size, reports)
        held_out, order = np.split(chosen_people, [round(len(chosen_people) * model.held_out)])
        learned = _train(model, people, order, rng)
        foretold = descent.scores(model.kind, test.columns, learned.weights)
        judges = People(people.columns[held_out], people.labels[held_out], 0)
        judgement = None
        if len(held_out):
            # Randomized reports of people who did not train the model judge it.
            about_centre = descent.averaged_weights(learned.rounds[1:])
            edges = edges_of(learned.centre, about_centre, bins_for(model.epsilon))
            score, labels = (
                descent.linear(model.kind, judges.columns, learned.weights),
                judges.labels,
            )
            if model.kind == "softmax":
                predictions = settled(model.kind, score)
                score, labels = predictions.max(axis=1), predictions.argmax(axis=1) == labels
            drawn_labels = rng.random(len(score)) < labels
            codes = 2 * np.searchsorted(edges, score, side="right") + drawn_labels
            coins = judging(model)
            p, q = float(coins.channel.p), float(coins.channel.q)
            true = np.bincount(codes, minlength=coins.categories)
            counts = np.zeros(coins.categories)
            for category, number in enumerate(true.tolist()):
                chances = np.full(coins.categories, q)
                chances[category] = p
                counts += rng.multinomial(number, chances / chances.sum())
            judgement = judge(model.kind, coins.channel, counts, edges, confidence)
        yield Trained(learned, evaluate(model.kind, foretold, test.labels), judgement)


def _train(
    model: Model, people: People, order: Counts, rng: np.random.Generator
) -> descent.Learned:
    """Trains the model on people who are dealt out to rounds in this order."""
    codes = codes_of(model)
    rounds = model.rounds or descent.rounds_for(len(order), codes.squared_error)
    # Each person is in one round, or in `rounds_each` random ones.
    turns: Sequence[slice | Counts] = list(descent.deal(len(order), rounds))
    if model.rounds_each:
        shuffled_rounds = rng.random((len(order), rounds + 1)).argsort(axis=1)
        own_rounds = shuffled_rounds[:, : model.rounds_each]
        turns = [np.flatnonzero((own_rounds == number).any(axis=1)) for number in range(rounds + 1)]
    pool = rng.integers(0, 1 << 62)

    def means(number: int, centre: Floats, weights: Floats) -> descent.DirectionMoments:
        turn = order[turns[number]]
        columns, labels = people.columns[turn], people.labels[turn]
        if not number:
            size = model.dimensions if model.rounds_each else len(centre) + 1
            vectors = np.zeros((len(turn), size))
            vectors[:, : len(centre)] = columns / longest(len(centre))
        else:
            centred = np.column_stack([columns - centre, np.ones(len(turn))])
            vectors = descent.gradients(model.kind, centred, labels, weights)
        round_codes = replace(codes, seed=f"{pool}/{number}", dimensions=vectors.shape[1])
        return descent.draw_moments(round_codes, unit_of(vectors, rng), rng)

    return descent.learn(model, len(order), codes, means)


_STEPS: Final = 30
# Linearly dependent columns, as those of all values of a list, have no unique answer without it.
_LEAST: Final = 1e-4
_CONVERGED: Final = 1e-9
Derivatives = Callable[[Floats], tuple[Floats, Floats]]
"""Of weights: slopes of what is to be least, and its curvature, shape (weights, weights)."""


def without_privacy(
    kind: ModelKind, columns: Floats, labels: Floats, penalty: float, classes: int = 0
) -> Floats:
    """Weights of the columns in [0, 1], then of the intercept, which is not penalized.

    With `classes`, for softmax, weights are of each contrast in turn.
    """
    design = np.column_stack([columns, np.ones(len(columns))])
    if kind == "softmax":
        return _class_weights(design, labels, classes)
    pull = np.full(design.shape[1], _LEAST + penalty)
    pull[-1] = _LEAST / len(design)

    def derivatives(weights: Floats) -> tuple[Floats, Floats]:
        predictions = foretold(kind, design @ weights)
        bend = predictions * (1 - predictions) if kind == "logistic" else np.ones(len(design))
        slope = design.T @ (predictions - labels) / len(design) + pull * weights
        return slope, (design * bend[:, None]).T @ design / len(design) + np.diag(pull)

    return _minimum_weights(design.shape[1], derivatives, steps=_STEPS if kind == "logistic" else 1)


def _class_weights(design: Floats, labels: Floats, classes: int) -> Floats:
    people, size = design.shape
    one_hot_labels = np.eye(classes)[labels.astype(int)]
    into = into_classes(classes - 1)
    pull = np.full(size, _LEAST)
    pull[-1] = _LEAST / people

    def derivatives(weights: Floats) -> tuple[Floats, Floats]:
        rows = weights.reshape(classes - 1, size)
        predictions = foretold("softmax", design @ rows.T)
        slope = into @ (predictions - one_hot_labels).T @ design / people + pull * rows
        curvature = np.zeros((classes - 1, size, classes - 1, size))
        for a in range(classes - 1):
            for b in range(a + 1):
                bend = predictions @ (into[a] * into[b]) - (predictions @ into[a]) * (
                    predictions @ into[b]
                )
                curvature[a, :, b] = (design * bend[:, None]).T @ design / people
                curvature[b, :, a] = curvature[a, :, b]
            curvature[a, :, a] += np.diag(pull)
        return slope.ravel(), curvature.reshape(rows.size, rows.size)

    return _minimum_weights((classes - 1) * size, derivatives, steps=_STEPS)


def _minimum_weights(size: int, derivatives: Derivatives, *, steps: int) -> Floats:
    """The weights with zero slope, by Newton's method from 0."""
    weights = np.zeros(size)
    for _ in range(steps):
        slope, curvature = derivatives(weights)
        step = np.linalg.solve(curvature, slope)
        weights = weights - step
        if float(np.abs(step).max()) < _CONVERGED:
            break
    return weights
