"""Coefficients: a model's weights per unit of each feature, with their intervals."""

from dataclasses import dataclass

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.definition import Model
from hubbub.analysis.models.predictions_from_scores import into_classes
from hubbub.analysis.uncertainty.intervals import reach_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A coefficient of one column, or the intercept, per unit of the feature.

    A probability's coefficients are on the logit scale. The interval covers randomization and
    sampling, not too few rounds.

    Args:
        of_class: for softmax; coefficients of a column sum to 0 over classes.
    """

    name: str
    coefficient: float
    stderr: float
    low: float
    high: float
    of_class: str = ""


def in_own_units(model: Model, weights: Floats) -> Floats:
    """Weights of columns in [0, 1], then the intercept, in the columns' units; class by class."""
    lows, highs = model.ends
    span, base = _units(model)
    rows = weights.reshape(-1, len(lows) + 1)
    class_rows = into_classes(len(rows)).T @ rows
    slopes = class_rows[:, :-1] * span / (highs - lows)
    result: Floats = np.column_stack([slopes, base + span * class_rows[:, -1] - slopes @ lows])
    return result.ravel()


def coefficients(
    model: Model, weights: Floats, stderrs: Floats, confidence: float
) -> list[Coefficient]:
    """One coefficient per column, then the intercept; for softmax, for each class.

    `weights` and `stderrs` are of columns in [0, 1], from `averaged`.
    """
    reach, (lows, highs) = reach_of(confidence), model.ends
    spread = stderrs.reshape(-1, len(lows) + 1) * _units(model)[0]
    slopes = spread[:, :-1] / (highs - lows)
    intercept_stderr = np.sqrt(
        spread[:, -1] ** 2 + ((spread[:, :-1] * lows / (highs - lows)) ** 2).sum(axis=1)
    )
    errors = np.column_stack([slopes, intercept_stderr]).ravel()
    names = [*(name for name, _, _ in model.columns), "intercept"]
    labels = [(name, label) for label in model.classes or ("",) for name in names]
    return [
        Coefficient(
            name=name,
            coefficient=value,
            stderr=stderr,
            low=value - reach * stderr,
            high=value + reach * stderr,
            of_class=label,
        )
        for (name, label), value, stderr in zip(
            labels, in_own_units(model, weights).tolist(), errors.tolist(), strict=True
        )
    ]


def _units(model: Model) -> tuple[float, float]:
    """Width of the label's range, and where it begins; (1, 0) for probabilities."""
    if model.kind in {"logistic", "softmax"}:
        return 1.0, 0.0
    low, high = model.range
    return high - low, low
