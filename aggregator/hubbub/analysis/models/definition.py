"""A model: its columns and label, its predictions from scores, and its coefficients by unit."""

from dataclasses import dataclass
from functools import cache
from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.errors import BadParameter
from hubbub.mechanisms import gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What a catalog's model learns, as its fields say it, which are checked when they are read.

    Args:
        epsilon: of each person's report, in nats.
        columns: of all features, each with its name and range, which is scaled to [0, 1].
        range: of a numeric label.
        rounds: 0 to choose by the noise.
        rounds_each: in a crowd, number of rounds of each person, including the round of columns;
            epsilon is then of each report.

    Raises:
        BadParameter: too many columns, invalid classes, or more rounds of a person than there are.
    """

    name: str
    kind: gradient.ModelKind
    epsilon: float
    columns: tuple[tuple[str, float, float], ...]
    range: tuple[float, float] = (0.0, 1.0)
    rounds: int = 0
    penalty: float = 0.0
    held_out: float = 0.0
    classes: tuple[str, ...] = ()
    rounds_each: int = 0

    def __post_init__(self) -> None:
        gradient.check_size(len(self.columns), len(self.classes), self.kind)
        gradient.check_classes(self.classes)
        if self.rounds_each > self.rounds + 1:
            raise BadParameter(f"rounds_each {self.rounds_each} is outside [0, {self.rounds + 1}]")

    @property
    def dimensions(self) -> int:
        """Number of coordinates of a gradient."""
        return gradient.dimensions_of(len(self.columns), len(self.classes))

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Low and high ends of the columns' ranges."""
        ends = np.array([(low, high) for _, low, high in self.columns])
        return ends[:, 0], ends[:, 1]


# Scores are limited to this, so that no probability becomes 0 or 1, and nothing overflows.
_MAX_SCORE: Final = 40.0
# Number of points at which predictions are averaged, and the first primes.
_POINTS: Final = 2048
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)


def foretold(kind: gradient.ModelKind, score: Floats) -> Floats:
    """Prediction for each score: a probability in (0, 1), or the score itself; same shape.

    For softmax, scores are of contrasts, shape (people, classes - 1), with a probability per class.
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
    return 1 / (1 + np.exp(-np.clip(score, -_MAX_SCORE, _MAX_SCORE)))


def settled(kind: gradient.ModelKind, score: Floats) -> Floats:
    """Prediction of a model whose rounds have converged; shape as for `foretold`.

    For logistic models, residuals are clipped at 1/2. With s = 1/(1+exp(-score)) below 1/2, rounds
    converge where P (1/2) = (1 - P) s, which gives the probability P; above 1/2 it is symmetric.
    For softmax, P is proportional to s / f, with f the factor by which clipping shortens the
    residual of a person of that class.
    """
    s = foretold(kind, score)
    if kind == "softmax":
        parts = s * np.maximum(lengths_of(s) / gradient.CLIP[kind], 1.0)
        shares: Floats = parts / parts.sum(axis=1, keepdims=True)
        return shares
    if kind != "logistic":
        return s
    low = np.minimum(s, 1 - s)
    chance = low / (low + gradient.CLIP["logistic"])
    return np.where(s < gradient.CLIP["logistic"], chance, 1 - chance)


def lengths_of(chances: Floats) -> Floats:
    """Length of the residual of a person of each class; same shape as the class probabilities."""
    square = (chances**2).sum(axis=1, keepdims=True)
    result: Floats = np.sqrt(np.maximum(square - 2 * chances + 1, 0.0))
    return result


def into_classes(rows: int) -> Floats:
    """Matrix from rows of weights to weights of classes, shape (rows, classes); 1 for one row."""
    return np.array([[1.0]] if rows == 1 else gradient.contrasts(rows + 1))


@cache
def normal_points(size: int) -> Floats:
    """`size` independent normal numbers at points that fill their space evenly.

    The same on every machine. Shape (points, size); fractions of multiples of roots of primes,
    Richtmyer (1951).
    """
    roots = np.array([sqrt(prime) for prime in _PRIMES[:size]])
    uniform = (np.arange(1, _POINTS + 1)[:, None] * roots) % 1.0
    inverse = NormalDist().inv_cdf
    return np.array([[inverse(chance) for chance in row] for row in uniform.tolist()])


def root(matrix: Floats) -> Floats:
    """Square root of a symmetric matrix, with negative eigenvalues taken as 0."""
    eigenvalues, basis = np.linalg.eigh(matrix)
    result: Floats = (basis * np.sqrt(np.maximum(eigenvalues, 0.0))) @ basis.T
    return result


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
