"""The same model fitted to data that are seen, by Newton's method: what a private one is beside."""

from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.definition import Kind
from hubbub.analysis.models.prediction import foretold

_STEPS: Final = 30
# Columns that follow from each other, as of all values of a list, have no one answer without it.
_LEAST: Final = 1e-4


def without_privacy(kind: Kind, columns: Floats, labels: Floats, penalty: float) -> Floats:
    """Weights of the columns in [0, 1], then of the intercept, which is not penalized."""
    whole = np.column_stack([columns, np.ones(len(columns))])
    pull = np.full(whole.shape[1], _LEAST + penalty)
    pull[-1] = _LEAST / len(whole)
    weights = np.zeros(whole.shape[1])
    for _ in range(_STEPS if kind == "logistic" else 1):
        told = foretold(kind, whole @ weights)
        bend = told * (1 - told) if kind == "logistic" else np.ones(len(whole))
        slope = whole.T @ (told - labels) / len(whole) + pull * weights
        curvature = (whole * bend[:, None]).T @ whole / len(whole) + np.diag(pull)
        step = np.linalg.solve(curvature, slope)
        weights = weights - step
        if float(np.abs(step).max()) < 1e-9:  # noqa: PLR2004 converged
            break
    return weights
