"""A person's part of a model as a vector: where their columns lie, or how weights are wrong.

What is longer than its clip is told shorter, so that its length is at most 1. The mechanism's
promise is of any such vector; so floats decide here, and no claim rests on them.
"""

import math
from collections.abc import Sequence
from operator import mul
from typing import Final, Literal

from hubbub.mechanisms.alike import falling, length

ModelKind = Literal["logistic", "linear", "ridge", "softmax"]
KINDS: Final = ("logistic", "linear", "ridge", "softmax")

CLIP: Final = {"logistic": 0.5, "linear": 0.25, "ridge": 0.25, "softmax": 1.0}
"""To which length a residual is clipped; of a number's label, in its range."""

# Of columns in the first round: seven that are 1, which more bands of fewer features seldom have.
_LONGEST: Final = 2.7
# A chance is told apart from 0 and 1 no further, and nothing overflows.
_MAX_SCORE: Final = 40.0


def longest(columns: int) -> float:
    """To which length the columns of the first round's people are clipped.

    Who is longer is told shorter, and the centre is then nearer to 0 than people are: it may be
    anywhere, and the rounds after it are only slower.
    """
    return min(math.sqrt(columns), _LONGEST)


def place(columns: Sequence[float]) -> list[float]:
    """Columns in [0, 1] as the first round has them: over their clip, with a last one of 0."""
    return [*(column / longest(len(columns)) for column in columns), 0.0]


def contrasts(classes: int) -> list[list[float]]:
    """Rows of unit length, at right angles to each other and to ones: one fewer than classes.

    Scores of classes count by their differences alone, so a model has a row of weights for each of
    these and is the same in whatever order classes are named. Helmert (1876).
    """
    return [
        [1 / math.sqrt(at * (at + 1))] * at
        + [-at / math.sqrt(at * (at + 1))]
        + [0.0] * (classes - at - 1)
        for at in range(1, classes)
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
    about = _about(columns, centre)
    long = length(about)
    return [r * x / long for r in _residuals(kind, about, label, weights) for x in about]


def _residuals(
    kind: ModelKind, about: Sequence[float], label: float, weights: Sequence[float]
) -> list[float]:
    """How far what is foretold is off, over the clip: of length 1 at most."""
    if kind == "softmax":
        probabilities = _softmax(_class_scores(about, weights))
        off = [s - (place == label) for place, s in enumerate(probabilities)]
        longer = max(length(off), CLIP[kind])
        return [math.fsum(map(mul, row, off)) / longer for row in contrasts(len(off))]
    [foretold] = _scores(about, weights)
    if kind == "logistic":
        rest = falling(min(abs(foretold), _MAX_SCORE))
        foretold = (1.0 if foretold >= 0 else rest) / (1 + rest)
    return [min(max((foretold - label) / CLIP[kind], -1.0), 1.0)]


def to_judge(
    kind: ModelKind,
    columns: Sequence[float],
    label: float,
    centre: Sequence[float],
    weights: Sequence[float],
) -> tuple[float, float]:
    """What a model's weights come to for a person, and the label; all as `gradient` has them.

    Of softmax: the chance of the likeliest class, and 1 where that is the person's, or else 0.
    """
    about = _about(columns, centre)
    if kind != "softmax":
        return _scores(about, weights)[0], label
    probabilities = chances(_softmax(_class_scores(about, weights)))
    likeliest = max(range(len(probabilities)), key=probabilities.__getitem__)
    return probabilities[likeliest], float(likeliest == label)


def chances(softmax: Sequence[float]) -> list[float]:
    """The chance of each class, of a model whose rounds have settled with clipped residuals.

    Their mean is then 0: the chance P of a class is as s / f, with s what softmax has of it and f
    how much the clip leaves of a residual of who is of that class.
    """
    square = math.fsum(s * s for s in softmax)
    # Of who is of the class: |s - e|^2 = sum of s^2 - 2 s + 1.
    lengths = [math.sqrt(max(square - 2 * s + 1, 0.0)) for s in softmax]
    parts = [s * max(r / CLIP["softmax"], 1.0) for s, r in zip(softmax, lengths, strict=True)]
    whole = math.fsum(parts)
    return [part / whole for part in parts]


def _scores(about: Sequence[float], weights: Sequence[float]) -> list[float]:
    """A score for each row of weights."""
    size = len(about)
    rows = (weights[at : at + size] for at in range(0, len(weights), size))
    return [math.fsum(map(mul, about, row)) for row in rows]


def _class_scores(about: Sequence[float], weights: Sequence[float]) -> list[float]:
    scores = _scores(about, weights)
    return [
        math.fsum(map(mul, scores, place))
        for place in zip(*contrasts(len(scores) + 1), strict=True)
    ]


def _softmax(scores: Sequence[float]) -> list[float]:
    largest = max(scores)
    parts = [falling(min(largest - score, _MAX_SCORE)) for score in scores]
    whole = math.fsum(parts)
    return [part / whole for part in parts]


def _about(columns: Sequence[float], centre: Sequence[float]) -> list[float]:
    return [*(x - c for x, c in zip(columns, centre, strict=True)), 1.0]
