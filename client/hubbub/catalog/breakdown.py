"""Breakdown: answers by a public field of devices, such as the OS; each value has its own stream.

A device names its cell in the clear, as theme@os=linux. One whose OS is not listed reports under
the metric's own name. `theme@os=linux+macos` means the cells of both, and `theme` all there are.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import product
from math import prod
from typing import Any, Final

from hubbub.fields.field import entry
from hubbub.fields.kinds import Kind, Schema
from hubbub.fields.rules import as_tuple, is_text

Rules = Mapping[str, Mapping[str, tuple[str, ...]]]
"""For each public field its values, each with the patterns of what devices say that count as it."""

UNLISTED: Final = "unlisted"
"""What stands for the devices that say none of the values: theme@unlisted."""

# Stream names stay below the 256 characters that a shuffler takes; and each cell needs a crowd.
_MAX_FIELDS, _MAX_CELLS = 3, 100
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,23}"
FIELD: Final = r"[a-z][a-z0-9_]{0,23}"
"""The name of a public field."""
_LONGEST: Final = 100


_WORDS: Final = (
    f"a table of 1 to {_MAX_FIELDS} public fields, each with a list of its values, or "
    "with a table from each value to the patterns that count as it, as { os = "
    '["linux", "macos"], version = { "2" = "2.*", old = "*" } }'
)


def _problem(table: Any) -> str:
    if not (isinstance(table, Mapping) and 1 <= len(table) <= _MAX_FIELDS):
        return f"must be {_WORDS}"
    for field, values in table.items():
        if not (isinstance(field, str) and re.fullmatch(FIELD, field)):
            return f"names a public field that does not match {FIELD}; rename it"
        if reason := _problem_with(values):
            return f"{field}: {reason}"
    cells = prod(map(len, table.values()))
    if cells > _MAX_CELLS:
        return (
            f"makes {cells} cells, above {_MAX_CELLS}, and each needs its own crowd; "
            "count several values as one"
        )
    return ""


def _problem_with(values: Any) -> str:
    """What is wrong with the values of one field; "" if nothing."""
    if not (isinstance(values, list | tuple | Mapping) and values):
        return (
            "must be a list of values, or a table from each value to the patterns that count as it"
        )
    for name in values:
        if not (isinstance(name, str) and re.fullmatch(_NAME, name)):
            return f"a value does not match {_NAME}; write a short name of it"
    if len(set(values)) != len(values):
        return "lists a value twice; remove one"
    patterns = values.values() if isinstance(values, Mapping) else ()
    for pattern in [item for group in patterns for item in _value_list(group)] or ["*"]:
        if not (is_text(pattern) and len(pattern) <= _LONGEST):
            return (
                f"a pattern must be a text of up to {_LONGEST} characters; write one, such as 2.*"
            )
    if not all(_value_list(pattern) for pattern in patterns):
        return 'one of its values has no pattern; give it one, such as "2.*"'
    return ""


def _value_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _values(values: Any) -> dict[str, tuple[str, ...]]:
    if isinstance(values, Mapping):
        return {name: tuple(_value_list(patterns)) for name, patterns in values.items()}
    return {name: (name,) for name in values}


def _load_breakdown(table: Any) -> dict[str, dict[str, tuple[str, ...]]]:
    rules = {
        field: {name: as_tuple(patterns) for name, patterns in map(as_tuple, as_tuple(values))}
        for field, values in map(as_tuple, as_tuple(table))
    }
    if not rules or [len(names) for names in rules.values()] != [
        len(values) for _, values in table
    ]:
        raise ValueError("a breakdown has no field, or a repeated value")
    return rules


def _schema() -> Schema:
    name = {"type": "string", "pattern": f"^{_NAME}$"}
    text = {"type": "string", "minLength": 1, "maxLength": _LONGEST}
    patterns: Schema = {"anyOf": [text, {"type": "array", "minItems": 1, "items": text}]}
    table: Schema = {"type": "object", "minProperties": 1, "propertyNames": name}
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": _MAX_FIELDS,
        "propertyNames": {"pattern": f"^{FIELD}$"},
        "additionalProperties": {
            "anyOf": [
                {"type": "array", "minItems": 1, "uniqueItems": True, "items": name},
                {**table, "additionalProperties": patterns},
            ]
        },
    }


BREAKDOWN: Final = entry(
    Kind(
        words=lambda: _WORDS,
        problem=_problem,
        schema=_schema,
        read=lambda table: {field: _values(entry) for field, entry in table.items()},
        # Lists, since the order decides which of several patterns counts.
        dump=lambda rules: [
            [field, [[name, list(patterns)] for name, patterns in entry.items()]]
            for field, entry in rules.items()
        ],
        load=_load_breakdown,
    ),
    "Public fields of a device, such as its OS or the app's version, that split answers: each "
    "value has a separate stream and crowd. Shuffler and aggregator see them.",
    '{ os = ["linux", "macos"], version = { "2" = "2.*", older = "*" } }',
    label="divided openly by",
)


def cell_of(name: str, rules: Rules, field_values: Mapping[str, str]) -> str:
    """The stream of a device with these public fields; the metric's own if a value is unlisted."""
    parts = []
    for field, values in rules.items():
        text = field_values.get(field)
        labels = (
            label
            for label, patterns in values.items()
            if text is not None and any(fnmatchcase(text, pattern) for pattern in patterns)
        )
        if (label := next(labels, None)) is None:
            return name
        parts.append(f"{field}={label}")
    base, slash, tier = name.partition("/")
    return f"{base}@{','.join(parts)}{slash}{tier}" if parts else name


def conditions_in(name: str) -> dict[str, list[str]]:
    """The public values in a stream's name: {"os": ["linux"]} for theme@os=linux."""
    cell_text = name.partition("/")[0].partition("@")[2]
    conditions = (
        [part.partition("=") for part in cell_text.split(",")]
        if cell_text not in ("", UNLISTED)
        else []
    )
    return {field: values.split("+") for field, _, values in conditions}


def streams_of(name: str, rules: Rules) -> Iterator[str]:
    """Every stream of a metric, or of a part of it, at one tier.

    `name` is "theme", which includes unlisted values, or "theme@os=linux+macos"; each perhaps with
    "/0.5".
    """
    cell, _, tier = name.partition("/")
    base, _, cell_text = cell.partition("@")
    chosen_values = conditions_in(name)
    conditions = [[f"{f}={v}" for v in chosen_values.get(f, values)] for f, values in rules.items()]
    cells = [f"{base}@{','.join(cell)}" for cell in product(*conditions)] if rules else []
    if cell_text == UNLISTED:
        cells = [base]
    elif not chosen_values:
        cells.insert(0, base)
    yield from (f"{cell}/{tier}" if tier else cell for cell in cells)


def missing_values(before: Rules, after: Rules) -> str:
    """The values missing from a breakdown, whose totals would be lost; "" if there are none."""
    gone = [
        f'"{name}" of {field}'
        for field, values in before.items()
        for name in values
        if name not in after.get(field, {})
    ]
    return ", ".join(gone)
