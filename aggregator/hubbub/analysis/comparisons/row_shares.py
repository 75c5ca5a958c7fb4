"""Shares within rows of a table, with their intervals, where rows are as unsure as cells."""

import numpy as np

from hubbub.analysis.arrays import Floats


def shares_within(table: Floats, spread: Floats, reach: float) -> tuple[Floats, Floats, Floats]:
    """Shares within rows and their ends: where the row's part is as unsure as the cell (Fieller).

    Ends solve (cell - share * row)^2 = reach^2 var(cell - share * row); where a row may be empty,
    every share may be.
    """
    rows, columns = table.shape
    middle, low, high = (np.zeros_like(table) for _ in range(3))
    for row in range(rows):
        own = slice(row * columns, (row + 1) * columns)
        block = spread[own, own]
        total, var_total = table[row].sum(), block.sum()
        first = total**2 - reach**2 * var_total
        for column in range(columns):
            cell, mixed = table[row, column], block[column].sum()
            middle[row, column] = np.clip(cell / total, 0, 1) if total > 0 else 0.0
            half = cell * total - reach**2 * mixed
            last = cell**2 - reach**2 * block[column, column]
            inside = half**2 - first * last
            if first <= 0 or total <= 0 or inside < 0:
                high[row, column] = 1.0
                continue
            ends = (half + np.array([-1, 1]) * np.sqrt(inside)) / first
            low[row, column], high[row, column] = np.clip(ends, 0, 1)
    return middle, np.minimum(low, middle), np.maximum(high, middle)
