"""Fits the same model to raw data, by Newton's method, for comparison with the private one."""

from collections.abc import Callable
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.definition import foretold, into_classes
from hubbub.mechanisms.gradient import ModelKind

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
