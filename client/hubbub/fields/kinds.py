"""Kinds of fields: permitted values, and their forms in metrics.toml, bundle and schema."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from itertools import pairwise
from math import inf, isinf
from typing import Any, Final

from hubbub.errors.message_words import did_you_mean
from hubbub.fields.frozen import frozen
from hubbub.fields.rules import (
    ADDRESS,
    LOG_NAME,
    MAX_TEXT,
    Interval,
    as_table,
    as_tuple,
    has_variance,
    int_if_whole,
    is_address,
    is_log_name,
    is_number,
    is_text,
    is_whole,
    is_writable,
)

_DAYS: Final = r"[1-9][0-9]{0,4}[dw]"

# At least two parts, and at most as many as a person can read.
_MIN_EDGES: Final = 3
MAX_EDGES: Final = 257

Schema = dict[str, Any]

MAX_VALUE_BYTES: Final = 1024
_TEXTS: Final[Schema] = {
    "type": "array",
    "uniqueItems": True,
    "items": {"type": "string", "minLength": 1, "maxLength": MAX_VALUE_BYTES},
}
# Shares are written with a few digits; three thirds are one.
_ROUNDING: Final = 1e-9


def _identity(value: Any) -> Any:
    return value


@frozen(kw_only=True)
class Kind:
    """The permitted values of a field.

    Args:
        words: the permitted values in words, as "a whole number in [1, 9]".
        problem: why a value is refused, to follow the field's name, as "must be ..."; "" if not.
        schema: the same in JSON Schema, as far as possible.
        read: converts a permitted written value to the field's value.
        dump: converts it to the JSON of a bundle.
        load: converts it back, before `problem` is checked.
        flat: `dump` returns several fields by name, and `load` takes them.
    """

    words: Callable[[], str]
    problem: Callable[[Any], str]
    schema: Callable[[], Schema]
    read: Callable[[Any], Any] = _identity
    dump: Callable[[Any], Any] = _identity
    load: Callable[[Any], Any] = _identity
    flat: bool = False


def simple(
    words: str, holds: Callable[[Any], bool], schema: Schema, *, rule: str = "", **ways: Any
) -> Kind:
    """A kind whose values are those for which `holds` is true; `ways` as in Kind.

    `rule` follows "must" in errors; "" for "be" and the words.
    """
    return Kind(
        words=lambda: words,
        problem=lambda value: "" if holds(value) else f"must {rule or f'be {words}'}",
        schema=lambda: schema,
        **ways,
    )


def deferred(kind: Callable[[], Kind]) -> Kind:
    """A kind that is made when it is used: a device does not import what its bundle lacks."""
    return Kind(
        words=lambda: kind().words(),
        problem=lambda value: kind().problem(value),
        schema=lambda: kind().schema(),
        read=lambda value: kind().read(value),
        dump=lambda value: kind().dump(value),
        load=lambda value: kind().load(value),
    )


def text(which: str) -> Kind:
    """A non-empty text, on one line: tables, pages and generated code have a line for it."""
    schema = {"type": "string", "pattern": r"\S", "maxLength": MAX_TEXT}
    rule = f"be a text of at most {MAX_TEXT:,} characters that {which}"
    return simple(
        f"a text that {which}", is_text, schema, rule=rule, read=lambda text: " ".join(text.split())
    )


def day(which: str) -> Kind:
    """A date, except the last one, which has no following day."""
    return simple(
        f"a date, {which}",
        # A datetime is a date too, but not a day.
        lambda value: type(value) is date and value < date.max,
        {"type": "string", "format": "date", "pattern": r"^\d{4}-\d{2}-\d{2}$"},
        dump=date.isoformat,
        load=_day,
    )


def address() -> Kind:
    """HOST:PORT, or https://HOST:PORT for HTTP."""
    schema = {"type": "string", "pattern": f"^{ADDRESS.pattern}$"}
    return simple('"HOST:PORT" or "https://HOST:PORT", as the clients dial it', is_address, schema)


def log_name() -> Kind:
    """A log's name: host and path under which its files are served."""
    schema = {"type": "string", "pattern": f"^{LOG_NAME}$"}
    return simple('"HOST/PATH", as the log is served, without https://', is_log_name, schema)


def path(which: str) -> Kind:
    """The path of a file."""
    return simple(
        f"the path of {which}",
        lambda value: isinstance(value, str) and bool(value),
        {"type": "string", "minLength": 1},
    )


