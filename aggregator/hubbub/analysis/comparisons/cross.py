"""Cross tables: how two parts of an answer go together, cell by cell and as a whole.

Cells are those of the estimates. Everything else is of the population, by the exact covariance of
the cells: shares within rows, each cell's distance from independence, the test, and Cramer's V.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from hubbub.analysis.answer import Answer, ValueAnswer
from hubbub.analysis.arrays import Floats
from hubbub.analysis.comparisons.association import (
    Association,
    Table,
    associated,
    departures,
)
from hubbub.analysis.comparisons.covariance import table_covariance
from hubbub.analysis.families import family_for
from hubbub.analysis.families.contract import Tier
from hubbub.analysis.uncertainty.intervals import reach_of
from hubbub.errors import BadParameter
from hubbub.mechanisms.pairs import PairedParts
from hubbub.mechanisms.parts import parts_of

Counts = npt.NDArray[np.int64]

# That any cell of independent parts is marked.
_DOUBT: Final = 0.05


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: estimate, interval and share as the estimates have them, in reports.

    within, within_low, within_high: its share of its row, with the interval's ends, in [0, 1].
    score: how many standard errors it is above what it would be if the parts were independent.
    departs: whether that is beyond chance, over all cells.
    """

    value: str
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
class Cross:
    """A table of two parts, row by row, and how they are associated. parts: all that there are."""

    rows: str
    columns: str
    parts: tuple[str, ...]
    cells: tuple[Cell, ...]
    association: Association


def crossed(
    tiers: Sequence[Tier],
    values: Sequence[str] | None,
    answer: Answer,
    parts: tuple[str, str],
    repeats: int = 1,
) -> Cross:
    """The table of two parts of an answer, the first one's values as rows.

    parts: "" for the first that is free. tiers: with their totals, as the answer is of. values: of
    the metric, as the catalog lists them.
    repeats: how many of the reports one person may have made.

    Raises:
        BadParameter: not a metric of parts; parts that it does not have; a table too large.
    """
    mechanism: Any = tiers[0][0]
    if not isinstance(mechanism, PairedParts):
        raise BadParameter(
            "this metric has no parts to cross: write one with parts = { PART = [...], ... }"
        )
    own = parts_of(values or ())
    parts, places = _places(list(own), parts)
    group = mechanism.tables.index((min(places), max(places)))
    first = sum(mechanism.cells[:group])
    sizes = [mechanism.sizes[place] for place in sorted(places)]
    numbers = np.arange(mechanism.cells[group]).reshape(sizes)
    order = numbers.T if places[0] > places[1] else numbers
    cells = [answer.values[first + place] for place in order.reshape(-1).tolist()]
    used = [tier for tier in tiers if tier[1].reports]
    table = _table(mechanism, places, used, (order, cells), repeats)
    names = own[parts[0]], own[parts[1]]
    rows = _rows(cells, names, table, (max(answer.reports, 1), answer.confidence))
    return Cross(*parts, tuple(own), tuple(rows), associated(table, names, answer.confidence))


def _table(
    mechanism: PairedParts,
    places: tuple[int, int],
    tiers: Sequence[Tier],
    listed: tuple[Counts, Sequence[ValueAnswer]],
    repeats: int,
) -> Table:
    """Shares of a table's cells, and how they vary together."""
    order, cells = listed
    reports = max(sum(totals.reports for _, totals in tiers), 1)
    estimates = np.array([cell.estimate for cell in cells]) / reports
    likely = np.array([cell.consistent for cell in cells]).reshape(order.shape)
    likely /= max(likely.sum(), 1e-12)
    weighed = [_variance(tier) for tier in tiers]
    line = order.reshape(-1)

    def covariance(shares: Floats) -> Floats:
        """Of the cells as they are listed here, were these their shares."""
        told = np.empty(len(line))
        told[line] = shares.reshape(-1)
        found: Floats = table_covariance(tiers, weighed, told, repeats)[np.ix_(line, line)]
        return found / reports**2

    spread = covariance(likely)
    return Table(
        # The whole is known: what the cells add up to beside it says nothing.
        (estimates + (1 - estimates.sum()) / len(line)).reshape(order.shape),
        *(likely, spread),
        covariance(np.outer(likely.sum(axis=1), likely.sum(axis=0))),
        (_margin_error(mechanism, places[0], spread), _margin_error(mechanism, places[1], spread)),
    )


def _rows(
    cells: Sequence[ValueAnswer],
    names: tuple[Sequence[str], Sequence[str]],
    table: Table,
    of: tuple[int, float],
) -> Iterator[Cell]:
    """Every cell. of: how many reports, and how sure the intervals."""
    reports, confidence = of
    estimates = np.array([cell.estimate for cell in cells]).reshape(table.shares.shape) / reports
    scores = departures(table)
    figures = [*_within(estimates, table.spread, reach_of(confidence)), scores]
    beyond = -ndtri(_DOUBT / 2 / len(cells))
    lines = np.array([part.reshape(-1) for part in figures]).T.tolist()
    for (row, column), cell, (within, low, high, score) in zip(
        product(*names), cells, lines, strict=True
    ):
        yield Cell(
            cell.value,
            row=row,
            column=column,
            estimate=cell.estimate,
            stderr=cell.stderr,
            low=cell.low,
            high=cell.high,
            share=cell.estimate / reports,
            within=within,
            within_low=low,
            within_high=high,
            score=score,
            departs=bool(abs(score) > beyond),
        )


def _places(own: Sequence[str], parts: tuple[str, str]) -> tuple[tuple[str, str], tuple[int, int]]:
    """Two parts and their places among all. For a part that is "" the first one that is free."""
    for part in filter(None, parts):
        if part not in own:
            raise BadParameter(f'"{part[:60]}" is none of its parts: write two of {", ".join(own)}')
    if parts[0] and parts[0] == parts[1]:
        raise BadParameter(f"both parts are {parts[0]}: write two of {', '.join(own)}")
    free = (part for part in own if part not in parts)
    rows, columns = (part or next(free) for part in parts)
    return (rows, columns), (own.index(rows), own.index(columns))


def _variance(tier: Tier) -> float:
    """By which its figures were weighed: that of what nobody holds."""
    figures = family_for(tier[0]).figures(*tier, (), shape=False)
    return float((figures.absent**2).mean())


def _margin_error(mechanism: PairedParts, place: int, spread: Floats) -> float:
    """About how far off a part's shares are, which all tables of the part tell together."""
    many = [size for other, size in enumerate(mechanism.sizes) if other != place]
    return float(np.sqrt(np.trace(spread) / len(spread) / sum(1 / size for size in many)))


def _within(table: Floats, spread: Floats, reach: float) -> tuple[Floats, Floats, Floats]:
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
