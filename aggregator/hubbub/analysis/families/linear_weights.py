"""Weights of linear estimators without a closed form, from totals with one full cell at a time."""

from collections.abc import Callable, Sequence

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.mechanisms import AnyMechanism, Totals


def cell_by_cell(
    mechanism: AnyMechanism, estimate: Callable[[Totals], Floats], targets: Sequence[int]
) -> tuple[Floats, float]:
    """What each cell, and each report, adds to the sum of the targets' estimates."""
    size = mechanism.layout.size
    wanted = list(targets)
    # One report each, so that no estimator gets empty totals.
    bases = float(estimate(Totals(cells=[0] * size, reports=1))[wanted].sum())
    columns = [
        float(
            estimate(Totals(cells=[int(c == cell) for c in range(size)], reports=1))[wanted].sum()
        )
        for cell in range(size)
    ]
    return np.array(columns) - bases, bases
