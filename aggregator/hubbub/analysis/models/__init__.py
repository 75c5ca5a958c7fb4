"""Models learned from randomized gradients: the question, the descent, and how good they are."""

from hubbub.analysis.models.descent import (
    IN_ROUNDS,
    Learned,
    deal,
    gradients,
    learn,
    longest,
    noise_of,
    rounds_for,
    rounds_of,
    scores,
)
from hubbub.analysis.models.evaluation import Evaluation, evaluate
from hubbub.analysis.models.prediction import foretold
from hubbub.analysis.models.question import KINDS, MAX_COLUMNS, Feature, Model
from hubbub.analysis.models.without_privacy import without_privacy

__all__ = [
    "IN_ROUNDS",
    "KINDS",
    "MAX_COLUMNS",
    "Evaluation",
    "Feature",
    "Learned",
    "Model",
    "deal",
    "evaluate",
    "foretold",
    "gradients",
    "learn",
    "longest",
    "noise_of",
    "rounds_for",
    "rounds_of",
    "scores",
    "without_privacy",
]
