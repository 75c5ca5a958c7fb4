"""Variances of a model's averaged weights from randomization, by the sandwich of its rounds.

A round's noise moves the weights, and each later round corrects it along its curvature: (mean slope
of residuals) * (length of columns) * outer, where outer is the mean outer product of directions,
which the same reports contain. Along an eigenvector of outer with eigenvalue l, a step leaves
1 - rate * slope * length * l of an earlier error and adds
(rate * clip * noise)^2 (1 + (along - 1) l) / (dimensions - 1 + along): all in one basis.
Rounded up: eigenvalues are lowered by half of what noise alone adds, and the slope is taken low.
Source: Polyak, Juditsky (1992), for a given number of steps; Marchenko, Pastur (1967).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.predictions_from_scores import (
    foretold,
    into_classes,
    lengths_of,
    normal_points,
    root,
    settled,
)
from hubbub.mechanisms.gradient import CLIP, ModelKind

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
    """
    size, rounds = len(weights), len(states)
    outer, people = _outer(states, size)
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
    into = into_classes(size // columns)
    mapping = np.tensordot(into.T, basis.reshape(size // columns, columns, size), axes=1)
    return mapping.reshape(-1, size) ** 2 @ variances


def _outer(states: Sequence[Round], size: int) -> tuple[Floats, int]:
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
        return _slope_of_classes(rows[:, -1] + normal_points(len(rows)) @ root(variances))
    normal = np.array([NormalDist().inv_cdf((point + 0.5) / _PARTS) for point in range(_PARTS)])
    s = foretold(kind, rows[0, -1] + sqrt(max(float(variances[0, 0]), 0.0)) * normal)
    return float((s * (1 - s) / (1 + 2 * np.minimum(s, 1 - s))).mean())


def _slope_of_classes(score: Floats) -> float:
    """Trace of the slope of clipped residuals, averaged over scores and classes.

    The eigenvalues of the curvature are this trace times those of the directions' outer product.
    """
    s, chance = foretold("softmax", score), settled("softmax", score)
    square = (s**2).sum(axis=1, keepdims=True)
    cube = (s**3).sum(axis=1, keepdims=True)
    lengths = np.maximum(lengths_of(s), CLIP["softmax"])
    # A clipped direction only turns: J = diag(s) - s s' has no part along the residual r.
    derivatives = (cube - 2 * s**2 + s - (square - s) ** 2) / lengths**2
    clipped = CLIP["softmax"] / lengths * (1 - square - derivatives)
    slopes = np.where(lengths > CLIP["softmax"], clipped, 1 - square)
    return float((chance * slopes).sum(axis=1).mean())
