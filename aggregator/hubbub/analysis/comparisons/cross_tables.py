"""Cross tables: how two parts of an answer are associated, by cell and as a whole.

Cells have the estimates' own numbers. Everything else describes the population, from the cells'
exact covariance: shares within rows, each cell's distance from independence, the test, Cramer's V.
If devices report three parts or more together, two are crossed overall, or by a third.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np

from hubbub.analysis.answer import Answer, ValueAnswer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.comparisons.association import (
    Association,
    Table,
    associated,
    associated_within,
    departures,
    without_v,
)
from hubbub.analysis.comparisons.table_covariance import Summed, table_covariance
from hubbub.analysis.estimators.consistency import table_of_parts, tables, weights_for
from hubbub.analysis.families import family_for
from hubbub.analysis.families.tiers_and_rows import Columns, Tier
from hubbub.analysis.uncertainty.intervals import fieller, reach_of, stand_out
from hubbub.analysis.value_estimates import ValueEstimates
from hubbub.errors import BadParameter
from hubbub.errors.message_words import did_you_mean
from hubbub.mechanisms.pairs_of_parts import PairedParts
from hubbub.mechanisms.part_and_cell_names import parts_of

# A slice below this many standard errors of its share shows no association.
_SURE: Final = 3.0
_PAIR: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: estimate, interval and share as for estimates, in reports.

    Args:
        slice: the third part's value; "" for two parts.
        within, within_low, within_high: share of its row with the interval, in [0, 1].
        score: number of standard errors above its expectation for independent parts.
        departs: whether that is beyond chance, at a false discovery rate of 5% over all cells.
    """

    value: str
    slice: str
    row: str
    column: str
    estimate: float
    stderr: float
    low: float
    high: float
    share: float
    within: float
    within_low: float
    within_high: float
    score: float
    departs: bool


