"""Numbers between two limits, or in ranges between edges: also counts, durations and sizes."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, ClassVar, Final

from hubbub.catalog.values.value_kind import BOOLEANS, Boolean, Complain, ValueKind
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.errors.message_words import did_you_mean
from hubbub.fields.kinds import edges_of
from hubbub.fields.rules import is_whole
from hubbub.mechanisms import is_number

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
# Also accepts "2G" and "1500 mb": a prefix alone means bytes, and case does not matter.
_BYTES_OF: Final = {
    name.lower(): size
    for unit, size in _SIZES.items()
    for name in (unit, unit.removesuffix("B"))
    if name
}
_SIZE: Final = r"([0-9]{1,18}(?:\.[0-9]{1,9})?) *([A-Za-z]{1,3})"


class Number(ValueKind):
    """A number. NAME: of the kind, in messages. ALSO: other types that report() accepts."""

    NAME: ClassVar[str] = "number"
    ALSO: ClassVar[str] = ""
    NUMERIC: ClassVar[bool] = True
    TAKES_OTHER: ClassVar[bool] = False
    NOT_ITS: ClassVar[Mapping[str, str]] = Boolean.NOT_ITS
    PYTHON: ClassVar[str] = "float"
    TYPESCRIPT: ClassVar[str] = "number"

    def number(self, unit: str, value: Any) -> float | int:
        """Returns the number in the metric's unit. Raises ValueOutOfDomain if it is no number."""
        if not is_number(value):
            raise ValueOutOfDomain(f"value is not a number{self.ALSO}; the largest is 1.8e308")
        return value  # type: ignore[no-any-return]

    def edges(self, written: Any) -> tuple[float, ...]:
        """Returns the edges of a table, with growing edges computed; none if they are invalid."""
        return edges_of(written)

    def label(self, low: float, high: float, last: float) -> str:
        """Returns the name of the range from `low` to `high`; `last` is the last of all edges."""
        return f"{low:.10g} to {high:.10g}"

    def labels(self, edges: Sequence[float], unit: str, *, clamps: bool) -> tuple[str, ...]:
        """Returns the names of the ranges between edges, in order, with open ends marked."""
        after = f" {unit}" if unit else ""
        edges = [edge + 0.0 for edge in edges]  # no negative zero, which JavaScript prints as 0
        texts = [f"{self.label(low, high, edges[-1])}{after}" for low, high in pairwise(edges)]
        if clamps:
            if edges[0] > self.LEAST:
                texts[0] = f"below {edges[1]:.10g}{after}"
            texts[-1] = f"{edges[-2]:.10g}{after} or more"
        return tuple(texts)

    def place(self, owner: Any, value: Any) -> int:
        """Returns the index of a range; `owner` has unit and edges. Raises ValueOutOfDomain."""
        return part_of(owner.edges, self.number(owner.unit, value), clamps=owner.clamps)

    def spelled(self, table: dict[str, Any], complain: Complain) -> dict[str, Any]:
        if "edges" not in table:
            return {**table, "domain": "number"}
        edges = self.edges(table["edges"])
        if not edges:  # the check of all fields reports the problem
            return {**table, "values": [*BOOLEANS]}
        if isinstance(table["edges"], Mapping):
            table = {**table, "edges": [*edges]}
        clamps = table.get("outside", "clamp") == "clamp"
        return {
            **table,
            "values": [*self.labels(edges, str(table.get("unit", "")), clamps=clamps)],
        }

    def check(self, metric: Any, domain: str) -> None:
        if metric.edges:
            default = getattr(metric, "default", None)  # a part of an answer has no default
            escape = (default,) if isinstance(default, str) else ()
            parts = self.labels(metric.edges, metric.unit, clamps=metric.clamps)
            if metric.values not in (parts, (*parts, *escape)):
                raise BadParameter("edges: the values must be the names of the ranges")
        elif domain != "numbers":
            raise BadParameter(
                f"kind: a {self.NAME} has low and high, or edges if its mechanism is over listed "
                "values"
            )
        if self.UNITS and metric.unit not in self.UNITS:
            meant = did_you_mean(metric.unit, self.UNITS)
            raise BadParameter(f"unit: for a {self.NAME}, one of {', '.join(self.UNITS)}{meant}")
        super().check(metric, domain)

    def code(self, metric: Any, places: Mapping[str, int], value: Any) -> Any:
        if metric.values is None:
            return super().code(metric, places, self.number(metric.unit, value))
        text = str(value).lower() if isinstance(value, bool) else value
        code = places.get(text) if isinstance(text, str) else None
        return self.place(metric, value) if code is None else code


class Count(Number):
    """The number of times or things, 0 or more."""

    NAME: ClassVar[str] = "count"
    LEAST: ClassVar[float] = 0.0
    PYTHON: ClassVar[str] = "int"

    def number(self, unit: str, value: Any) -> float | int:
        """Returns the whole number; accepts a float such as 2.0, which a column with gaps has."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not is_whole(value):
            raise ValueOutOfDomain("value is not a whole number")
        return super().number(unit, value)

    def edges(self, written: Any) -> tuple[float, ...]:
        """Returns growing edges rounded to whole numbers, without duplicates."""
        edges = super().edges(written)
        if not isinstance(written, Mapping):
            return edges
        return tuple(dict.fromkeys(float(round(edge)) for edge in edges))

    def label(self, low: float, high: float, last: float) -> str:
        """Returns "LOW to HIGH-1", or the count alone if the range holds one."""
        if high == last:
            return super().label(low, high, last)
        return f"{low:.10g}" if high - 1 == low else super().label(low, high - 1, last)

    def check(self, metric: Any, domain: str) -> None:
        if any(edge != int(edge) for edge in metric.edges):
            raise BadParameter("edges: those of a count must be whole numbers")
        super().check(metric, domain)


class Duration(Number):
    """A length of time."""

    NAME: ClassVar[str] = "duration"
    ALSO: ClassVar[str] = ", nor a timedelta"
    LEAST: ClassVar[float] = 0.0
    UNITS: ClassVar[Sequence[str]] = tuple(_DURATIONS)
    MEASURED: ClassVar[bool] = True
    PYTHON: ClassVar[str] = "Timedelta | float"

    def number(self, unit: str, value: Any) -> float | int:
        if isinstance(value, timedelta):
            return value / _DURATIONS[unit]
        return super().number(unit, value)


class Size(Number):
    """A number of bytes."""

    NAME: ClassVar[str] = "size"
    ALSO: ClassVar[str] = ', nor a text such as "1.5 MiB"'
    LEAST: ClassVar[float] = 0.0
    UNITS: ClassVar[Sequence[str]] = tuple(_SIZES)
    MEASURED: ClassVar[bool] = True
    PYTHON: ClassVar[str] = "float | str"
    TYPESCRIPT: ClassVar[str] = "number | string"

    def number(self, unit: str, value: Any) -> float | int:
        match = re.fullmatch(_SIZE, value) if isinstance(value, str) else None
        if match and (size := _BYTES_OF.get(match[2].lower())):
            return float(match[1]) * size / _SIZES[unit]
        return super().number(unit, value)


def part_of(edges: Sequence[float], number: float, *, clamps: bool) -> int:
    """Returns the index of the range of `number`; the last edge belongs to the last range."""
    if not clamps and not edges[0] <= number <= edges[-1]:
        raise ValueOutOfDomain(f"value is not a number in [{edges[0]:g}, {edges[-1]:g}]")
    return min(max(bisect_right(edges, number) - 1, 0), len(edges) - 2)
