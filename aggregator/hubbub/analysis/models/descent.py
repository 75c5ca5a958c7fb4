"""Gradient descent: a model's coefficients from rounds of means of randomized gradients.

People are divided among rounds; each reports once. The first round estimates the centre of the
columns, so that later rounds can use centred columns. In each later round, people report the
direction in which the previous round's weights are wrong, and the aggregator takes a step against
the mean. The result is the mean of the later half of the rounds' weights: Polyak, Juditsky (1992).

A device's gradient is its residual, clipped to `CLIP`, times its columns scaled to length 1.
Clipping pulls scores together, by a known law (`scores`). A gradient shorter than the clip is
reported at full length, with its sign turned with probability (1 - length/clip)/2: no bias. A
round's words are decoded to the mean direction of its people, and second moments.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.vector_book_errors import along_over_across, centre_square, words_of
from hubbub.analysis.families.vector import books_variance, drawn_words, scale_of
from hubbub.analysis.models import definition
from hubbub.errors import BatchTooSmall
from hubbub.mechanisms.direction_pool import UNIT
from hubbub.mechanisms.gradient import CLIP, ModelKind, longest
from hubbub.mechanisms.vector_codes import VectorCodes

# Least ratio of a word's length along its person's direction to its length across.
_MIN_LONGER: Final = 1e-9


@dataclass(frozen=True, slots=True)
class DirectionMoments:
    """The moments of the directions in a round's reports.

    Args:
        people: number of reports.
        mean: of directions, per coordinate.
        variances: of the mean, from coins and from books that reports share.
        outer: mean outer product of a direction with itself, shape (dimensions, dimensions), trace
            1. Sent words are longer along their person's direction, so they contain it; None if
            they do not, as at the smallest epsilons, where half of all words are near.
    """

    people: int
    mean: Floats
    variances: Floats
    outer: Floats | None

    @property
    def noise(self) -> float:
        """Root of the expected squared length of the error of the mean direction."""
        return float(np.sqrt(self.variances.sum()))


def moments_of(
    mechanism: VectorCodes, sums: Floats, sent: Floats, products: Floats
) -> DirectionMoments:
    """Moments of the directions that a round's words show.

    `sums` are of the words of each book's reports, in steps, of shape (books, dimensions), and
    `sent` counts these reports; `products` is the sum of each word's outer product with itself, of
    shape (dimensions, dimensions). Raises BatchTooSmall for fewer than two reports.
    """
    people = int(sent.sum())
    if people < 2:  # noqa: PLR2004 one has no variance
        raise BatchTooSmall("a round's mean needs at least two reports")
    moments = products / people / UNIT**2
    by_book = scale_of(mechanism) * sums
    mean = by_book.sum(axis=0) / people
    squares = np.diag(moments) / mechanism.dimensions / mechanism.reach**2
    coins = np.maximum(squares - mean**2, 0.0) / (people - 1)
    # Reports by one book share its words, and err together.
    variances = coins + books_variance(mechanism, by_book, sent, people**2 * coins) / people**2
    longer = mechanism.along - 1
    is_clear = abs(longer) > _MIN_LONGER
    across = 1 - centre_square(mechanism)
    outer = (moments - across * np.eye(mechanism.dimensions)) / longer if is_clear else None
    return DirectionMoments(people, mean, variances, outer)


def moments_from_cells(mechanism: VectorCodes, cells: Floats) -> DirectionMoments:
    """The moments from each word's count, shape (books * words,). Raises as `moments_of`."""
    size = mechanism.dimensions
    books = cells.reshape(mechanism.books, mechanism.words)
    sums, products = np.zeros((mechanism.books, size)), np.zeros((size, size))
    for number in np.flatnonzero(books.any(axis=1)).tolist():
        words = words_of(mechanism, number)
        sums[number] = books[number] @ words
        sent = np.flatnonzero(books[number])
        products += (words[sent].T * books[number][sent]) @ words[sent]
    return moments_of(mechanism, sums, books.sum(axis=1), products)


def draw_moments(
    mechanism: VectorCodes, units: Floats, rng: np.random.Generator
) -> DirectionMoments:
    """Moments of one report for each unit vector, drawn from its exact law."""
    books, ranks = drawn_words(mechanism, len(units), rng)
    sent = np.empty_like(units)
    for draw_number, (number, rank) in enumerate(zip(books.tolist(), ranks.tolist(), strict=True)):
        words = words_of(mechanism, number)
        order = np.argpartition(-(words @ units[draw_number]), mechanism.near - 1)
        sent[draw_number] = words[order[rank]]
    sums = np.zeros((mechanism.books, mechanism.dimensions))
    np.add.at(sums, books, sent)
    counts = np.bincount(books, minlength=mechanism.books).astype(np.float64)
    return moments_of(mechanism, sums, counts, sent.T @ sent)


