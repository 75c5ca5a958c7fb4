"""The base of families of numbers, and what their cells show of how numbers are spread."""

from collections.abc import Sequence
from math import sqrt
from typing import Any, Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.families.contract import Family
from hubbub.mechanisms import Totals

# From so many reports on, their variance is known well enough.
_MIN_SPREAD: Final = 100
# An interval reaches 1.96 roots of it: where none of 3 expected reports is seen, which is 1 case of
# 20, the three.
_UNSEEN: Final = 2.4


def people_variance_of(worth: Floats, totals: Totals, estimate: float, stderr: float) -> float:
    """`ValueEstimates.people_variance`, by the variance of what reports add; 1 is the upper bound.

    `worth` is what a report in each cell adds. Of its variance coins explain `stderr`. It is taken
    two of its own standard errors larger, and as if `_UNSEEN` more reports were at the farther end.
    """
    n, cells = totals.reports, np.array(totals.cells)
    if totals.has_dummies or n < _MIN_SPREAD:
        return 1.0
    place = min(max(estimate / n, 0.0), 1.0)
    square = (worth - float(cells @ worth) / n) ** 2
    variance = float(cells @ square) / (n - 1)
    error = sqrt(max(float(cells @ square**2) / n - variance**2, 0.0) / n)
    return spread_of_variance(variance + 2 * error - stderr**2 / n, place, n)


def spread_of_variance(between_people: float, place: float, reports: int) -> float:
    """This variance, and that of what so few reports do not show, in that of the bound."""
    most, unseen = place * (1 - place), _UNSEEN * max(place, 1 - place) ** 2 / reports
    is_usable = most > 0 and reports >= _MIN_SPREAD
    return min(max((between_people + unseen) / most, 0.0), 1.0) if is_usable else 1.0


class Numbers(Family):
    """Numbers from `low` to `high`, with estimates that are linear in the cells."""

    def ends(self, mechanism: Any) -> tuple[float, float]:
        return mechanism.low, mechanism.high

    def far_apart(self, mechanism: Any) -> tuple[float, float]:
        return mechanism.low, mechanism.high

    def examples(self, mechanism: Any) -> Sequence[float]:
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
