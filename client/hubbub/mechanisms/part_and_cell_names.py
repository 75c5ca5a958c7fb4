"""Parts of an answer as listed values PART=VALUE, and the tables of every two or three parts."""

from collections.abc import Mapping, Sequence
from itertools import combinations, product

from hubbub.errors import BadParameter

MAX_PARTS = 8


def listed_parts(parts: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Every value of every part, as PART=VALUE."""
    return tuple(f"{part}={value}" for part, values in parts.items() for value in values)


def parts_of(values: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The parts of values that were listed as PART=VALUE, and their values. Raises BadParameter."""
    parts: dict[str, tuple[str, ...]] = {}
    for name in values:
        part, equals, value = name.partition("=")
        if not (part and equals and value):
            raise BadParameter("values of parts are PART=VALUE; write parts = { PART = [...] }")
        parts[part] = (*parts.get(part, ()), value)
    return parts


def tables_of(parts: int, ways: int = 2) -> tuple[tuple[int, ...], ...]:
    """All combinations of `ways` parts, by their indexes, ascending."""
    return tuple(combinations(range(parts), ways))


def cell_names(values: Sequence[str], ways: int = 2) -> tuple[str, ...]:
    """The names of cells in answers, table by table, row by row, as "theme=dark, country=de"."""
    part_lists = [
        listed_parts({part: part_values}) for part, part_values in parts_of(values).items()
    ]
    return tuple(
        ", ".join(cell) for chosen in combinations(part_lists, ways) for cell in product(*chosen)
    )