# Margin of the slope, since scores are only nearly normal; tests/statistics/test_learn.py.
_SURE: Final = {"logistic": 0.6, "linear": 0.7, "ridge": 0.7, "softmax": 0.6}
# Number of equal parts of a normal distribution at whose middles a mean is computed.
_PARTS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The state after a round: its number, and the weights.

    `rate` is of its step and `noise` of its mean direction, both 0 for a skipped round; `outer` is
    the mean outer product of people's directions, None if unknown.
    """

    number: int
    weights: Floats
    rate: float = 0.0
    noise: float = 0.0
    people: int = 0
    outer: Floats | None = None


def variances_of(
    kind: ModelKind, states: Sequence[Round], weights: Floats, columns: int, along: float
) -> Floats:
    """Variances of weights averaged over the later half of the rounds; for softmax, per class.

    `columns` is the number of weights per class, with the intercept; `along` the mean square of a
    sent word along its person's direction, over that across it.

    A round's noise moves the weights, and each later round corrects it along its curvature: (mean
    slope of residuals) * (length of columns) * outer, where outer is the mean outer product of
    directions, which the same reports contain. Along an eigenvector of outer with eigenvalue l, a
    step leaves 1 - rate * slope * length * l of an earlier error and adds
    (rate * clip * noise)^2 (1 + (along - 1) l) / (dimensions - 1 + along): all in one basis.
    Rounded up: eigenvalues are lowered by half of what noise alone adds, and the slope is low.
    Source: Polyak, Juditsky (1992), for a given number of steps; Marchenko, Pastur (1967).
    """
    size, rounds = len(weights), len(states)
    outer, people = _mean_outer_product(states, size)
    eigenvalues, basis = np.linalg.eigh(outer)
    edge = 2 * sqrt(size / people) / (along - 1) if people else 0.0
    curved = np.maximum(eigenvalues - edge / 2, 0.0)
    # Depends on the columns only: products of their directions, for any residuals.
    class_moments = np.einsum("aiaj->ij", outer.reshape(size // columns, columns, -1, columns))
    length = 1 / sqrt(max(class_moments[-1, -1], 1 / columns)) if people else 0.0
    slope = _SURE[kind] * _slope(kind, weights.reshape(-1, columns), class_moments, length)
    share = (1 + (along - 1) * curved) / (size - 1 + along)
    memory, variances = np.zeros(size), np.zeros(size)
    for round_number in reversed(range(rounds)):
        # Contribution of this round's noise to the average: its own weights and all later ones.
        memory += (round_number >= rounds // 2) / (rounds - rounds // 2)
        variances += (
            states[round_number].rate * CLIP[kind] * states[round_number].noise * memory
        ) ** 2 * share
        memory *= np.minimum(np.abs(1 - states[round_number].rate * slope * length * curved), 1.0)
    into = definition.into_classes(size // columns)
    mapping = np.tensordot(into.T, basis.reshape(size // columns, columns, size), axes=1)
    return mapping.reshape(-1, size) ** 2 @ variances


def _mean_outer_product(states: Sequence[Round], size: int) -> tuple[Floats, int]:
    """Mean outer product of all people's directions, and the number of these people."""
    pairs = [(state.people, state.outer) for state in states if state.outer is not None]
    people = sum(number for number, _ in pairs)
    if not people:
        return np.zeros((size, size)), 0
    mean_outer: Floats = np.sum([number * outer for number, outer in pairs], axis=0) / people
    return (mean_outer + mean_outer.T) / 2, people


def _slope(kind: ModelKind, rows: Floats, outer: Floats, length: float) -> float:
    """Mean slope of predictions over people whose residuals are not clipped, of normal scores.

    Labels are as where the rounds converge (`settled`). `rows` are weights, one row per score.
    """
    if kind not in {"logistic", "softmax"}:
        return 1.0
    variances = length**2 * rows[:, :-1] @ outer[:-1, :-1] @ rows[:, :-1].T
    if kind == "softmax":
        return _slope_of_classes(
            rows[:, -1] + definition.normal_points(len(rows)) @ definition.root(variances)
        )
    normal = np.array([NormalDist().inv_cdf((point + 0.5) / _PARTS) for point in range(_PARTS)])
    s = definition.foretold(kind, rows[0, -1] + sqrt(max(float(variances[0, 0]), 0.0)) * normal)
    return float((s * (1 - s) / (1 + 2 * np.minimum(s, 1 - s))).mean())


