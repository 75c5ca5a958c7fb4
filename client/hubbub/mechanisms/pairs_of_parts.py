"""Pairs of parts: report two of several answers together, with all of epsilon, to count tables.

Idea: a value has several parts, as theme, country and version. A coin that does not look at it
    draws two of the parts; what the value holds in both together is one cell of their table, and
    that is told as a value of a list would be. With `ways` = 3 it draws three; with `ways` = the
    number of parts it draws nothing, and every report is one cell of the table of all parts.
Guarantee: that of `projective`, which answers for every table: <= epsilon, whatever the parts hold.
    Which parts they were says nothing.
Sends: an index of table and point: 2 bytes for a table of some hundred cells.
Estimator and variance: per table that of `projective` over its cells; of a cell that t of the
    table's N reports hold, [t p (1-p) + (N-t) q (1-q)] / (p-q)^2.
Source: users split over tables, not epsilon over answers: Zhang, Wang, Li, He, Chen, CALM (CCS
    2018); decision 0217.
"""

from collections.abc import Sequence
from dataclasses import field
from math import prod
from typing import Any, Final

from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.grouped_mechanism import Grouped
from hubbub.mechanisms.layout import Estimates, Totals, concat
from hubbub.mechanisms.mechanism import check_whole, whole
from hubbub.mechanisms.part_and_cell_names import MAX_PARTS, tables_of
from hubbub.mechanisms.projective import ProjectiveResponse

# The limit of sketches, whose totals are read from the store at every query; and of a table.
_MAX_CELLS: Final = 1 << 20
_MAX_TABLE: Final = 1 << 16
# Of so many parts tables are drawn; of more, only all parts together are reported.
_MAX_DRAWN: Final = 3
# Up to this number all values are probed, else some that cover each part's values.
_MAX_PROBES: Final = 1 << 10


@frozen()
class PairedParts(Grouped[int]):
    """Reports one random pair of parts, or triple, or all; a group per table.

    A value is a number: the indexes of its parts' values, the last part counting fastest.
    """

    epsilon: float
    sizes: tuple[int, ...]
    ways: int = field(
        default=2,
        metadata=whole(
            "Number of parts that a device reports together, as a table: 2, 3 or all of them; more "
            "than 2 only in a crowd.",
            2,
            MAX_PARTS,
            example=3,
        ),
    )
    response: ProjectiveResponse = field(init=False, repr=False)

    NAME = "pairs"
    VERSION = 1
    VALUES = "categories"
    FAMILY = "pairs"
    SMALL = (
        {"epsilon": 0.1, "sizes": (2, 2)},
        {"epsilon": 1.0, "sizes": (2, 3, 2)},
        {"epsilon": 3.0, "sizes": (3, 2, 2)},
        {"epsilon": 1.0, "sizes": (2, 3, 2), "ways": 3},
        {"epsilon": 3.0, "sizes": (2, 2, 2, 2), "ways": 3},
        {"epsilon": 4.0, "sizes": (2, 2, 3, 2), "ways": 4},
    )

    def __post_init__(self) -> None:
        raw_sizes: Any = self.sizes
        # JSON makes a list of it.
        sizes = tuple(raw_sizes) if isinstance(raw_sizes, list) else raw_sizes
        set_derived(self, sizes=sizes)
        check_whole(self, "ways")
        if isinstance(sizes, tuple) and _MAX_DRAWN < self.ways != len(sizes):
            raise BadParameter(
                f"ways {self.ways} must be 2, 3 or the number of parts, {len(sizes)}"
            )
        if not (isinstance(sizes, tuple) and self.ways <= len(sizes) <= MAX_PARTS):
            raise BadParameter(f"sizes must have {self.ways} to {MAX_PARTS} numbers, one per part")
        for size in sizes:
            pure_protocols.check_categories(size)
        largest = prod(sorted(sizes)[-self.ways :])
        if not largest <= _MAX_TABLE:
            raise BadParameter(
                f"the largest {self.ways} parts make a table of {largest:,} cells, above "
                f"{_MAX_TABLE:,}; list fewer values, or put the rare ones under one name"
            )
        set_derived(self, response=ProjectiveResponse(self.epsilon, largest))
        if not self.layout.size <= _MAX_CELLS:
            raise BadParameter(
                f"{self.groups} tables make totals of {self.layout.size:,} cells, above "
                f"{_MAX_CELLS:,}; leave parts out, or list fewer values"
            )

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The parts that each group reports."""
        return tables_of(len(self.sizes), self.ways)

    @property
    def cells(self) -> tuple[int, ...]:
        """The number of cells of each table."""
        return tuple(prod(self.sizes[part] for part in table) for table in self.tables)

    @property
    def names_one_cell(self) -> bool:
        """Whether each report is one cell of the table of all parts, as a report of `grr` is."""
        return self.groups == self.response.transform.on_one == 1

    @property
    def groups(self) -> int:
        return len(self.tables)

    def check(self, value: Any) -> None:
        if not (isinstance(value, int) and 0 <= value < prod(self.sizes)):
            raise ValueOutOfDomain("a part of the value is outside its list")

    def value_of(self, places: Sequence[int]) -> int:
        """The value whose parts have these indexes."""
        value = 0
        for size, place in zip(self.sizes, places, strict=True):
            value = value * size + place
        return value

    def places_of(self, value: int) -> tuple[int, ...]:
        """The indexes of a value's parts."""
        self.check(value)
        places: list[int] = []
        for size in reversed(self.sizes):
            value, place = divmod(value, size)
            places.append(place)
        return tuple(reversed(places))

    def cell(self, places: Sequence[int], group: int) -> int:
        """The cell of a group's table for these indexes."""
        cell = 0
        for part in self.tables[group]:
            cell = cell * self.sizes[part] + places[part]
        return cell

    def with_cell(self, place: int, turn: int = 0) -> int:
        """A value in the cell at this place, table by table; if `turn` is 1, one outside it."""
        group = 0
        while place >= self.cells[group]:
            place, group = place - self.cells[group], group + 1
        places, table = [0] * len(self.sizes), self.tables[group]
        for part in reversed(table):
            place, places[part] = divmod(place, self.sizes[part])
        places[table[0]] = (places[table[0]] + turn) % self.sizes[table[0]]
        return self.value_of(places)

    def code(self, value: int, group: int) -> int:
        return self.cell(self.places_of(value), group)

    def row(self, value: int) -> Sequence[int]:
        places = self.places_of(value)
        return [
            int(cell == self.cell(places, group))
            for group, cells in enumerate(self.cells)
            for cell in range(cells)
        ]

    def estimate(self, totals: Totals) -> Estimates:
        """Per table and cell: the number of the table's reports that hold it."""
        transform = self.response.transform
        tables = zip(self.by_group(totals), self.cells, strict=True)
        supports = [(transform.sums(cells, size), sum(cells)) for cells, size in tables]
        if self.groups == 1:
            return self.channel.estimates_among(supports[0][0], totals)
        return concat((self.channel.estimates(*support) for support in supports), totals.reports)

    def probes(self) -> Sequence[int]:
        if (number := prod(self.sizes)) <= _MAX_PROBES:
            return range(number)
        longest = max(self.sizes)
        return [self.value_of([place % size for size in self.sizes]) for place in range(longest)]