def word_kind(names: Callable[[], Iterable[str]]) -> Kind:
    """One of some words, which are evaluated at each use, as a registry may grow."""

    def words() -> str:
        return f"one of {', '.join(names())}"

    return Kind(
        words=words,
        problem=lambda value: (
            ""
            if isinstance(value, str) and value in names()
            else f"must be {words()}{did_you_mean(value, names())}"
        ),
        schema=lambda: {"enum": [*names()]},
    )


def number(what: str = "a number", low: float = -inf, high: float = inf, ends: str = "[]") -> Kind:
    """A number in an interval."""
    return in_interval(Interval(low, high, ends), is_integer=False, what=what, read=float)


def integer(low: int, high: int) -> Kind:
    """A whole number in [low, high]."""
    return in_interval(Interval(low, high), is_integer=True, load=int_if_whole)


def in_interval(interval: Interval, *, is_integer: bool, what: str = "", **ways: Any) -> Kind:
    """A number in an interval; without `ways`, as of Kind, it is kept as it was written."""
    usual, is_right = ("a whole number", is_whole) if is_integer else ("a number", is_number)
    return simple(
        f"{what or usual}{interval}",
        lambda value: is_right(value) and value in interval,
        {"type": "integer" if is_integer else "number", **_bounds(interval)},
        **ways,
    )


def ascending(words: str, rule: str, item: Kind) -> Kind:
    """A strictly ascending list, not empty; `rule` follows "must" in errors."""

    def holds(values: Any) -> bool:
        return (
            isinstance(values, list | tuple)
            and len(values) > 0
            and not any(item.problem(value) for value in values)
            and list(values) == sorted(set(values))
        )

    return simple(
        words,
        holds,
        {"type": "array", "items": item.schema(), "minItems": 1, "uniqueItems": True},
        rule=rule,
        read=lambda values: tuple(item.read(value) for value in values),
        dump=list,
        load=as_tuple,
    )


def _problem_with_edges(value: Any) -> str:
    if edges_of(value):
        return ""
    is_list = isinstance(value, list | tuple) and all(map(is_number, value))
    if is_list and edges_of(ascending := sorted(value)):
        return f"must ascend: write {', '.join(str(int_if_whole(edge)) for edge in ascending)}"
    return f"must be {_EDGES_WORDS}"


def edges_of(value: Any) -> tuple[float, ...]:
    """The edges, with growing ones rounded to three digits; empty if they are invalid."""
    if isinstance(value, Mapping):
        ends: Any = value
        low, high, parts = (ends.get(name) for name in ("from", "to", "parts"))
        if not (
            value.keys() == {"from", "to", "parts"}
            and is_number(low)
            and is_number(high)
            and is_whole(parts)
            and 0 < low < high
            and 1 < parts < MAX_EDGES
        ):
            return ()
        step = (math.log(high) - math.log(low)) / parts
        inner = [float(f"{math.exp(math.log(low) + step * i):.3g}") for i in range(1, parts)]
        value = [low, *inner, high]
    if not (isinstance(value, list | tuple) and all(map(is_number, value))):
        return ()
    ascend = all(low < high and has_variance(low, high) for low, high in pairwise(value))
    fit = _MIN_EDGES <= len(value) <= MAX_EDGES
    return tuple(map(float, value)) if ascend and fit else ()


def names(least: int, most: int) -> Kind:
    """A list of `least` to `most` distinct texts."""
    words = f"a list of {least} to {most:,} texts, none empty and none twice"

    def problem(value: Any) -> str:
        is_list = isinstance(value, list | tuple) and least <= len(value) <= most
        if not (is_list and all(isinstance(text, str) and text for text in value)):
            return f"must be {words}"
        return VALUES.problem(value)

    return Kind(
        words=lambda: words,
        problem=problem,
        schema=lambda: {**_TEXTS, "minItems": least, "maxItems": most},
        read=tuple,
        dump=list,
        load=as_tuple,
    )


def strings() -> Kind:
    """Distinct strings to look for; in metrics.toml also the file that contains them."""
    words = "the path of a text file, one string a line, plain or .gz; or a list of strings"

    def problem(value: Any) -> str:
        if isinstance(value, str) and value:
            return ""
        if isinstance(value, list | tuple) and value and not _are_both_booleans([*value]):
            return _problem_with_values(value)
        return f"must be {words}"

    return Kind(
        words=lambda: words,
        problem=problem,
        schema=lambda: {"anyOf": [{"type": "string", "minLength": 1}, {**_TEXTS, "minItems": 1}]},
        read=tuple,
        dump=list,
        load=as_tuple,
    )


