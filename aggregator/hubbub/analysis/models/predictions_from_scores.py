"""Predictions from scores: a probability, a number, or a probability of each class."""

from functools import cache
from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.mechanisms.gradient import CLIP, ModelKind, contrasts

# Scores are limited to this, so that no probability becomes 0 or 1, and nothing overflows.
_MAX_SCORE: Final = 40.0
# Number of points at which predictions are averaged, and the first primes.
_POINTS: Final = 2048
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)


def foretold(kind: ModelKind, score: Floats) -> Floats:
    """Prediction for each score: a probability in (0, 1), or the score itself; same shape.

    For softmax, scores are of contrasts, shape (people, classes - 1), with a probability per class.
    """
    if kind == "softmax":
        class_scores = score @ into_classes(score.shape[1])
        parts = np.exp(
            np.maximum(class_scores - class_scores.max(axis=1, keepdims=True), -_MAX_SCORE)
        )
        shares: Floats = parts / parts.sum(axis=1, keepdims=True)
        return shares
    if kind != "logistic":
        return score
    return 1 / (1 + np.exp(-np.clip(score, -_MAX_SCORE, _MAX_SCORE)))


def settled(kind: ModelKind, score: Floats) -> Floats:
    """Prediction of a model whose rounds have converged; shape as for `foretold`.

    For logistic models, residuals are clipped at 1/2. With s = 1/(1+exp(-score)) below 1/2, rounds
    converge where P (1/2) = (1 - P) s, which gives the probability P; above 1/2 it is symmetric.
    For softmax, P is proportional to s / f, with f the factor by which clipping shortens the
    residual of a person of that class.
    """
    s = foretold(kind, score)
    if kind == "softmax":
        parts = s * np.maximum(lengths_of(s) / CLIP[kind], 1.0)
        shares: Floats = parts / parts.sum(axis=1, keepdims=True)
        return shares
    if kind != "logistic":
        return s
    low = np.minimum(s, 1 - s)
    chance = low / (low + CLIP["logistic"])
    return np.where(s < CLIP["logistic"], chance, 1 - chance)


def lengths_of(chances: Floats) -> Floats:
    """Length of the residual of a person of each class; same shape as the class probabilities."""
    square = (chances**2).sum(axis=1, keepdims=True)
    result: Floats = np.sqrt(np.maximum(square - 2 * chances + 1, 0.0))
    return result


def into_classes(rows: int) -> Floats:
    """Matrix from rows of weights to weights of classes, shape (rows, classes); 1 for one row."""
    return np.array([[1.0]] if rows == 1 else contrasts(rows + 1))


@cache
def normal_points(size: int) -> Floats:
    """`size` independent normal numbers at points that fill their space evenly.

    The same on every machine. Shape (points, size); fractions of multiples of roots of primes,
    Richtmyer (1951).
    """
    roots = np.array([sqrt(prime) for prime in _PRIMES[:size]])
    uniform = (np.arange(1, _POINTS + 1)[:, None] * roots) % 1.0
    inverse = NormalDist().inv_cdf
    return np.array([[inverse(chance) for chance in row] for row in uniform.tolist()])


def root(matrix: Floats) -> Floats:
    """Square root of a symmetric matrix, with negative eigenvalues taken as 0."""
    eigenvalues, basis = np.linalg.eigh(matrix)
    result: Floats = (basis * np.sqrt(np.maximum(eigenvalues, 0.0))) @ basis.T
    return result
