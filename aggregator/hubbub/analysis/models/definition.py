"""Definition of a model: its features with their ranges, and the label that it predicts."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.errors import BadParameter
from hubbub.mechanisms.gradient import KINDS, ModelKind, check_classes, check_size, dimensions_of
from hubbub.mechanisms.probability import MAX_EPSILON, MIN_EPSILON

Kind = ModelKind

_MAX_ROUNDS: Final = 1000
_MIN_HELD_OUT: Final = 0.01
_MAX_HELD_OUT: Final = 0.5


@dataclass(frozen=True, slots=True)
class Feature:
    """A column of the model, of values in [low, high], which are scaled to [0, 1]."""

    name: str
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite([self.low, self.high]).all() and self.low < self.high):
            raise BadParameter(
                f'feature "{self.name}": range [{self.low}, {self.high}] needs two numbers, the '
                "smaller first"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The definition of a model.

    Args:
        epsilon: of each person's report, in nats.
        low, high: range of a numeric label.
        rounds: 0 to choose by the noise.
        penalty: cost of squared coefficients, for ridge.
        held_out: share of people who only evaluate it.
        rounds_each: in a crowd, number of rounds of each person, including the round of columns;
            epsilon is then of each report.
    """

    name: str
    kind: Kind
    epsilon: float
    features: tuple[Feature, ...]
    low: float = 0.0
    high: float = 1.0
    rounds: int = 0
    penalty: float = 0.0
    held_out: float = 0.0
    classes: tuple[str, ...] = ()
    rounds_each: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadParameter(f'kind "{self.kind}" of a model is not one of {", ".join(KINDS)}')
        if not MIN_EPSILON <= self.epsilon <= MAX_EPSILON:
            raise BadParameter(
                f"epsilon {self.epsilon} is outside [{MIN_EPSILON}, {MAX_EPSILON}] nats"
            )
        check_size(len(self.features), len(self.classes), self.kind)
        check_classes(self.classes)
        if not 0 <= self.rounds <= _MAX_ROUNDS:
            raise BadParameter(f"rounds {self.rounds} is outside [0, {_MAX_ROUNDS}]")
        if not 0 <= self.rounds_each <= self.rounds + 1:
            raise BadParameter(f"rounds_each {self.rounds_each} is outside [0, {self.rounds + 1}]")
        if not 0 <= self.penalty < np.inf:
            raise BadParameter(f"penalty {self.penalty} is below 0, or no number")
        if not (self.held_out == 0 or _MIN_HELD_OUT <= self.held_out <= _MAX_HELD_OUT):
            raise BadParameter(
                f"held_out {self.held_out} is outside [{_MIN_HELD_OUT}, {_MAX_HELD_OUT}]"
            )
        Feature("label", self.low, self.high)

    @property
    def dimensions(self) -> int:
        """Number of coordinates of a gradient."""
        return dimensions_of(len(self.features), len(self.classes))

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Low and high ends of the features' ranges."""
        ends = np.array([(feature.low, feature.high) for feature in self.features])
        return ends[:, 0], ends[:, 1]
