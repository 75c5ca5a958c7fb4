"""Coefficients: a model's weights per unit of each feature, with their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.models.definition import Feature, Model


@dataclass(frozen=True, slots=True)
class Coefficient:
    """Of one column, or of the intercept, per unit of the feature; of a chance on the logit scale.

    The interval is of the coins and of who was drawn, not of rounds that were too few.
    """

    name: str
    coefficient: float
    stderr: float
    low: float
    high: float


def in_own_units(model: Model, weights: Floats) -> Floats:
    """Weights of columns in [0, 1] and the intercept, as of columns in their own units."""
    low, wide = _low(model.features), _wide(model.features)
    logistic = model.kind == "logistic"
    span, base = (1.0, 0.0) if logistic else (model.high - model.low, model.low)
    slopes = weights[:-1] * span / wide
    found: Floats = np.append(slopes, base + span * weights[-1] - float(slopes @ low))
    return found


def coefficients(
    model: Model, weights: Floats, stderrs: Floats, confidence: float
) -> list[Coefficient]:
    """One for each column, then the intercept. weights, stderrs: of columns in [0, 1]."""
    times = NormalDist().inv_cdf((1 + confidence) / 2)
    low, wide = _low(model.features), _wide(model.features)
    spread = stderrs * (1.0 if model.kind == "logistic" else model.high - model.low)
    moved = np.sqrt(spread[-1] ** 2 + float(((spread[:-1] * low / wide) ** 2).sum()))
    own, errors = in_own_units(model, weights), np.append(spread[:-1] / wide, moved)
    names = [*(feature.name for feature in model.features), "intercept"]
    return [
        Coefficient(name, value, stderr, value - times * stderr, value + times * stderr)
        for name, value, stderr in zip(names, own.tolist(), errors.tolist(), strict=True)
    ]


def _low(features: Sequence[Feature]) -> Floats:
    return np.array([feature.low for feature in features])


def _wide(features: Sequence[Feature]) -> Floats:
    return np.array([feature.high - feature.low for feature in features])
