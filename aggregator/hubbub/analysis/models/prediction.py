"""What scores foretell: a chance, a number, or a chance of each class."""

from functools import cache
from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.definition import Kind
from hubbub.mechanisms.gradient import CLIP, contrasts

# A chance is told apart from 0 and 1 no further, and nothing overflows.
_MAX_SCORE: Final = 40.0
# Points at which what a model foretells of people is averaged, and the first primes.
_POINTS: Final = 2048
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)


def foretold(kind: Kind, score: Floats) -> Floats:
    """Of each score a chance in (0, 1), or the score itself; shape as it.

    Of softmax scores are of contrasts, shape (people, classes - 1): a chance of each class.
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
    result: Floats = 1 / (1 + np.exp(-np.clip(score, -_MAX_SCORE, _MAX_SCORE)))
    return result


def settled(kind: Kind, score: Floats) -> Floats:
    """What a model whose rounds have settled foretells by a score; shape as of `foretold`.

    Of a logistic one with residuals clipped at 1/2 they settle where P (1/2) = (1 - P) s for
    s = 1/(1+exp(-score)) below 1/2, and the other way round above: the chance P follows from it.
    Of softmax P is as s / f, with f what the clip leaves of a residual of who is of the class.
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
    """Of chances of classes how long the residual is of who is of each; shape as they."""
    square = (chances**2).sum(axis=1, keepdims=True)
    result: Floats = np.sqrt(np.maximum(square - 2 * chances + 1, 0.0))
    return result


def into_classes(rows: int) -> Floats:
    """By what rows of weights are multiplied for those of classes; shape (rows, classes).

    Of one row it is itself, which is no class's.
    """
    return np.array([[1.0]] if rows == 1 else contrasts(rows + 1))


@cache
def normal_points(size: int) -> Floats:
    """So many independent normal numbers at points that fill their space evenly.

    The same on every machine. Shape (points, size); the fractions of multiples of roots of primes,
    Richtmyer (1951).
    """
    roots = np.array([sqrt(prime) for prime in _PRIMES[:size]])
    even = (np.arange(1, _POINTS + 1)[:, None] * roots) % 1.0
    inverse = NormalDist().inv_cdf
    return np.array([[inverse(chance) for chance in row] for row in even.tolist()])


def root(matrix: Floats) -> Floats:
    """What times itself is a symmetric matrix, as far as that has no negative eigenvalue."""
    eigenvalues, basis = np.linalg.eigh(matrix)
    result: Floats = (basis * np.sqrt(np.maximum(eigenvalues, 0.0))) @ basis.T
    return result
