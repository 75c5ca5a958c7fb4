"""Association of two parts: a test of independence, and Cramer's V corrected for randomization."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import gammaincc

from hubbub.analysis.arrays import Floats
from hubbub.analysis.uncertainty.intervals import reach_of

# A value whose share is below this many standard errors is merged with others.
_SURE: Final = 3.0
# Of so small a squared skewness no p-value shows anything.
_NO_SKEWNESS: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Association:
    """The association of two parts in the population.

    Args:
        p_value: probability of a table at least this far from independence, if the parts are
            independent.
        cramers_v: 0 for independent parts, 1 if one determines the other; None if too few values of
            a part are sure.
        low, high: its interval.
        rare_rows, rare_columns: values too rare to count separately; V treats them as one.
    """

    p_value: float
    cramers_v: float | None
    low: float
    high: float
    rare_rows: tuple[str, ...]
    rare_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The shares of two parts' cells, perhaps slice by slice.

    Args:
        shares: estimates with sum 1.
        feasible: the same, moved to possible values.
        spread: their covariance, row by row, if the population is `feasible`.
        independent: their covariance if the parts are independent (within each slice).
        people: number of people, or at least that many, whose reports these are.
        margin_errors: approximate standard errors of the shares of a row and of a column.
    """

    shares: Floats
    feasible: Floats
    spread: Floats
    independent: Floats
    people: float
    margin_errors: tuple[float, float] = (0.0, 0.0)


def without_v(
    p_value: float, rare_rows: tuple[str, ...] = (), rare_columns: tuple[str, ...] = ()
) -> Association:
    """The association of which only a test is known, and no V."""
    return Association(
        p_value=p_value,
        cramers_v=None,
        low=0.0,
        high=1.0,
        rare_rows=rare_rows,
        rare_columns=rare_columns,
    )


def associated(
    table: Table, names: tuple[Sequence[str], Sequence[str]], confidence: float
) -> Association:
    """Test of independence, and Cramer's V with its interval; `names` are of rows and columns."""
    feasible, errors = table.feasible, table.margin_errors
    departs, spread = _interaction(table.shares, table.feasible, table.independent)
    basis = _contrasts(departs.shape)
    p_value = _independence_p_value(
        basis.T @ departs.reshape(-1),
        basis.T @ spread @ basis,
        lines=basis.T @ _margin_projection(table.feasible),
        independent=table.independent,
        people=table.people,
    )
    rows = _group_rows(feasible.sum(axis=1), errors[0])
    columns = _group_rows(feasible.sum(axis=0), errors[1])
    rare_rows, rare_columns = _rare_names(names[0], rows), _rare_names(names[1], columns)
    if min(len(rows), len(columns)) < 2:  # noqa: PLR2004 one value is no part
        return without_v(p_value, rare_rows, rare_columns)
    degrees = min(feasible.shape) - 1
    square, low, high = _phi_squared(table, rows, columns, confidence)
    high += _rare_group_bound(feasible, rows, errors[0]) + _rare_group_bound(
        feasible.T, columns, errors[1]
    )
    if p_value > 1 - confidence:
        low = 0.0
    middle, low, high = np.sqrt(np.clip(np.array([square, low, high]) / degrees, 0, 1)).tolist()
    return Association(
        p_value=p_value,
        cramers_v=middle,
        low=low,
        high=max(high, middle),
        rare_rows=rare_rows,
        rare_columns=rare_columns,
    )


