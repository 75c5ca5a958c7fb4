"""Metrics of several parts: their lists of values, and the code that the mechanism gets."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final

from hubbub.catalog.plain_python_value import as_python
from hubbub.catalog.values.numbers import Number
from hubbub.catalog.values.value_kind_registry import kind_named, numeric_kinds
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields import kinds
from hubbub.fields.field import Entry, check, entry, setting, settings, table_of
from hubbub.fields.kinds import Kind
from hubbub.fields.rules import is_text, is_writable
from hubbub.mechanisms import REGISTRY
from hubbub.mechanisms.part_and_cell_names import MAX_PARTS, listed_parts, parts_of

if TYPE_CHECKING:
    from hubbub.mechanisms.pairs_of_parts import PairedParts


OUTSIDE: Final = entry(
    kinds.word_kind(lambda: ("clamp", "refuse")),
    "Treatment of a number outside its range: `clamp` (the default with a `kind`) counts it at "
    "the nearest end; `refuse` never sends it.",
    '"refuse"',
    in_definition=True,
)


@settings
class PartRange:
    """One numeric part, like a numeric metric. Raises BadParameter for contradictory fields."""

    edges: tuple[float, ...] = setting(kinds.EDGES, "Where its range is cut.", "[0, 18, 65, 120]")
    kind: str = setting(
        kinds.word_kind(numeric_kinds), "What the app reports.", '"count"', default="number"
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


def _compute_edges(table: Any) -> Any:
    """Returns the table with growing edges computed."""
    if not (isinstance(table, dict) and isinstance(table.get("edges"), Mapping)):
        return table
    kind = kind_named(table.get("kind", "number"))
    edges = kind.edges(table["edges"]) if isinstance(kind, Number) else ()
    return {**table, "edges": [*edges]} if edges else table


_TABLE: Final = table_of(PartRange)
RANGE: Final = replace(
    _TABLE,
    problem=lambda value: _TABLE.problem(_compute_edges(value)),
    read=lambda value: _TABLE.read(_compute_edges(value)),
)
"""A part as metrics.toml has it: { edges = [0, 18, 65, 120] }."""


RANGES: Final = entry(
    kinds.simple(
        "ranges by part",
        lambda value: (
            isinstance(value, Mapping)
            and all(isinstance(part_range, PartRange) for part_range in value.values())
        ),
        {"type": "object"},
        dump=lambda ranges: {part: RANGE.dump(own) for part, own in sorted(ranges.items())},
        load=lambda table: {part: RANGE.load(own) for part, own in table.items()},
    ),
    "Of parts that are numbers, where their ranges are cut.",
    written=False,
    in_definition=True,
)
"""What a metric holds of its numeric parts."""


_WORDS: Final = (
    f"a table of 2 to {MAX_PARTS} parts, each with a list of texts or of true and false, or a "
    "table of edges"
)


def _problem(parts: Any) -> str:
    if not (isinstance(parts, Mapping) and 2 <= len(parts) <= MAX_PARTS):  # noqa: PLR2004 a pair
        return f"must be {_WORDS}"
    for part, values in parts.items():
        if not (is_text(part) and is_writable(part)) or part != part.strip() or "=" in part:
            return 'names a part that is empty or holds "="; rename it'
        if isinstance(values, Mapping):
            if reason := RANGE.problem(values):
                return f"{part}: {reason}"
            continue
        if reason := kinds.VALUES.problem(values):
            return f"{part}: {reason}"
        if not len(values) >= 2:  # noqa: PLR2004 one value is no question
            return f"{part}: has one value; list two or more, or leave the part out"
    return ""


PARTS: Final = Entry(
    kind=Kind(
        words=lambda: _WORDS,
        problem=_problem,
        schema=lambda: {
            "type": "object",
            "minProperties": 2,
            "maxProperties": MAX_PARTS,
            "additionalProperties": {
                "anyOf": [{**kinds.VALUES.schema(), "minItems": 2}, RANGE.schema()]
            },
        },
        read=lambda parts: listed_parts(
            {
                part: RANGE.read(names).values
                if isinstance(names, Mapping)
                else kinds.VALUES.read(names)
                for part, names in parts.items()
            }
        ),
    ),
    meaning="Parts of one answer, each with its values, for `pairs`.",
    example='{ theme = ["light", "dark"], age = { edges = [0, 18, 65, 120] } }',
)


def check_ranges(
    mechanism: str, values: Sequence[str] | None, ranges: Mapping[str, PartRange]
) -> None:
    """Raises BadParameter if ranges and listed values contradict each other."""
    if ranges and REGISTRY[mechanism].FAMILY != "pairs":
        raise BadParameter(f'{mechanism} does not report parts; leave "ranges" out')
    part_values = parts_of(values or ()) if ranges else {}
    for part, part_range in ranges.items():
        if part_values.get(part) != part_range.values:
            raise BadParameter(f"ranges: the values of {part} must be those that its edges make")


def size_of(mechanism: str, values: Sequence[str]) -> dict[str, Any]:
    """Returns the mechanism's parameters that follow from the number of values."""
    if REGISTRY[mechanism].FAMILY == "pairs":
        return {"sizes": tuple(map(len, parts_of(values).values()))}
    if REGISTRY[mechanism].FAMILY == "vector":
        return {"dimensions": len(values)}
    return {"categories": len(values)}


def code_of(
    mechanism: "PairedParts",
    values: Sequence[str],
    value: Any,
    ranges: Mapping[str, PartRange],
) -> int:
    """Returns the mechanism's code for values of all parts, as {"theme": "dark", "age": 41}.

    Raises ValueOutOfDomain if a part is unknown, missing, or has an unlisted value; the message
    contains names of the catalog, never the reported value.
    """
    parts = parts_of(values)
    want = f'give each of {", ".join(parts)} one of its values, as {{"{next(iter(parts))}": ...}}'
    if not isinstance(value, Mapping):
        raise ValueOutOfDomain(f"the value is not a mapping of parts; {want}")
    if missing := [part for part in parts if part not in value]:
        raise ValueOutOfDomain(f"part {', '.join(missing)} is missing; {want}")
    if len(value) > len(parts):
        raise ValueOutOfDomain(f"the value has a part that the metric does not have; {want}")
    places = []
    for part, names in parts.items():
        part_value = as_python(value[part], names)
        text = str(part_value).lower() if isinstance(part_value, bool) else part_value
        if part in ranges and not (isinstance(text, str) and text in names):
            try:
                places.append(ranges[part].place(part_value))
            except ValueOutOfDomain as error:
                raise ValueOutOfDomain(f"part {part}: {error}") from None
            continue
        if not (isinstance(text, str) and text in names):
            raise ValueOutOfDomain(f"part {part} is not one of its {len(names)} values; {want}")
        places.append(names.index(text))
    return mechanism.value_of(places)


def name_of(mechanism: "PairedParts", values: Sequence[str], code: int) -> str:
    """Returns the readable name of a code, as "theme=dark, country=de"."""
    places = zip(parts_of(values).items(), mechanism.places_of(code), strict=True)
    return ", ".join(f"{part}={names[place]}" for (part, names), place in places)