@dataclass(frozen=True, slots=True)
class Slice:
    """The two parts for one value of the third, which is a `share` of all reports.

    `association` is None for a value that is too rare.
    """

    value: str
    share: float
    association: Association | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cross:
    """A table of two parts, row by row, and their association.

    Args:
        parts: all parts of the metric.
        by: a third part, or "". Its slices follow each other in the cells; the association then
            tests all slices together, without V.
    """

    rows: str
    columns: str
    by: str
    parts: tuple[str, ...]
    cells: tuple[Cell, ...]
    association: Association
    slices: tuple[Slice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The requested table: its parts (slices, rows, columns), their places, and their values.

    `people` is the least number of people whose reports contain one table of the mechanism.
    """

    parts: tuple[str, ...]
    places: tuple[int, ...]
    names: tuple[Sequence[str], ...]
    reports: int
    people: float
    confidence: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of slices, rows and columns."""
        return (1, *map(len, self.names))[-3:]

    @property
    def crossed(self) -> tuple[Sequence[str], Sequence[str]]:
        """Values of the rows, and of the columns."""
        return self.names[-2], self.names[-1]


def crossed(
    tiers: Sequence[Tier],
    values: Sequence[str] | None,
    answer: Answer,
    parts: Sequence[str],
    repeats: int = 1,
) -> Cross:
    """The table of two parts of an answer, with the first part's values as rows.

    `parts` are those of rows and columns and perhaps a third; "" for rows and columns means the
    first free one. `tiers` have the totals of the answer, `values` are in the catalog's order, and
    `repeats` is the largest number of reports from one person. Raises BadParameter for a metric
    without parts, an unknown part, three parts if devices report two, or a table too large.
    """
    mechanism: Any = tiers[0][0]
    if not family_for(mechanism).ways(mechanism):
        raise BadParameter(
            "this metric has no parts to cross: request its estimates, or add a metric with parts "
            "= { PART = [...], ... }"
        )
    metric_parts = parts_of(values or ())
    rows, columns, by = _part_names(list(metric_parts), (*parts, "")[:3], mechanism.ways)
    part_names = tuple(part for part in (by, rows, columns) if part)
    request = _Request(
        parts=part_names,
        places=tuple(map(list(metric_parts).index, part_names)),
        names=tuple(metric_parts[part] for part in part_names),
        reports=max(answer.reports, 1),
        people=max(answer.reports, 1) / repeats / mechanism.groups,
        confidence=answer.confidence,
    )
    used = [tier for tier in tiers if tier[1].reports]
    # Tiers are weighted by the variance of a value that nobody holds.
    absent = (family_for(tier[0]).figures(*tier, ()).absent for tier in used)
    weighed = [float((errors**2).mean()) for errors in absent]

    def covariance(sum_tables: Sequence[Summed], times: int = repeats) -> Floats:
        return table_covariance(used, weighed, sum_tables, times) / request.reports**2

    sum_tables = _covering_tables(mechanism, request, answer)
    cells = _cells(mechanism, request, answer, sum_tables, covariance)
    table = _whole_table(request, cells, sum_tables, covariance)
    if by:
        split = [_slice(table, number) for number in range(request.shape[0])]
        association, slices = _slice_associations(request, table, split)
    else:
        first, other = _margin_errors(mechanism, request.places, table.spread)
        split = [_slice(table, 0, margin_errors=(first, other))]
        association, slices = associated(split[0].table, request.crossed, request.confidence), ()
    return Cross(
        rows=rows,
        columns=columns,
        by=by,
        parts=tuple(metric_parts),
        cells=tuple(_rows(request, cells, table, split)),
        association=association,
        slices=slices,
    )


def _block(table: Table, number: int) -> slice:
    size = table.feasible[0].size
    return slice(number * size, (number + 1) * size)


@dataclass(frozen=True, slots=True)
class _Slice:
    """One slice as a table of its own, and whether it is frequent enough to be judged.

    `share_map` is the linearized map from shares of all to shares within the slice, if parts are
    independent.
    """

    table: Table
    share_map: Floats
    sure: bool


def _covering_tables(mechanism: PairedParts, request: _Request, answer: Answer) -> list[Summed]:
    """The reported tables that contain the requested cells, with their feasible shares."""
    picture = np.array([value.consistent for value in answer.values])
    pictures = tables(mechanism.sizes, picture, mechanism.ways)
    places = tuple(sorted(request.places))
    weights = {mechanism.tables.index(places): 1.0} if places in mechanism.tables else {}
    result = []
    for group, weight in (weights or weights_for(mechanism.sizes, places, mechanism.ways)).items():
        table = mechanism.tables[group]
        axes = [table.index(place) for place in request.places]
        axes += [axis for axis in range(len(table)) if axis not in axes]
        numbers = np.arange(mechanism.cells[group]).reshape(pictures[group].shape)
        lines = numbers.transpose(axes).reshape(int(np.prod(request.shape)), -1)
        shares = pictures[group].reshape(-1)
        result.append(Summed(shares / max(shares.sum(), 1e-12), lines, weight))
    return result


def _cells(
    mechanism: PairedParts,
    request: _Request,
    answer: Answer,
    sum_tables: Sequence[Summed],
    covariance: Callable[..., Floats],
) -> Sequence[ValueAnswer]:
    """The requested cells' rows of the answer, or their sums over other parts of its tables."""
    places = tuple(sorted(request.places))
    if places in mechanism.tables:
        first = sum(mechanism.cells[: mechanism.tables.index(places)])
        return [answer.values[first + number] for number in sum_tables[0].lines[:, 0].tolist()]
    estimates = np.array([value.estimate for value in answer.values])
    table = table_of_parts(mechanism.sizes, estimates, places, mechanism.ways)
    line = table.transpose([places.index(place) for place in request.places]).reshape(-1)
    errors = request.reports * np.sqrt(np.diag(covariance(sum_tables, 0)))
    order = np.argsort(request.places)
    names = [
        ", ".join(f"{request.parts[part]}={cell[part]}" for part in order)
        for cell in product(*request.names)
    ]
    judged = Columns.of(ValueEstimates.flat(line, errors), request.reports, request.confidence)
    return judged.rows(names, request.reports * sum_tables[0].sums)


def _whole_table(
    request: _Request,
    cells: Sequence[ValueAnswer],
    sum_tables: Sequence[Summed],
    covariance: Callable[[Sequence[Summed]], Floats],
) -> Table:
    """All slices together; shares with sum 1 over all cells."""
    estimates = np.array([cell.estimate for cell in cells]).reshape(request.shape) / request.reports
    feasible = sum_tables[0].sums.reshape(request.shape)
    sizes = np.maximum(feasible.sum(axis=(1, 2), keepdims=True), 1e-12)
    product_ = feasible.sum(axis=2, keepdims=True) * feasible.sum(axis=1, keepdims=True) / sizes
    return Table(
        # The total is known, so the sum of the cells carries no information.
        shares=estimates + (1 - estimates.sum()) / estimates.size,
        feasible=feasible,
        spread=covariance(sum_tables),
        independent=covariance([_with_shares(table, product_.reshape(-1)) for table in sum_tables]),
        people=request.people,
    )


def _with_shares(table: Summed, new_sums: Floats) -> Summed:
    """The table with new shares of the requested cells, divided in proportion among their cells."""
    line_shares, before = table.shares[table.lines], table.sums[:, None]
    parted = np.divide(
        line_shares,
        before,
        out=np.full_like(line_shares, 1 / line_shares.shape[1]),
        where=before > 0,
    )
    shares = np.empty_like(table.shares)
    shares[table.lines] = parted * new_sums[:, None]
    return replace(table, shares=shares)


def _slice(whole: Table, number: int, margin_errors: tuple[float, float] = (0.0, 0.0)) -> _Slice:
    """One slice with shares of its own total; the covariance includes the error of that total."""
    block, shares, feasible = _block(whole, number), whole.shares[number], whole.feasible[number]
    spread, independent = whole.spread[block, block], whole.independent[block, block]
    size = float(feasible.sum())
    share_map, people = np.eye(feasible.size), whole.people
    is_whole = len(whole.feasible) == 1
    is_sure = is_whole or min(size, float(shares.sum())) > _SURE * float(np.sqrt(spread.sum()))
    if is_sure and not is_whole:
        shares, feasible, people = shares / shares.sum(), feasible / size, people * size
        as_told = _share_map(feasible, size)
        share_map = _share_map(np.outer(feasible.sum(axis=1), feasible.sum(axis=0)), size)
        spread, independent = as_told @ spread @ as_told.T, share_map @ independent @ share_map.T
        rows, columns = feasible.shape
        cell = float(np.trace(spread)) / feasible.size
        margin_errors = float(np.sqrt(cell * columns)), float(np.sqrt(cell * rows))
    table = Table(
        shares=shares,
        feasible=feasible,
        spread=spread,
        independent=independent,
        people=people,
        margin_errors=margin_errors,
    )
    return _Slice(table, share_map, sure=is_sure)


def _share_map(within: Floats, size: float) -> Floats:
    """Linearized map from shares of all to shares within a slice of this size."""
    return (np.eye(within.size) - within.reshape(-1)[:, None]) / size


def _slice_associations(
    request: _Request, table: Table, split: Sequence[_Slice]
) -> tuple[Association, tuple[Slice, ...]]:
    """The test over all slices, and each slice's own association."""
    sure_slices = [number for number, part in enumerate(split) if part.sure]
    slices = tuple(
        Slice(
            name,
            float(table.shares[number].sum()),
            associated(part.table, request.crossed, request.confidence) if part.sure else None,
        )
        for number, (name, part) in enumerate(zip(request.names[0], split, strict=True))
    )
    if not sure_slices:
        return without_v(1.0), slices
    size = table.feasible[0].size
    cells = (np.array(sure_slices)[:, None] * size + np.arange(size)).reshape(-1)
    independent = table.independent[np.ix_(cells, cells)]
    association = associated_within(
        [split[number].table for number in sure_slices],
        [split[number].share_map for number in sure_slices],
        independent,
        table.people,
    )
    return association, slices


def _rows(
    request: _Request, cells: Sequence[ValueAnswer], table: Table, split: Sequence[_Slice]
) -> Iterator[Cell]:
    """All cells, slice by slice."""
    estimates = np.array([cell.estimate for cell in cells]).reshape(request.shape) / request.reports
    reach, columns = reach_of(request.confidence), []
    for number, part in enumerate(split):
        block = _block(table, number)
        spread = table.spread[block, block]
        flat = np.zeros_like(estimates[number]), np.ones_like(estimates[number])
        judged = departures(part.table) if part.sure else flat
        figures = [*shares_within(estimates[number], spread, reach), *judged]
        columns.append(np.array([figure.reshape(-1) for figure in figures]))
    names = request.names if len(request.names) > _PAIR else ([""], *request.names)
    *figures, p_values = np.concatenate(columns, axis=1)
    lines = zip(*(column.tolist() for column in (*figures, stand_out(p_values))), strict=True)
    for (slice_name, row, column), cell, (within, low, high, score, departs) in zip(
        product(*names), cells, lines, strict=True
    ):
        yield Cell(
            value=cell.value,
            slice=slice_name,
            row=row,
            column=column,
            estimate=cell.estimate,
            stderr=cell.stderr,
            low=cell.low,
            high=cell.high,
            share=cell.estimate / request.reports,
            within=within,
            within_low=low,
            within_high=high,
            score=score,
            departs=departs,
        )


def _part_names(all_parts: Sequence[str], parts: Sequence[str], ways: int) -> tuple[str, str, str]:
    """Names of rows, columns and third part; "" for rows or columns means the first free part."""
    if parts[2] and ways == _PAIR:
        raise BadParameter(
            "its devices report two parts together: leave the third out, or give a metric with a "
            "crowd ways = 3"
        )
    several = "three" if parts[2] else "two"
    for part in filter(None, parts):
        if part not in all_parts:
            raise BadParameter(
                f'"{part[:60]}" is not one of its parts: write {several} of {", ".join(all_parts)}'
                f"{did_you_mean(part, all_parts)}"
            )
        if parts.count(part) > 1:
            subject = "both parts are" if several == "two" else "a part occurs twice:"
            raise BadParameter(f"{subject} {part}: write {several} of {', '.join(all_parts)}")
    free = (part for part in all_parts if part not in parts)
    rows, columns = (part or next(free) for part in parts[:2])
    return rows, columns, parts[2]


def _margin_errors(
    mechanism: PairedParts, places: Sequence[int], spread: Floats
) -> Iterator[float]:
    """Approximate standard errors of the parts' shares, from all tables that contain each part."""
    others = range(len(mechanism.sizes)) if mechanism.groups > 1 else places
    for place in places:
        other_sizes = [mechanism.sizes[other] for other in others if other != place]
        yield float(np.sqrt(np.trace(spread) / len(spread) / sum(1 / size for size in other_sizes)))


def shares_within(table: Floats, spread: Floats, reach: float) -> tuple[Floats, Floats, Floats]:
    """Shares within rows, with the ends of their intervals (Fieller 1954).

    `spread` is the covariance of all cells, row by row. A row that may be empty has [0, 1].
    """
    rows, columns = table.shape
    row = np.arange(rows)
    row_spread = spread.reshape(rows, columns, rows, columns)[row, :, row, :]
    row_variances = np.repeat(row_spread.sum(axis=(1, 2)), columns)
    mixed = row_spread.sum(axis=2).reshape(-1)
    cells = np.diagonal(row_spread, axis1=1, axis2=2).reshape(-1)
    ends = fieller(
        table.reshape(-1),
        np.repeat(table.sum(axis=1), columns),
        np.array([cells, -2 * mixed, row_variances]),
        row_variances,
        reach=reach,
    )
    middle, low, high = (np.nan_to_num(column).reshape(table.shape) for column in ends)
    return middle, low, high