def associated_within(
    slices: Sequence[Table], share_maps: Sequence[Floats], independent: Floats, people: float
) -> Association:
    """The test of no interaction in any of several slices of a table together; no V.

    `share_maps` compute each slice's shares from the whole table's; `independent` is the covariance
    of the whole table, slice by slice, if the parts are independent within each; `people` is as of
    the whole table.
    """
    interactions, lines, spreads = [], [], []
    for table, share_map in zip(slices, share_maps, strict=True):
        departures, spread = _interaction(table.shares, table.feasible, table.independent)
        basis = _contrasts(departures.shape)
        interactions.append(basis.T @ departures.reshape(-1))
        lines.append(basis.T @ _margin_projection(table.feasible) @ share_map)
        spreads.append(basis.T @ spread @ basis)
    count, size, cells = np.shape(lines)
    each = range(count)
    wide = np.zeros((count, size, count, cells))  # a slice's departures depend on its own cells
    wide[each, :, each] = lines
    all_lines = wide.reshape(count * size, -1)
    covariance = (all_lines @ independent @ all_lines.T).reshape(count, size, count, size)
    covariance[each, :, each] = spreads  # includes the errors of the margins
    p_value = _independence_p_value(
        np.concatenate(interactions),
        covariance.reshape(count * size, -1),
        lines=all_lines,
        independent=independent,
        people=people,
    )
    return without_v(p_value)


def departures(table: Table) -> tuple[Floats, Floats]:
    """Each cell's distance from independence, in standard errors, and its p-value; as the table.

    The law of a cell with few people is skewed: p-values are of the shifted gamma law with the same
    three moments (Pearson's type III).
    """
    difference, spread = _interaction(table.shares, table.feasible, table.independent)
    errors = np.sqrt(np.maximum(np.diag(spread), 1e-30))
    scores = difference.reshape(-1) / errors
    moved = _margin_projection(table.feasible) / table.people
    skewness = _events(table.independent, table.people) @ moved.T**3 / errors**3
    shape = 4 / np.maximum(skewness**2, _NO_SKEWNESS)
    above = gammaincc(
        shape, np.maximum(shape + np.copysign(scores, scores * skewness) * np.sqrt(shape), 0.0)
    )
    p_values = 2 * np.minimum(above, 1 - above)
    return scores.reshape(difference.shape), p_values.reshape(difference.shape)


def _interaction(shares: Floats, feasible: Floats, spread: Floats) -> tuple[Floats, Floats]:
    """The table less the product of its margins, and the covariance of that difference.

    The product is taken to first order around the feasible margins: the product of two estimated
    margins has a longer tail than the normal law, and matters for few reports.
    """
    less_margins = _margin_projection(feasible)
    departures = (less_margins @ shares.reshape(-1)).reshape(shares.shape)
    linear_part = less_margins @ (np.eye(shares.size) - 1 / shares.size)
    return departures, linear_part @ spread @ linear_part.T


def _events(independent: Floats, people: float) -> Floats:
    """How many persons and lies a cell would have, by its variance, if each moves it by one."""
    return people**2 * np.diag(independent)


def _margin_projection(feasible: Floats) -> Floats:
    """The matrix that subtracts the margins' product from a table's cells, to first order."""
    rows, columns = feasible.sum(axis=1), feasible.sum(axis=0)
    row_sums = np.outer(rows, np.ones(len(rows)))
    column_sums = np.outer(columns, np.ones(len(columns)))
    return np.asarray(np.kron(np.eye(len(rows)) - row_sums, np.eye(len(columns)) - column_sums))


def _independence_p_value(
    vector: Floats,
    covariance: Floats,
    *,
    lines: Floats,
    independent: Floats,
    people: float,
) -> float:
    """P-value of departures at least this far from 0, in the metric of their covariance.

    Persons and lies in a cell are a Poisson number, so that one person in a cell where a tenth of
    one is expected moves the square far. Its law is the shifted gamma law (Pearson's type III) with
    the square's mean, variance and third cumulant: sums over the partitions of two or three pairs
    into connected blocks, each with a cumulant of a cell's number (McCullagh 1987, chapter 3).

    Args:
        vector: departures from independence.
        covariance: theirs if the parts are independent.
        lines: by which the departures change with each cell's share.
        independent: covariance of the cells' shares if the parts are independent.
        people: as in `Table`.
    """
    events, moved, degrees = _events(independent, people), lines / people, len(vector)
    square = float(vector @ np.linalg.solve(covariance, vector))
    pairs = moved.T @ np.linalg.solve(covariance, moved)
    diagonal = np.diag(pairs)
    once, twice = events * diagonal, events @ diagonal**2
    variance = 2 * degrees + twice
    third = 8 * degrees + 12 * twice + 6 * once @ pairs @ once
    third += 4 * events @ pairs**3 @ events + events @ diagonal**3
    shape, scale = 4 * variance**3 / third**2, third / (2 * variance)
    return float(gammaincc(shape, max(shape + (square - degrees) / scale, 0.0)))