def _slope_of_classes(score: Floats) -> float:
    """Trace of the slope of clipped residuals, averaged over scores and classes.

    The eigenvalues of the curvature are this trace times those of the directions' outer product.
    """
    s, chance = definition.foretold("softmax", score), definition.settled("softmax", score)
    square = (s**2).sum(axis=1, keepdims=True)
    cube = (s**3).sum(axis=1, keepdims=True)
    lengths = np.maximum(definition.lengths_of(s), CLIP["softmax"])
    # A clipped direction only turns: J = diag(s) - s s' has no part along the residual r.
    derivatives = (cube - 2 * s**2 + s - (square - s) ** 2) / lengths**2
    clipped = CLIP["softmax"] / lengths * (1 - square - derivatives)
    slopes = np.where(lengths > CLIP["softmax"], clipped, 1 - square)
    return float((chance * slopes).sum(axis=1).mean())


# Measured on the census people; decision 0219.
_CENTRE_SHARE: Final = 0.1
IN_ROUNDS: Final = 1 - _CENTRE_SHARE
"""The share of people who tell a gradient; the others tell where columns lie."""
_MIN_ROUNDS: Final = 3
_FEW_ROUNDS: Final = 8
_MAX_ROUNDS: Final = 64
# Noise of a round's mean direction: above the first limit fewer than eight rounds are better; below
# the second, more than eight.
_NOISE_OF_FEW: Final = 0.2
_NOISE_OF_MORE: Final = 0.14
# Steps are as long as noise and curvature permit.
_BY_NOISE: Final = {"logistic": 1.0, "linear": 0.1, "ridge": 0.1, "softmax": 1.0}
_BY_CURVATURE: Final = {"logistic": 6.0, "linear": 1.2, "ridge": 1.2, "softmax": 3.0}
Means = Callable[[int, Floats, Floats], DirectionMoments]
"""Asked for a round's number, the centre and weights: what the round's people tell.

Round 0 is of columns.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A learned model; weights and errors are of columns in [0, 1], then of the intercept.

    Standard errors cover randomization and the sample: the distance to the result of the same
    rounds without either. Too few rounds pull weights to 0, which the errors do not cover.
    """

    weights: Floats
    stderrs: Floats
    rounds: tuple[Round, ...]
    noise: float
    rate: float
    centre: Floats


def rounds_for(people: float, squared_error: float) -> int:
    """Number of rounds, from 3 to 64, that the noise permits."""
    fit = people * IN_ROUNDS / squared_error
    few_rounds = min(fit * _NOISE_OF_FEW**2, _FEW_ROUNDS)
    return int(min(max(fit * _NOISE_OF_MORE**2, few_rounds, _MIN_ROUNDS), _MAX_ROUNDS))


def noise_of(people: float, rounds: int, squared_error: float, rounds_each: int = 0) -> float:
    """The noise of a round's mean direction, whose length is at most 1.

    `rounds_each` is the number of rounds of each person; 0 for one, or the round of columns.
    """
    in_a_round = rounds_each / (rounds + 1) if rounds_each else IN_ROUNDS / rounds
    return sqrt(squared_error / (people * in_a_round))


def deal(people: int, rounds: int) -> Iterator[slice]:
    """Slices of randomly ordered people: for the centre, then for each round."""
    centre_people = min(max(int(people * _CENTRE_SHARE), 1), people)
    ends = np.linspace(centre_people, people, rounds + 1).astype(int).tolist()
    yield slice(0, centre_people)
    yield from (slice(a, b) for a, b in pairwise(ends))


def learn(model: definition.Model, people: int, codes: VectorCodes, means: Means) -> Learned:
    """Learns a model from this number of people; `means` returns each round's moments."""
    rounds = model.rounds or rounds_for(people, codes.squared_error)
    untaught = np.zeros(model.dimensions)
    columns = len(model.columns)
    centre = centre_of(means(0, np.zeros(columns), untaught), columns)
    noise = noise_of(people, rounds, codes.squared_error, model.rounds_each)
    rate = rate_of(model.kind, centre, noise)
    states = [Round(number=0, weights=untaught)]
    for number in range(1, rounds + 1):
        moments = means(number, centre, states[-1].weights)
        states.append(stepped(model.kind, model.penalty, states[-1], moments, rate))
    final, stderrs = averaged(model.kind, states[1:], centre, codes)
    return Learned(
        weights=final, stderrs=stderrs, rounds=tuple(states), noise=noise, rate=rate, centre=centre
    )


