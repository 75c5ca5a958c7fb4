"""Tables of every two parts, made to agree: one histogram of each part, nothing below zero."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.analysis.estimators.consistency import norm_sub
from hubbub.mechanisms.parts import tables_of

# Both steps in turn: either alone undoes some of the other, and ten leave nothing to see.
_ROUNDS: Final = 10


def tables(sizes: Sequence[int], cells: Floats) -> list[Floats]:
    """The table of every two parts, rows for the first of them, from all cells in a line."""
    found, first = [], 0
    for one, other in tables_of(len(sizes)):
        end = first + sizes[one] * sizes[other]
        found.append(cells[first:end].reshape(sizes[one], sizes[other]))
        first = end
    return found


def consistent_tables(
    sizes: Sequence[int], estimates: Floats, errors: Floats, reports: float
) -> Floats:
    """Tables near the estimates that are histograms of the reports and agree about every part.

    errors: standard errors of cells that nobody holds. A table of many cells is mostly noise where
    it departs from its parts' shares multiplied, so each departure is kept as far as it is likely
    to be true, and tables are made to agree again. Decision 0134.
    """
    agreed = _agreeing(sizes, estimates, reports)
    told, noise, own = (tables(sizes, cells) for cells in (estimates, errors**2, agreed))
    likely = [_likely(*table, reports) for table in zip(told, noise, own, strict=True)]
    return _agreeing(sizes, np.concatenate([one.reshape(-1) for one in likely]), reports)


def _likely(told: Floats, variances: Floats, agreed: Floats, reports: float) -> Floats:
    """A table between what was told and its parts' shares multiplied (empirical Bayes).

    Departures from the product are taken for drawn with variances in proportion to it, as the terms
    of chi-square are; by how much, is what they have in all beyond the noise (Efron, Morris, 1973).
    """
    product = np.outer(agreed.sum(axis=1), agreed.sum(axis=0)) / max(reports, 1.0)
    beyond = told - product + (reports - told.sum()) / told.size
    scale = max(float((beyond**2).sum() - variances.sum()), 0.0) / max(product.sum(), 1.0)
    true = scale * product
    answer: Floats = product + beyond * true / np.maximum(true + variances, 1e-30)
    return answer


def _agreeing(sizes: Sequence[int], estimates: Floats, reports: float) -> Floats:
    """Histograms near the estimates that agree.

    What tables say of one part is averaged by how sure each is, which is as 1 / the cells that it
    adds up; then each table is brought above zero. Agreement is as near as ten rounds bring it.
    Source: Qardaji, Yang, Li, PriView (SIGMOD 2014), section 4; decision 0062.
    """
    found = [table.copy() for table in tables(sizes, estimates)]
    pairs = tables_of(len(sizes))
    for _ in range(_ROUNDS):
        for part, size in enumerate(sizes):
            # Axis along which a table counts the part, and how many cells it adds up for it.
            own = [(t, pair.index(part)) for t, pair in enumerate(pairs) if part in pair]
            told = np.array([found[t].sum(axis=1 - axis) for t, axis in own])
            added = np.array([found[t].size // size for t, _ in own])
            common = np.average(told, axis=0, weights=1 / added)
            for (t, axis), mine, many in zip(own, told, added.tolist(), strict=True):
                found[t] += np.expand_dims((common - mine) / many, 1 - axis)
        found = [norm_sub(one.reshape(-1), reports).reshape(one.shape) for one in found]
    return np.concatenate([one.reshape(-1) for one in found])
