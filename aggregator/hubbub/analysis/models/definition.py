"""Definition of a model: its columns with their ranges, and the label that it predicts."""

from dataclasses import dataclass

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.errors import BadParameter
from hubbub.mechanisms.gradient import ModelKind, check_classes, check_size, dimensions_of


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
    kind: ModelKind
    epsilon: float
    columns: tuple[tuple[str, float, float], ...]
    range: tuple[float, float] = (0.0, 1.0)
    rounds: int = 0
    penalty: float = 0.0
    held_out: float = 0.0
    classes: tuple[str, ...] = ()
    rounds_each: int = 0

    def __post_init__(self) -> None:
        check_size(len(self.columns), len(self.classes), self.kind)
        check_classes(self.classes)
        if self.rounds_each > self.rounds + 1:
            raise BadParameter(f"rounds_each {self.rounds_each} is outside [0, {self.rounds + 1}]")

    @property
    def dimensions(self) -> int:
        """Number of coordinates of a gradient."""
        return dimensions_of(len(self.columns), len(self.classes))

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Low and high ends of the columns' ranges."""
        ends = np.array([(low, high) for _, low, high in self.columns])
        return ends[:, 0], ends[:, 1]
