"""Base of the families of numbers in a range."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.contract import Family
from hubbub.mechanisms import Totals


class Numbers(Family):
    """Numbers from `low` to `high`, with estimates that are linear in the cells."""

    def ends(self, mechanism: Any) -> tuple[float, float]:
        """Ends of the range."""
        return mechanism.low, mechanism.high

    def far_apart(self, mechanism: Any) -> tuple[float, float]:
        """Ends of the range."""
        return mechanism.low, mechanism.high

    def examples(self, mechanism: Any) -> Sequence[float]:
        """101 numbers at equal distances, from end to end."""
        low, high = self.far_apart(mechanism)
        return [low + (high - low) * place / 100 for place in range(101)]

    def estimates(self, mechanism: Any, totals: Totals) -> Floats:
        """Unbiased estimates of all values, in reports."""
        return np.array(mechanism.estimate(totals).values)

    def alone(self, mechanism: Any, cell: int) -> Floats:
        """Estimates from one report, which is counted in this cell; in none for -1."""
        cells = [int(place == cell) for place in range(mechanism.layout.size)]
        return self.estimates(mechanism, Totals(cells=cells, reports=1))

    def weights(self, mechanism: Any, targets: Sequence[int]) -> tuple[Floats, float]:
        """Weights of estimators without a closed form, from one full cell at a time."""
        target_list = list(targets)
        base, *columns = (
            float(self.alone(mechanism, cell)[target_list].sum())
            for cell in range(-1, mechanism.layout.size)
        )
        return np.array(columns) - base, base
