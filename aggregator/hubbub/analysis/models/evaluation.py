"""Quality of a model on people with known labels: AUC and calibration, or the error."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.mechanisms.gradient import ModelKind

_GROUPS: Final = 10


@dataclass(frozen=True, slots=True)
class Group:
    """People with similar predictions: their number, mean prediction, and mean label."""

    people: int
    foretold: float
    true: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The quality of a model on known people.

    Args:
        auc: None for a numeric label, or if only one label occurs.
        accuracy: None for a numeric label.
        rms_error: root mean squared error of the prediction, with labels in [0, 1]; for
            probabilities its square is Brier's score (1950), for classes summed over them.
        calibration: ten groups by prediction, for classes by the probability of the likeliest and
            how often it is right.
        miscalibration: mean difference in these groups, weighted by people.
    """

    people: int
    auc: float | None
    accuracy: float | None
    rms_error: float
    r_squared: float | None
    miscalibration: float
    calibration: tuple[Group, ...]


def evaluate(kind: ModelKind, foretold: Floats, labels: Floats) -> Evaluation:
    """Compares predictions with labels, which are in [0, 1], or places of classes."""
    auc, accuracy, r_squared = None, None, None
    if kind == "softmax":
        right = (foretold.argmax(axis=1) == labels).astype(float)
        groups, calibration = _groups(foretold.max(axis=1), right)
        one_hot_labels = np.eye(foretold.shape[1])[labels.astype(int)]
        square = float(((foretold - one_hot_labels) ** 2).sum(axis=1).mean())
        accuracy = float(right.mean())
    else:
        groups, calibration = _groups(foretold, labels)
        square = float(((foretold - labels) ** 2).mean())
        if kind == "logistic":
            auc = _auc(foretold, labels)
            accuracy = float(((foretold > 0.5) == (labels > 0.5)).mean())  # noqa: PLR2004 the likelier one
        elif spread := float(labels.var()):
            r_squared = 1 - square / spread
    return Evaluation(
        people=len(labels),
        auc=auc,
        accuracy=accuracy,
        rms_error=square**0.5,
        r_squared=r_squared,
        miscalibration=calibration,
        calibration=groups,
    )


def _groups(foretold: Floats, labels: Floats) -> tuple[tuple[Group, ...], float]:
    """Groups of people by prediction, and the mean difference of prediction and label in them."""
    order = np.argsort(foretold, kind="stable")
    groups = tuple(
        Group(len(part), float(foretold[part].mean()), float(labels[part].mean()))
        for part in np.array_split(order, _GROUPS)
        if len(part)
    )
    calibration = sum(group.people * abs(group.foretold - group.true) for group in groups) / len(
        labels
    )
    return groups, calibration


def _auc(foretold: Floats, labels: Floats) -> float | None:
    """Chance that a person with the label has the higher prediction: Mann, Whitney (1947)."""
    positive = labels > 0.5  # noqa: PLR2004 0 or 1
    have, others = int(positive.sum()), int((~positive).sum())
    if not have or not others:
        return None
    _, place, counts = np.unique(foretold, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float((ranks[positive].sum() - have * (have + 1) / 2) / (have * others))
