"""Counts: whole numbers from 0 on."""

from collections.abc import Mapping
from typing import Any, ClassVar

from hubbub.catalog.values.numbers import Number
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.rules import is_whole


class Count(Number):
    """The number of times or things, 0 or more."""

    NAME: ClassVar[str] = "count"
    SIGNED: ClassVar[bool] = False
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
        """Raises BadParameter unless all edges are whole."""
        if any(edge != int(edge) for edge in metric.edges):
            raise BadParameter("edges: of a count they must be whole numbers")
        super().check(metric, domain)
