"""Numbers between two limits, or in ranges between edges."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from hubbub.catalog.values.booleans import Boolean
from hubbub.catalog.values.value_kind import BOOLEANS, Complain, ValueKind
from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.errors.grammar import did_you_mean
from hubbub.fields.kinds import edges_of
from hubbub.mechanisms import is_number


class Number(ValueKind):
    """A number of any unit.

    NAME: name of the kind in messages. ALSO: other types that report() accepts. SIGNED: whether
    numbers below 0 exist, so that the first range may be open.
    """

    NAME: ClassVar[str] = "number"
    ALSO: ClassVar[str] = ""
    SIGNED: ClassVar[bool] = True
    NUMERIC: ClassVar[bool] = True
    TAKES_OTHER: ClassVar[bool] = False
    NOT_ITS: ClassVar[Mapping[str, str]] = Boolean.NOT_ITS
    PYTHON: ClassVar[str] = "float"
    TYPESCRIPT: ClassVar[str] = "number"

    def number(self, unit: str, value: Any) -> float | int:  # noqa: ARG002 of those with a unit
        """Returns the number in the metric's unit. Raises ValueOutOfDomain if it is no number."""
        if not is_number(value):
            raise ValueOutOfDomain(f"value is not a number{self.ALSO}")
        return value  # type: ignore[no-any-return]

    def edges(self, written: Any) -> tuple[float, ...]:
        """Returns the edges of a table, with growing edges computed; none if they are invalid."""
        return edges_of(written)

    def label(self, low: float, high: float, last: float) -> str:  # noqa: ARG002 of counts
        """Returns the name of the range from `low` to `high`; `last` is the last of all edges."""
        return f"{low:.10g} to {high:.10g}"

    def labels(self, edges: Sequence[float], unit: str, *, clamps: bool) -> tuple[str, ...]:
        """Returns the names of the ranges between edges, in order, with open ends marked."""
        after = f" {unit}" if unit else ""
        edges = [edge + 0.0 for edge in edges]  # no negative zero, which JavaScript prints as 0
        texts = [f"{self.label(low, high, edges[-1])}{after}" for low, high in pairwise(edges)]
        if clamps:
            if self.SIGNED or edges[0] > 0:
                texts[0] = f"below {edges[1]:.10g}{after}"
            texts[-1] = f"{edges[-2]:.10g}{after} or more"
        return tuple(texts)

    def place(self, owner: Any, value: Any) -> int:
        """Returns the index of a number's range, from 0; `owner` has unit and edges.

        Raises:
            ValueOutOfDomain: not a number of this kind, or outside all ranges.
        """
        return part_of(owner.edges, self.number(owner.unit, value), clamps=owner.clamps)

    def spelled(self, table: dict[str, Any], wrong: Complain) -> dict[str, Any]:  # noqa: ARG002 no wish
        """Returns the table with the limits of the numbers, or with the ranges' names as values."""
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
        """Raises BadParameter unless the values are the ranges, perhaps followed by the default."""
        if metric.edges:
            default = getattr(metric, "default", None)  # a part of an answer has no default
            escape = (default,) if isinstance(default, str) else ()
            parts = self.labels(metric.edges, metric.unit, clamps=metric.clamps)
            if metric.values not in (parts, (*parts, *escape)):
                raise BadParameter("edges: the values differ from the names of the ranges")
        elif domain != "numbers":
            raise BadParameter(
                f"kind: a {self.NAME} has low and high, or edges if its mechanism is over listed "
                "values"
            )
        if self.UNITS and metric.unit not in self.UNITS:
            meant = did_you_mean(metric.unit, self.UNITS)
            raise BadParameter(
                f"unit: of a {self.NAME} it must be one of {', '.join(self.UNITS)}{meant}"
            )
        super().check(metric, domain)

    def code(self, metric: Any, places: Mapping[str, int], value: Any) -> Any:
        """Returns the number, clamped if the metric clamps; or the index of its range or text."""
        if metric.values is None:
            return super().code(metric, places, self.number(metric.unit, value))
        text = str(value).lower() if isinstance(value, bool) else value
        code = places.get(text) if isinstance(text, str) else None
        return self.place(metric, value) if code is None else code


def part_of(edges: Sequence[float], number: float, *, clamps: bool) -> int:
    """Returns the index of the range of `number`; the last edge belongs to the last range."""
    if not clamps and not edges[0] <= number <= edges[-1]:
        raise ValueOutOfDomain(f"value is not a number in [{edges[0]:g}, {edges[-1]:g}]")
    return min(max(bisect_right(edges, number) - 1, 0), len(edges) - 2)
