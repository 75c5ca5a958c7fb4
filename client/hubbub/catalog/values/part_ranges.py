"""A numeric part of an answer, cut into ranges at its edges."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final

from hubbub.catalog.values.numbers import Number
from hubbub.catalog.values.value_kinds import kind_named, numeric_kinds
from hubbub.fields import kinds
from hubbub.fields.field import check, entry, setting, settings
from hubbub.fields.kinds import Kind
from hubbub.fields.tables import table_of

OUTSIDE: Final = entry(
    kinds.one_of(lambda: ("clamp", "refuse")),
    "Treatment of a number outside its range: `clamp` (the default with a `kind`) counts it at "
    "the nearest end; `refuse` never sends it.",
    '"refuse"',
    defines=True,
)


@settings
class PartRange:
    """One numeric part, with the attributes of a numeric metric.

    Raises:
        BadParameter: kind, unit and edges contradict each other.
    """

    edges: tuple[float, ...] = setting(kinds.edges(), "Where its range is cut.", "[0, 18, 65, 120]")
    kind: str = setting(
        kinds.one_of(numeric_kinds), "What the app reports.", '"count"', default="number"
    )
    unit: str = setting(
        kinds.text("gives the unit of the number"), "What it is measured in.", '"s"', default=""
    )
    outside: str = field(default="", metadata=OUTSIDE)

    def __post_init__(self) -> None:
        check(self)
        numeric_kinds()[self.kind].check(self, "categories")

    @property
    def other(self) -> bool:
        """Returns False: a part has no value for "other"."""
        return False

    @property
    def clamps(self) -> bool:
        """Returns whether a number outside all ranges counts in the nearest one."""
        return self.outside != "refuse"

    @property
    def values(self) -> tuple[str, ...]:
        """Returns the names of the ranges."""
        return numeric_kinds()[self.kind].labels(self.edges, self.unit, clamps=self.clamps)

    def place(self, value: Any) -> int:
        """Returns the index of a number's range. Raises ValueOutOfDomain, without the number."""
        return numeric_kinds()[self.kind].place(self, value)


def _with_edges(table: Any) -> Any:
    """Returns the table with growing edges computed."""
    if not (isinstance(table, dict) and isinstance(table.get("edges"), Mapping)):
        return table
    kind = kind_named(table.get("kind", "number"))
    edges = kind.edges(table["edges"]) if isinstance(kind, Number) else ()
    return {**table, "edges": [*edges]} if edges else table


def _range_kind() -> Kind:
    of = table_of(PartRange)
    return Kind(
        words=of.words,
        problem=lambda value: of.problem(_with_edges(value)),
        schema=of.schema,
        read=lambda value: of.read(_with_edges(value)),
        dump=of.dump,
        load=of.load,
    )


RANGE: Final = _range_kind()
"""A part as metrics.toml has it: { edges = [0, 18, 65, 120] }."""


def _problem(value: Any) -> str:
    if isinstance(value, Mapping) and all(
        isinstance(part_range, PartRange) for part_range in value.values()
    ):
        return ""
    return "must be ranges by part"


RANGES: Final = entry(
    Kind(
        words=lambda: "ranges by part",
        problem=_problem,
        schema=lambda: {"type": "object", "additionalProperties": RANGE.schema()},
        dump=lambda ranges: {part: RANGE.dump(own) for part, own in sorted(ranges.items())},
        load=lambda table: {part: RANGE.load(own) for part, own in table.items()},
    ),
    "Of parts that are numbers, where their ranges are cut.",
    written=False,
    defines=True,
)
"""What a metric holds of its numeric parts."""
