"""Tables of metrics by the kind of their values: booleans, ranges, sets, vectors and parts."""

from collections.abc import Mapping
from typing import Any, Final

from hubbub.authoring.table_reader import Complain
from hubbub.catalog.values.part_ranges import RANGE, PartRange
from hubbub.catalog.values.value_kinds import BOOLEANS, NUMERIC, labels
from hubbub.catalog.values.vectors import COORDINATES, VECTOR
from hubbub.fields.kinds import edges_of


def spelled(table: dict[str, Any], wrong: Complain) -> dict[str, Any]:
    """A metric's table as mechanisms have it: with the values or the domain that its kind means."""
    kind = table.get("kind")
    table = table if kind == VECTOR else without_coordinates(table, wrong)
    if kind in ("set", VECTOR):
        return (as_set if kind == "set" else as_vector)(table, wrong)
    if kind is None:
        if "edges" in table:
            wrong("edges", 'are of a number; write kind = "number" beside them, or another')
            return {**table, "values": table.get("values", [*BOOLEANS])}
        return table
    for name in ("values", "values_file", "domain"):
        if name in table:
            wrong(name, "follows from the kind; leave it out, or the kind")
    plain = {n: value for n, value in table.items() if n not in {"values", "values_file", "domain"}}
    edges = edges_of(table["edges"]) if "edges" in table else ()
    if kind in NUMERIC and "edges" not in table:
        return {**plain, "domain": "number"}
    if kind not in NUMERIC or not edges:
        # What is wrong with either is told with all other fields.
        return {**plain, "values": [*BOOLEANS]}
    if kind == "count" and isinstance(table["edges"], dict):
        edges = tuple(dict.fromkeys(float(round(edge)) for edge in edges))
        plain["edges"] = [*edges]
    clamps = table.get("outside", "clamp") == "clamp"
    return {**plain, "values": [*labels(kind, edges, str(table.get("unit", "")), clamps=clamps)]}


def as_set(table: dict[str, Any], wrong: Complain) -> dict[str, Any]:
    """A table of kind "set" without what is not of one."""
    for name in ("domain", "parts", "edges", "outside"):
        if name in table:
            wrong(name, "is not of a set; write its values, and leave this out")
    return {
        n: value for n, value in table.items() if n not in ("domain", "parts", "edges", "outside")
    }


_NOT_OF_ONE: Final = (
    "values",
    "values_file",
    "domain",
    "parts",
    "edges",
    "outside",
    "default",
    "other",
    "release",
)


def as_vector(table: dict[str, Any], wrong: Complain) -> dict[str, Any]:
    """A table of kind "vector" with its coordinates as what is listed."""
    for name in _NOT_OF_ONE:
        if name in table:
            wrong(name, "is not of a vector, which has coordinates alone; leave this out")
    plain = {
        name: value for name, value in table.items() if name not in {*_NOT_OF_ONE, "coordinates"}
    }
    coordinates = table.get("coordinates")
    if coordinates is None:
        wrong("coordinates", f"must be {COORDINATES.kind.words()}; add it")
    elif problem := COORDINATES.kind.problem(coordinates):
        wrong("coordinates", problem)
    else:
        return {**plain, "values": [*COORDINATES.kind.read(coordinates)]}
    return {**plain, "values": ["1", "2"]}


def without_coordinates(table: dict[str, Any], wrong: Complain) -> dict[str, Any]:
    """A table of any other kind, which has none."""
    if "coordinates" not in table:
        return table
    wrong("coordinates", 'are of a vector; write kind = "vector" beside them')
    return {name: value for name, value in table.items() if name != "coordinates"}


def ranges_of(table: Any) -> dict[str, PartRange]:
    """Of parts as metrics.toml has them, those that are ranges of a number."""
    if not isinstance(table, Mapping):
        return {}
    return {part: RANGE.read(own) for part, own in table.items() if isinstance(own, Mapping)}