def rate_of(kind: ModelKind, centre: Floats, noise: float) -> float:
    """Length of a step if a round's mean direction has this noise."""
    length = sqrt(1 + float((centre * (1 - centre)).sum()))
    return min(_BY_NOISE[kind] / (CLIP[kind] * noise), _BY_CURVATURE[kind] * length)


def stepped(
    kind: ModelKind, penalty: float, state: Round, moments: DirectionMoments, rate: float
) -> Round:
    """The state after one more round."""
    # Only ridge has a penalty here, and one row of weights.
    pull = np.full(len(moments.mean), penalty if kind == "ridge" else 0.0)
    pull[-1] = 0.0
    # The penalty is taken after the step, where it is stable however large.
    weights = (state.weights - rate * CLIP[kind] * moments.mean) / (1 + rate * pull)
    return Round(
        number=state.number + 1,
        weights=weights,
        rate=rate,
        noise=moments.noise,
        people=moments.people,
        outer=moments.outer,
    )


def averaged(
    kind: ModelKind, states: Sequence[Round], centre: Floats, codes: VectorCodes
) -> tuple[Floats, Floats]:
    """Weights of the columns in [0, 1] and of the intercept, with standard errors.

    For softmax, weights are of each contrast, and standard errors of each class in turn. `states`
    are those of at least one round after that of columns, in order, by `codes`.
    """
    final, size = averaged_weights(states), len(centre) + 1
    spread = variances_of(kind, states, final, size, along_over_across(codes)).reshape(-1, size)
    # From coordinates around the estimated centre to those around 0.
    rows = final.reshape(-1, size)
    rows[:, -1] -= rows[:, :-1] @ centre
    spread[:, -1] += spread[:, :-1] @ centre**2
    return rows.ravel(), np.sqrt(spread).ravel()


def averaged_weights(states: Sequence[Round]) -> Floats:
    """Mean weights of the later half of the rounds, for centred columns."""
    mean: Floats = np.mean([state.weights for state in states[len(states) // 2 :]], axis=0)
    return mean


def centre_of(moments: DirectionMoments, columns: int) -> Floats:
    """Centre of the columns, which are the first coordinates of the first round.

    Each coordinate is shrunk by its noise, to 0 if it does not exceed it (Stein 1956).
    """
    mean, variances = moments.mean[:columns], moments.variances[:columns]
    out = np.maximum(mean, np.sqrt(variances))
    shrinkage = np.divide(out**2 - variances, out, out=np.zeros_like(out), where=out > 0)
    return np.clip(shrinkage * longest(len(mean)), 0.0, 1.0)


def gradients(kind: ModelKind, columns: Floats, labels: Floats, weights: Floats) -> Floats:
    """Each person's gradient divided by the clip: length at most 1; shape (people, weights).

    `columns` are centred, with a last column of ones; `labels` are in [0, 1], or places of classes.
    """
    score = columns @ weights.reshape(-1, columns.shape[1]).T
    lengths = np.linalg.norm(columns, axis=1, keepdims=True)
    if kind == "softmax":
        errors = definition.foretold(kind, score)
        errors[np.arange(len(errors)), labels.astype(int)] -= 1
        errors /= np.maximum(np.linalg.norm(errors, axis=1, keepdims=True), CLIP[kind])
        residual = errors @ definition.into_classes(score.shape[1]).T
    else:
        residual = np.clip(
            (definition.foretold(kind, score) - labels[:, None]) / CLIP[kind], -1.0, 1.0
        )
    result: Floats = (residual[:, :, None] * (columns / lengths)[:, None, :]).reshape(
        len(labels), -1
    )
    return result


def scores(kind: ModelKind, columns: Floats, weights: Floats) -> Floats:
    """Predictions for columns in [0, 1], as by `settled`: probabilities, or labels.

    For softmax, a probability of each class; shape (people, classes).
    """
    return definition.settled(kind, linear(kind, columns, weights))


def linear(kind: ModelKind, columns: Floats, weights: Floats) -> Floats:
    """Linear scores of columns in [0, 1]: one per person, or for softmax one per contrast."""
    rows = weights.reshape(-1, columns.shape[1] + 1)
    score: Floats = columns @ rows[:, :-1].T + rows[:, -1]
    return score if kind == "softmax" else score[:, 0]
