"""Kinds of values that apps have: booleans, counts, durations, sizes; and ranges of numbers.

Each becomes what mechanisms know: listed values, of which a range of numbers is one, or a number
between two. So totals, answers and promises are those of listed values and of numbers.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

from hubbub.catalog.values.vectors import VECTOR
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.rules import is_whole
from hubbub.mechanisms import is_number

NUMERIC: Final = ("count", "number", "duration", "size")
KINDS: Final = ("boolean", *NUMERIC, "set", VECTOR)
OTHER: Final = "other"
"""What a value counts as that is not listed, where the metric says so."""

BOOLEANS: Final = ("false", "true")
_DURATIONS: Final[Mapping[str, timedelta]] = {
    "us": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_SIZES: Final = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}
# "2G" and "1500 mb" are as plain: a prefix alone is one of bytes, and letters are of any size.
_BYTES_OF: Final = {
    name.lower(): size
    for unit, size in _SIZES.items()
    for name in (unit, unit.removesuffix("B"))
    if name
}
_SIZE: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) *([A-Za-z]{1,3})")
_ALSO: Final = {"duration": ", nor a timedelta", "size": ', nor a text such as "1.5 MiB"'}
_UNITS: Final[Mapping[str, Sequence[str]]] = {"duration": [*_DURATIONS], "size": [*_SIZES]}


def labels(kind: str, edges: Sequence[float], unit: str, *, clamps: bool) -> tuple[str, ...]:
    """What the parts between edges are called, in order; an open end says that it is one."""
    after = f" {unit}" if unit else ""
    edges = [edge + 0.0 for edge in edges]  # no negative zero, of which JavaScript shows no sign

    def called(low: float, high: float, last: float) -> str:
        if kind == "count" and high - 1 == low and high != last:
            return f"{low:.10g}{after}"
        top = high - 1 if kind == "count" and high != last else high
        return f"{low:.10g} to {top:.10g}{after}"

    texts = [called(low, high, edges[-1]) for low, high in pairwise(edges)]
    if clamps:
        # Nothing that is counted, lasts or is stored is below nothing: that end is not open.
        if kind == "number" or edges[0] > 0:
            texts[0] = f"below {edges[1]:.10g}{after}"
        texts[-1] = f"{edges[-2]:.10g}{after} or more"
    return tuple(texts)


def check_kind(metric: Any, of: str) -> None:
    """Raises BadParameter where kind, edges, unit and values say different things.

    of: what the metric's mechanism takes: "categories", "numbers", "strings" or "vectors".
    """
    kind, edges, values = metric.kind, metric.edges, metric.values
    if kind == "boolean" and sorted(values or ()) != [*BOOLEANS]:
        raise BadParameter("kind: a boolean is true or false, and listed so")
    if edges:
        if kind not in NUMERIC:
            raise BadParameter('edges are of a number; write kind = "number", or another')
        parts = labels(kind, edges, metric.unit, clamps=metric.clamps)
        if values not in (parts, (*parts, *_escape(metric))):
            raise BadParameter("edges: the values are others than the parts between them")
        if kind == "count" and any(edge != int(edge) for edge in edges):
            raise BadParameter("edges: of a count they must be whole numbers")
    elif kind in NUMERIC and of != "numbers":
        raise BadParameter(
            f"kind: a {kind} has low and high, or edges if its mechanism is over listed values"
        )
    if kind in _UNITS and metric.unit not in _UNITS[kind]:
        raise BadParameter(f"unit: of a {kind} it must be one of {', '.join(_UNITS[kind])}")
    if metric.outside and not (edges or of == "numbers"):
        raise BadParameter("outside: is of numbers; leave it out")
    if metric.other and (kind not in ("", "set") or values is None or OTHER not in values):
        raise BadParameter("other: is of listed values, where one is called other; leave it out")


def _escape(metric: Any) -> tuple[str, ...]:
    """What stands behind the parts of a range: that there is no number, if that is its default."""
    default = getattr(metric, "default", None)  # a part of answers has none of its own
    return (default,) if isinstance(default, str) else ()


def plain_number(kind: str, unit: str, value: Any) -> float | int:
    """The number, in the metric's unit. Raises ValueOutOfDomain for what is none of this kind."""
    if kind == "duration" and isinstance(value, timedelta):
        return value / _DURATIONS[unit]
    if kind == "size" and isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match and (size := _BYTES_OF.get(match[2].lower())):
            return float(match[1]) * size / _SIZES[unit]
    if kind == "count" and isinstance(value, float) and value.is_integer():
        value = int(value)  # what a column with a gap makes of its counts
    if kind == "count" and not is_whole(value):
        raise ValueOutOfDomain("value is not a whole number")
    if not is_number(value):
        also = _ALSO.get(kind, "")
        raise ValueOutOfDomain(f"value is not a number{also}")
    return value  # type: ignore[no-any-return]


def part_of(edges: Sequence[float], number: float, *, clamps: bool) -> int:
    """Which part between edges a number is in; the last edge is of the last part."""
    if not clamps and not edges[0] <= number <= edges[-1]:
        raise ValueOutOfDomain(f"value is not a number in [{edges[0]:g}, {edges[-1]:g}]")
    return min(max(bisect_right(edges, number) - 1, 0), len(edges) - 2)
