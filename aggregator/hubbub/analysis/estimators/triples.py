"""Tables of three parts or more: their sums over parts, and how to make triples consistent."""

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.consistency import norm_sub
from hubbub.analysis.estimators.tables import consistent_tables, kept, tables
from hubbub.mechanisms.parts import tables_of

# The same number as for tables of two parts.
_ROUNDS: Final = 10


def weights_for(sizes: Sequence[int], parts: tuple[int, ...], ways: int = 3) -> dict[int, float]:
    """Weight, for the table of these parts, of each table of `ways` parts that contains them all.

    A sum over more cells is less precise, so its weight is lower; the weights have sum 1.
    """
    weights = {
        place: 1 / prod(sizes[part] for part in table if part not in parts)
        for place, table in enumerate(tables_of(len(sizes), ways))
        if set(parts) <= set(table)
    }
    whole = sum(weights.values())
    return {place: weight / whole for place, weight in weights.items()}


def added_up(sizes: Sequence[int], cells: Floats, parts: tuple[int, ...], ways: int = 3) -> Floats:
    """The table of these parts, averaged over all tables of `ways` parts that contain them."""
    own, every = tables(sizes, cells, ways), tables_of(len(sizes), ways)
    return sum(
        (
            weight * own[place].sum(axis=_others(every[place], parts))
            for place, weight in weights_for(sizes, parts, ways).items()
        ),
        np.zeros([sizes[part] for part in parts]),
    )


def consistent_triples(
    sizes: Sequence[int], estimates: Floats, errors: Floats, reports: float
) -> Floats:
    """Tables of three near the estimates that are histograms of the reports and agree on every two.

    First the tables of two are made consistent. Then each table of three departs from what they
    imply (no three-way interaction, by iterative proportional fitting) as far as its departures are
    probably true (decision 0217). `errors` are standard errors of cells that nobody holds.
    """
    every, pairs = tables_of(len(sizes), 3), tables_of(len(sizes))
    pair_cells = np.concatenate([added_up(sizes, estimates, pair).reshape(-1) for pair in pairs])
    noise = np.concatenate([_errors(sizes, errors, pair) for pair in pairs])
    two = dict(
        zip(pairs, tables(sizes, consistent_tables(sizes, pair_cells, noise, reports)), strict=True)
    )
    squares = tables(sizes, errors**2, 3)
    result = []
    for own, table, square in zip(every, tables(sizes, estimates, 3), squares, strict=True):
        fixed = [(two[pair], _others(own, pair)[0]) for pair in pairs if set(pair) <= set(own)]
        whole = table + (reports - table.sum()) / table.size
        likely = kept(whole, float(square.mean()), _fitted(table.shape, fixed), reports)
        for _ in range(_ROUNDS):
            for margin, axis in fixed:
                off = (margin - likely.sum(axis=axis)) / likely.shape[axis]
                likely = likely + np.expand_dims(off, axis)
            likely = norm_sub(likely.reshape(-1), reports).reshape(likely.shape)
        result.append(likely.reshape(-1))
    return np.concatenate(result)


def _others(table: tuple[int, ...], parts: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of the table's parts that are not among these."""
    return tuple(axis for axis, part in enumerate(table) if part not in parts)


def _errors(sizes: Sequence[int], errors: Floats, pair: tuple[int, ...]) -> Floats:
    """Standard errors of a table of two, taking errors of cells as independent."""
    own, every = tables(sizes, errors**2, 3), tables_of(len(sizes), 3)
    squares = sum(
        weight**2 * own[place].sum(axis=_others(every[place], pair))
        for place, weight in weights_for(sizes, pair).items()
    )
    roots: Floats = np.sqrt(np.asarray(squares)).reshape(-1)
    return roots


def _fitted(shape: tuple[int, ...], fixed: Sequence[tuple[Floats, int]]) -> Floats:
    """The table with these margins and no three-way interaction (Deming, Stephan, 1940)."""
    cells = np.ones(shape)
    for _ in range(_ROUNDS):
        for margin, axis in fixed:
            own = cells.sum(axis=axis)
            factors = np.divide(margin, own, out=np.zeros_like(own), where=own > 0)
            cells = cells * np.expand_dims(factors, axis)
    return cells
