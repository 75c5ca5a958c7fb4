"""Post-processing: makes estimates look like a histogram, or tables consistent. Separate steps.

Raw estimates are unbiased: some are below zero, and they do not add up to the reports, but they can
be added over days, shards and groups of values. Post-processing costs no privacy and lowers the
error of the whole histogram, but every single value is biased afterwards: rare values come out too
high on average (a negative estimate becomes 0, a positive one stays), frequent ones too low.

Sums of biased values over many days keep the bias: first add up, then post-process.
Source: Wang, Lopuhaa-Zwakenberg, Li, Skoric, Li (NDSS 2020), sections 4 and 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, prod
from typing import Final

import numpy as np

from hubbub.analysis.arrays import Floats
from hubbub.errors import BadParameter
from hubbub.mechanisms.part_and_cell_names import tables_of


def norm_sub(estimates: Floats, reports: float) -> Floats:
    """The histogram (>= 0, with sum `reports`) nearest to the estimates.

    It is the Euclidean projection on the simplex: the same amount is subtracted from all estimates,
    and negative results become zero.
    """
    return simplex(estimates, np.ones_like(estimates), reports)


def simplex(estimates: Floats, variances: Floats, reports: float) -> Floats:
    """The histogram nearest to the estimates, by least squares weighted with their precision.

    It is the most likely histogram under normal errors: a value gives up lambda times its variance,
    until the rest adds up to `reports`. `variances` are above 0, in any unit; if all are equal,
    this is `norm_sub`. Raises BadParameter for shapes that differ, nothing to process, or numbers
    that no histogram fits.
    """
    if not (estimates.ndim == 1 and len(estimates) and estimates.shape == variances.shape):
        raise BadParameter("estimates and variances must be two lists of one length, not empty")
    if not (isfinite(reports) and reports >= 0 and np.isfinite(estimates).all()):
        raise BadParameter("estimates must be finite, and reports a number not below 0")
    if not (np.isfinite(variances).all() and (variances > 0).all()):
        raise BadParameter("variances must be finite and above 0")
    # A value falls to zero when lambda reaches estimate / variance: those with the most stay.
    order = np.argsort(-(estimates / variances), kind="stable")
    excess = np.cumsum(estimates[order]) - reports
    shift = excess / np.cumsum(variances[order])
    stays = estimates[order] - shift * variances[order] > 0
    last_index = int(np.nonzero(stays)[0][-1]) if stays.any() else 0
    answer: Floats = np.maximum(estimates - shift[last_index] * variances, 0.0)
    return answer


# Rounds of both steps: each undoes some of the other; after ten nothing changes.
_ROUNDS: Final = 10
# Rounds in which the parts' shares are computed from each other; after two little changes.
_TURNS: Final = 4
# Least share, and least remainder, to prevent division by zero.
_LEAST: Final = 1e-6


def tables(sizes: Sequence[int], cells: Floats, ways: int = 2) -> list[Floats]:
    """Splits all cells, in one row, into the tables of every two or three parts (`ways`)."""
    result, start = [], 0
    for table in tables_of(len(sizes), ways):
        shape = [sizes[part] for part in table]
        end = start + prod(shape)
        result.append(cells[start:end].reshape(shape))
        start = end
    return result


def consistent_tables(
    sizes: Sequence[int], estimates: Floats, errors: Floats, reports: float
) -> Floats:
    """Tables near the estimates that are histograms of the reports and agree about every part.

    A table of many cells is mostly noise around the product of its parts' shares. So its rows
    estimate a part's shares as if it were that product, as far as its departures are noise, and
    each departure is kept as far as it is probably true. Decision 0217. `errors` are standard
    errors of cells that nobody holds.
    """
    agreed_tables = tables(sizes, _agreeing_tables(sizes, estimates, reports))
    pairs = tables_of(len(sizes))
    shares = []
    for part in range(len(sizes)):  # from the first of the consistent tables that contains it
        place, pair = next((place, pair) for place, pair in enumerate(pairs) if part in pair)
        shares.append(agreed_tables[place].sum(axis=1 - pair.index(part)) / max(reports, 1.0))
    noisy_tables = [
        _TableEstimate(table + (reports - table.sum()) / table.size, float(noise.mean()))
        for table, noise in zip(tables(sizes, estimates), tables(sizes, errors**2), strict=True)
    ]
    for _ in range(_TURNS):
        shares = [_likely_share(part, noisy_tables, shares, reports) for part in range(len(sizes))]
    likely = [
        shrunk_table(
            table.cells, table.noise, reports * np.outer(shares[first], shares[other]), reports
        )
        for table, (first, other) in zip(noisy_tables, pairs, strict=True)
    ]
    cells = np.concatenate([table.reshape(-1) for table in likely])
    return _agreeing_tables(sizes, cells, reports, shares)


@dataclass(frozen=True, slots=True)
class _TableEstimate:
    """A table's estimates, shifted to sum to the reports, and the variance of a cell's noise."""

    cells: Floats
    noise: float


def _likely_share(
    part: int, noisy_tables: Sequence[_TableEstimate], shares: Sequence[Floats], reports: float
) -> Floats:
    """A part's shares from all tables that contain it, by generalized least squares.

    A row is its size times the other part's shares, plus departures with sum 0 and variances in
    proportion to both shares.
    """
    weighed = informed = np.zeros(len(shares[part]))
    for table, pair in zip(noisy_tables, tables_of(len(shares)), strict=True):
        if part not in pair:
            continue
        axis = pair.index(part)
        rows = table.cells if axis == 0 else table.cells.T
        other = np.maximum(shares[pair[1 - axis]], _LEAST)
        other = other / other.sum()
        dependence = rows - reports * np.outer(shares[part], other)
        dependence = dependence - np.outer(dependence.sum(axis=1), other)
        free = max(1 - float(other @ other), _LEAST)
        true_square = max(float((dependence**2).sum()) - table.noise * rows.size, 0.0) / free
        departures = np.diag(other) - np.outer(other, other)
        scales = true_square * shares[part][:, None, None]
        spread = table.noise * np.eye(len(other)) + scales * departures
        weights = np.linalg.solve(
            spread, np.broadcast_to(other[:, None], (len(rows), *other.shape, 1))
        )
        weighed = weighed + (weights[:, :, 0] * rows).sum(axis=1)
        informed = informed + weights[:, :, 0] @ other
    return simplex(weighed / informed, 1 / informed, reports) / max(reports, 1.0)


def shrunk_table(cells: Floats, noise: float, product: Floats, reports: float) -> Floats:
    """A table between its estimates and a product of shares (empirical Bayes; Efron, Morris, 1973).

    Departures from the product are assumed to have variances in proportion to it, as the terms of
    chi-square have; their scale is their total beyond the noise.
    """
    beyond = cells - product
    scale = max(float((beyond**2).sum()) - noise * beyond.size, 0.0) / max(reports, 1.0)
    true_variance = scale * product
    return product + beyond * true_variance / np.maximum(true_variance + noise, 1e-30)


def _agreeing_tables(
    sizes: Sequence[int],
    estimates: Floats,
    reports: float,
    shares: Sequence[Floats] | None = None,
) -> Floats:
    """Histograms near the estimates that agree on each part's shares, or have these `shares`.

    A part's shares are averaged over its tables, with weights 1 / (cells summed); then each table
    is projected to values above zero. Source: Qardaji, Yang, Li, PriView (SIGMOD 2014), section 4.
    """
    copies = [table.copy() for table in tables(sizes, estimates)]
    pairs = tables_of(len(sizes))
    for _ in range(_ROUNDS):
        for part, size in enumerate(sizes):
            # Axis along which a table counts the part, and how many cells it adds up for it.
            tables_of_part = [(t, pair.index(part)) for t, pair in enumerate(pairs) if part in pair]
            margins = np.array([copies[t].sum(axis=1 - axis) for t, axis in tables_of_part])
            added = np.array([copies[t].size // size for t, _ in tables_of_part])
            common = np.average(margins, axis=0, weights=1 / added)
            if shares is not None:
                common = reports * shares[part]
            for (t, axis), mine, count in zip(tables_of_part, margins, added.tolist(), strict=True):
                copies[t] += np.expand_dims((common - mine) / count, 1 - axis)
        copies = [norm_sub(table.reshape(-1), reports).reshape(table.shape) for table in copies]
    return np.concatenate([table.reshape(-1) for table in copies])


def weights_for(sizes: Sequence[int], parts: tuple[int, ...], ways: int = 3) -> dict[int, float]:
    """Weight, for the table of these parts, of each table of `ways` parts that contains them all.

    A sum over more cells is less precise, so its weight is lower; the weights have sum 1.
    """
    weights = {
        place: 1 / prod(sizes[part] for part in table if part not in parts)
        for place, table in enumerate(tables_of(len(sizes), ways))
        if set(parts) <= set(table)
    }
    total = sum(weights.values())
    return {place: weight / total for place, weight in weights.items()}


def table_of_parts(
    sizes: Sequence[int], cells: Floats, parts: tuple[int, ...], ways: int = 3, *, power: int = 1
) -> Floats:
    """The table of these parts, averaged over all tables of `ways` parts that contain them.

    With `power` 2, of cells' variances the variances of that average.
    """
    tables_by_place, places = tables(sizes, cells, ways), tables_of(len(sizes), ways)
    return sum(
        (
            weight**power * tables_by_place[place].sum(axis=_other_axes(places[place], parts))
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
    triples, pairs = tables_of(len(sizes), 3), tables_of(len(sizes))
    pair_cells = np.concatenate(
        [table_of_parts(sizes, estimates, pair).reshape(-1) for pair in pairs]
    )
    # As if errors of cells were independent.
    squares = [table_of_parts(sizes, errors**2, pair, power=2).reshape(-1) for pair in pairs]
    noise = np.sqrt(np.concatenate(squares))
    two = dict(
        zip(pairs, tables(sizes, consistent_tables(sizes, pair_cells, noise, reports)), strict=True)
    )
    variances, result = tables(sizes, errors**2, 3), []
    for triple, table, square in zip(triples, tables(sizes, estimates, 3), variances, strict=True):
        fixed = [
            (two[pair], _other_axes(triple, pair)[0]) for pair in pairs if set(pair) <= set(triple)
        ]
        shifted = table + (reports - table.sum()) / table.size
        likely = shrunk_table(
            shifted, float(square.mean()), _fitted_margins(table.shape, fixed), reports
        )
        for _ in range(_ROUNDS):
            for margin, axis in fixed:
                margin_gap = (margin - likely.sum(axis=axis)) / likely.shape[axis]
                likely = likely + np.expand_dims(margin_gap, axis)
            likely = norm_sub(likely.reshape(-1), reports).reshape(likely.shape)
        result.append(likely.reshape(-1))
    return np.concatenate(result)


def _other_axes(table: tuple[int, ...], parts: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of the table's parts that are not among these."""
    return tuple(axis for axis, part in enumerate(table) if part not in parts)


def _fitted_margins(shape: tuple[int, ...], fixed: Sequence[tuple[Floats, int]]) -> Floats:
    """The table with these margins and no three-way interaction (Deming, Stephan, 1940)."""
    cells = np.ones(shape)
    for _ in range(_ROUNDS):
        for margin, axis in fixed:
            sums = cells.sum(axis=axis)
            factors = np.divide(margin, sums, out=np.zeros_like(sums), where=sums > 0)
            cells = cells * np.expand_dims(factors, axis)
    return cells
