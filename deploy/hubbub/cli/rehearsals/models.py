"""A model rehearsed: people dealt out to rounds, their gradients randomized, the steps taken."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hubbub.analysis.models import (
    DirectionMoments,
    Evaluation,
    Learned,
    Model,
    deal,
    evaluate,
    gradients,
    learn,
    rounds_of,
    scores,
)
from hubbub.cli.rehearsals.model_table import People
from hubbub.mechanisms.gradient import longest
from hubbub.mechanisms.vector_codes import MAX_CELLS, VectorCodes, words_for
from hubbub.privacy.draws_of_codes import told_of, unit_of

Floats = npt.NDArray[np.float64]

_MAX_BOOKS = 1 << 16


@dataclass(frozen=True, slots=True)
class Trained:
    """One run: the model, and how good it is on the people of the test."""

    learned: Learned
    judged: Evaluation


def codes_of(model: Model) -> VectorCodes:
    """The mechanism of a model's rounds: of its columns and the intercept."""
    words = words_for(model.epsilon)
    books = min(MAX_CELLS // words, _MAX_BOOKS)
    return VectorCodes(model.epsilon, len(model.features) + 1, words, books)


def rehearse_model(
    model: Model, people: People, test: People, *, reports: int | None, runs: int, seed: int | None
) -> Iterator[Trained]:
    """So many runs, each with the people in another order and other coins."""
    for chance in np.random.default_rng(seed).spawn(runs):
        yield _trained(model, people, test, reports, chance)


def _trained(
    model: Model, people: People, test: People, reports: int | None, chance: np.random.Generator
) -> Trained:
    every = len(people.labels)
    order = chance.permutation(every) if reports is None else chance.integers(0, every, reports)
    codes = codes_of(model)
    turns = list(deal(len(order), rounds_of(model, len(order), codes.squared_error)))
    pool = chance.integers(0, 1 << 62)

    def means(number: int, centre: Floats, weights: Floats) -> DirectionMoments:
        turn = order[turns[number]]
        columns, labels = people.columns[turn], people.labels[turn]
        if not number:
            vectors = np.column_stack([columns, np.zeros(len(turn))]) / longest(len(centre))
        else:
            about = np.column_stack([columns - centre, np.ones(len(turn))])
            vectors = gradients(model.kind, about, labels, weights)
        own = replace(codes, seed=f"{pool}/{number}")
        return told_of(own, unit_of(vectors, chance), chance)

    learned = learn(model, len(order), codes, means)
    foretold = scores(model.kind, test.columns, learned.weights)
    return Trained(learned, evaluate(model.kind, foretold, test.labels))