def _problem_with_values(value: Any) -> str:
    if isinstance(value, list) and _are_both_booleans(value):
        return ""
    if not (isinstance(value, list | tuple) and all(isinstance(v, str) and v for v in value)):
        return "must be a list of texts, none empty; or true and false"
    if not all(map(is_writable, value)):
        return "contains half a surrogate pair; write a complete character"
    if any(len(v.encode()) > MAX_VALUE_BYTES for v in value):
        return f"contains a value longer than {MAX_VALUE_BYTES} bytes; shorten it"
    if len(set(value)) != len(value):
        return "lists a value twice; remove one"
    return ""


def _are_both_booleans(values: list[Any]) -> bool:
    return all(isinstance(value, bool) for value in values) and sorted(values) == [False, True]


def _day(text: Any) -> date:
    day = date.fromisoformat(text)
    if day.isoformat() != text:
        raise ValueError("a day is written as 2099-12-31")
    return day


def _bounds(interval: Interval) -> Schema:
    schema: Schema = {}
    if not isinf(interval.low):
        schema["minimum" if interval.ends[0] == "[" else "exclusiveMinimum"] = interval.low
    if not isinf(interval.high):
        schema["maximum" if interval.ends[1] == "]" else "exclusiveMaximum"] = interval.high
    return schema


def shares(of: str) -> Kind:
    """Shares by name, which sum to at most 1."""
    rule = f"give each {of} its share, together 1 at most"
    share = {"type": "number", "exclusiveMinimum": 0, "maximum": 1 + _ROUNDING}
    return simple(
        f"a table that gives each {of} its share, together 1 at most",
        lambda table: (
            isinstance(table, Mapping)
            and bool(table)
            and all(is_text(name) for name in table)
            and all(is_number(share) and share > 0 for share in table.values())
            and sum(table.values()) <= 1 + _ROUNDING
        ),
        {"type": "object", "minProperties": 1, "additionalProperties": share},
        rule=rule,
        read=lambda table: {name: float(share) for name, share in table.items()},
        load=as_table,
    )


FLAG: Final = simple("true or false", lambda value: isinstance(value, bool), {"type": "boolean"})
DAYS: Final = simple(
    'a number of days or weeks, as "400d"',
    lambda value: isinstance(value, str) and re.fullmatch(_DAYS, value) is not None,
    {"type": "string", "pattern": f"^{_DAYS}$"},
)
"""A number of days or weeks, as text."""
VALUES: Final = Kind(
    words=lambda: "a list of texts, none empty and none twice; or of true and false",
    problem=_problem_with_values,
    schema=lambda: {
        "anyOf": [
            {**_TEXTS, "items": {**_TEXTS["items"], "pattern": r"\S"}},
            {**_TEXTS, "items": {"type": "boolean"}, "minItems": 2},
        ]
    },
    read=lambda values: tuple(
        str(value).lower() if isinstance(value, bool) else str(value) for value in values
    ),
    dump=lambda texts: None if texts is None else list(texts),
    load=lambda texts: None if texts is None else as_tuple(texts),
)
"""The values of a metric: distinct texts; or true and false, which become texts."""
NUMBERS_BY_NAME: Final = simple(
    "numbers by name",
    lambda table: (
        isinstance(table, Mapping)
        and all(isinstance(name, str) and is_number(value) for name, value in table.items())
    ),
    {"type": "object", "additionalProperties": {"type": "number"}},
    dump=lambda table: dict(sorted(table.items())),
    load=as_table,
)
TABLES: Final = Kind(
    words=lambda: "tables by name",
    problem=lambda table: "" if isinstance(table, dict) and table else "has no tables",
    schema=lambda: {"type": "object", "minProperties": 1},
)
_ABOVE_ZERO: Final[Schema] = {"type": "number", "exclusiveMinimum": 0}
_EDGES_WORDS: Final = (
    f"a list of {_MIN_EDGES} to {MAX_EDGES} ascending numbers within 1e100; above 0 also a "
    "table of from, to and parts"
)
EDGES: Final = Kind(
    words=lambda: _EDGES_WORDS,
    problem=_problem_with_edges,
    schema=lambda: {
        "anyOf": [
            {
                "type": "array",
                "items": {"type": "number"},
                "minItems": _MIN_EDGES,
                "maxItems": MAX_EDGES,
                "uniqueItems": True,
            },
            {
                "type": "object",
                "properties": {
                    "from": _ABOVE_ZERO,
                    "to": _ABOVE_ZERO,
                    "parts": {"type": "integer", "minimum": 2, "maximum": MAX_EDGES - 1},
                },
                "required": ["from", "to", "parts"],
                "additionalProperties": False,
            },
        ]
    },
    read=edges_of,
    dump=list,
    load=as_tuple,
)
"""Edges of ranges: a list, or a table with ends and number of parts for growing steps."""
