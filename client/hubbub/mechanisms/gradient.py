"""A person's vector for a model: their scaled columns, or their gradient.

A vector longer than its clip is shortened to it, so that its length is at most 1. The mechanism's
guarantee holds for any such vector; so floats may be used here, and no claim depends on them.
"""

import math
from collections.abc import Sequence
from operator import mul
from typing import Final, Literal

from hubbub.errors import BadParameter
from hubbub.mechanisms.portable_floats import falling, length

ModelKind = Literal["logistic", "linear", "ridge", "softmax"]
KINDS: Final = ("logistic", "linear", "ridge", "softmax")

CLIP: Final = {"logistic": 0.5, "linear": 0.25, "ridge": 0.25, "softmax": 1.0}
"""To which length a residual is clipped; of a number's label, in its range."""

# Largest length of columns in the first round: seven columns that are 1.
_LONGEST: Final = 2.7
# Scores are limited to this, so that no probability becomes 0 or 1, and nothing overflows.
_MAX_SCORE: Final = 40.0

MAX_COLUMNS: Final = 1000
"""Beyond it a gradient needs more people than there are: its squared error grows with columns."""

MIN_CLASSES: Final = 3
MAX_CLASSES: Final = 16
_REMEDY: Final = "or train centrally on data that you may hold"


def longest(columns: int) -> float:
    """The length to which the columns of the first round's people are clipped.

    Clipping moves the centre towards 0. The centre may be anywhere: a bad one only slows the
    rounds.
    """
    return min(math.sqrt(columns), _LONGEST)


def place(columns: Sequence[float]) -> list[float]:
    """Columns in [0, 1] as vectors of the first round: divided by their clip, followed by 0."""
    return [*(column / longest(len(columns)) for column in columns), 0.0]


def contrasts(classes: int) -> list[list[float]]:
    """One row fewer than classes, of unit length, orthogonal to each other and to all ones.

    Scores of classes count only by their differences, so a model has a row of weights for each of
    these, and does not depend on the order of classes. Source: Helmert (1876).
    """
    return [
        [1 / math.sqrt(index * (index + 1))] * index
        + [-index / math.sqrt(index * (index + 1))]
        + [0.0] * (classes - index - 1)
        for index in range(1, classes)
    ]


def gradient(
    kind: ModelKind,
    columns: Sequence[float],
    label: float,
    centre: Sequence[float],
    weights: Sequence[float],
) -> list[float]:
    """A person's gradient divided by the clip: length at most 1, one number per weight.

    Args:
        kind: of the model.
        columns: in [0, 1].
        label: in [0, 1]; for softmax the place of the class.
        centre: means of the columns.
        weights: of the centred columns, then of the intercept; for softmax, for each contrast.
    """
    centred = _centred_columns(columns, centre)
    norm = length(centred)
    return [r * x / norm for r in _residuals(kind, centred, label, weights) for x in centred]


def _residuals(
    kind: ModelKind, centred: Sequence[float], label: float, weights: Sequence[float]
) -> list[float]:
    """Prediction minus label, divided by the clip; length at most 1."""
    if kind == "softmax":
        probabilities = _softmax(_class_scores(centred, weights))
        errors = [s - (place == label) for place, s in enumerate(probabilities)]
        longer = max(length(errors), CLIP[kind])
        return [math.fsum(map(mul, row, errors)) / longer for row in contrasts(len(errors))]
    [foretold] = _scores(centred, weights)
    if kind == "logistic":
        exponential = falling(min(abs(foretold), _MAX_SCORE))
        foretold = (1.0 if foretold >= 0 else exponential) / (1 + exponential)
    return [min(max((foretold - label) / CLIP[kind], -1.0), 1.0)]