def _contrasts(shape: tuple[int, ...]) -> Floats:
    """Basis of a table's departures from its margins' product, one column for each."""
    # Orthonormal bases of the vectors with sum 0; shape (size, size - 1).
    rows, columns = (np.linalg.svd(np.ones((1, size)))[2][1:].T for size in shape)
    return np.asarray(np.kron(rows, columns))


def _group_rows(shares: Floats, error: float) -> Floats:
    """Groups of values: frequent ones alone, rare ones together; a row of 0 and 1 per group."""
    common = shares >= _SURE * error
    rare = np.flatnonzero(~common)
    if len(rare) and shares[rare].sum() < _SURE * error and common.any():
        # All rare values together are too few, so the rarest other value joins them.
        rarest = int(np.flatnonzero(common)[shares[common].argmin()])
        common[rarest] = False
    lines = [np.eye(len(shares))[place] for place in np.flatnonzero(common)]
    if not common.all():
        lines.append((~common).astype(np.float64))
    return np.array(lines)


def _rare_names(names: Sequence[str], lines: Floats) -> tuple[str, ...]:
    """The values in a group of several."""
    flags = (lines.sum(axis=1) > 1) @ lines > 0
    return tuple(name for name, is_rare in zip(names, flags, strict=True) if is_rare)


def _phi_squared(
    table: Table, rows: Floats, columns: Floats, confidence: float
) -> tuple[float, float, float]:
    """Phi squared of the grouped values, corrected for noise, with an interval.

    With departures d, weights W and covariance S, its variance is 4 d'WSWd + 2 tr(WS WS), which
    grows with phi squared: each end is the value whose own error would reach the estimate (Wilson).
    """
    merged = np.kron(rows, columns)
    shares, feasible = rows @ table.shares @ columns.T, rows @ table.feasible @ columns.T
    departures, spread = _interaction(shares, feasible, merged @ table.spread @ merged.T)
    margins = np.outer(feasible.sum(axis=1), feasible.sum(axis=0))
    weights = 1 / np.sqrt(margins.reshape(-1))
    residuals, noise = departures.reshape(-1) * weights, spread * np.outer(weights, weights)
    square = float(residuals @ residuals - np.trace(noise))
    noise_square = float((noise * noise).sum())
    gap: Floats = (feasible - margins).reshape(-1) * weights
    variance_along = float(gap @ noise @ gap / max(float(gap @ gap), 1e-30))
    slope = max(variance_along, noise_square / float(np.trace(noise)))
    reach = reach_of(confidence) ** 2
    clipped_square = max(square, 0.0)
    middle = clipped_square + 2 * reach * slope
    half_width = np.sqrt(max(middle**2 - clipped_square**2 + 2 * reach * noise_square, 0.0))
    return square, float(middle - half_width), float(middle + half_width)


def _rare_group_bound(feasible: Floats, lines: Floats, error: float) -> float:
    """Upper bound on phi squared within the group of rare values.

    Rows that are a share p of a column, which is a share c, add their share times p (1 - p) / c.
    """
    several = lines[lines.sum(axis=1) > 1]
    if not len(several):
        return 0.0
    column_shares = several[0] @ feasible
    share = float(column_shares.sum())
    columns = np.maximum(feasible.sum(axis=0), 1e-9)
    profile = column_shares / share if share > 0 else columns
    variance_within = float((profile * (1 - profile) / columns)[columns > error / 10].sum())
    return (share + 2 * error) * variance_within