def to_judge(
    kind: ModelKind,
    columns: Sequence[float],
    label: float,
    centre: Sequence[float],
    weights: Sequence[float],
) -> tuple[float, float]:
    """The prediction of a model for a person, and the label; arguments as in `gradient`.

    For softmax: the chance of the likeliest class, and 1 if that is the person's, else 0.
    """
    centred = _centred_columns(columns, centre)
    if kind != "softmax":
        return _scores(centred, weights)[0], label
    probabilities = chances(_softmax(_class_scores(centred, weights)))
    likeliest = max(range(len(probabilities)), key=probabilities.__getitem__)
    return probabilities[likeliest], float(likeliest == label)


def chances(softmax: Sequence[float]) -> list[float]:
    """The chance of each class, for a model trained with clipped residuals.

    Their mean is 0 once rounds have settled: so the chance of a class is proportional to s / f,
    where s is its softmax and f the factor by which the residual of a person of that class is
    clipped.
    """
    square = math.fsum(s * s for s in softmax)
    # For a person of the class: |s - e|^2 = sum of s^2 - 2 s + 1.
    lengths = [math.sqrt(max(square - 2 * s + 1, 0.0)) for s in softmax]
    parts = [s * max(r / CLIP["softmax"], 1.0) for s, r in zip(softmax, lengths, strict=True)]
    total = math.fsum(parts)
    return [part / total for part in parts]


def _scores(centred: Sequence[float], weights: Sequence[float]) -> list[float]:
    """A score for each row of weights."""
    size = len(centred)
    rows = (weights[start : start + size] for start in range(0, len(weights), size))
    return [math.fsum(map(mul, centred, row)) for row in rows]


def _class_scores(centred: Sequence[float], weights: Sequence[float]) -> list[float]:
    scores = _scores(centred, weights)
    return [
        math.fsum(map(mul, scores, place))
        for place in zip(*contrasts(len(scores) + 1), strict=True)
    ]


def _softmax(scores: Sequence[float]) -> list[float]:
    largest = max(scores)
    parts = [falling(min(largest - score, _MAX_SCORE)) for score in scores]
    total = math.fsum(parts)
    return [part / total for part in parts]


def _centred_columns(columns: Sequence[float], centre: Sequence[float]) -> list[float]:
    return [*(x - c for x, c in zip(columns, centre, strict=True)), 1.0]


def dimensions_of(columns: int, classes: int) -> int:
    """The number of coordinates of a gradient: columns and intercept, for each contrast."""
    return max(classes - 1, 1) * (columns + 1)


def check_classes(classes: Sequence[str]) -> None:
    """Raises BadParameter if classes are not valid names."""
    if len(set(classes)) < len(classes) or not all(group_class.strip() for group_class in classes):
        raise BadParameter("classes has a class twice, or an empty class: write each once")


def problem_with_classes(classes: int, kind: str) -> str:
    """What is wrong with this number of classes for a kind of model; "" if nothing."""
    if kind != "softmax":
        return "is of softmax; other kinds have one score: leave it out" if classes else ""
    if not classes:
        return (
            f"is missing: softmax distinguishes {MIN_CLASSES} to {MAX_CLASSES} classes; "
            "write the possible labels"
        )
    if not MIN_CLASSES <= classes <= MAX_CLASSES:
        return (
            f"has {classes}, but softmax distinguishes {MIN_CLASSES} to {MAX_CLASSES} "
            "classes; for two use logistic, with positive and negative"
        )
    return ""


def check_size(columns: int, classes: int, kind: str) -> None:
    """Raises BadParameter if columns and classes make too large a gradient."""
    if not 1 <= columns <= MAX_COLUMNS:
        raise BadParameter(
            f"{columns} columns are outside [1, {MAX_COLUMNS}]: a gradient's squared error grows "
            f"with them; leave columns out, {_REMEDY}"
        )
    if problem := problem_with_classes(classes, kind):
        raise BadParameter(f"classes {problem}")
    if kind != "softmax":
        return
    if (numbers := dimensions_of(columns, classes)) > MAX_COLUMNS + 1:
        raise BadParameter(
            f"a gradient of {classes} classes and {columns} columns has {numbers} numbers, above "
            f"{MAX_COLUMNS + 1}: its squared error grows with them; leave columns or classes out, "
            + _REMEDY
        )
