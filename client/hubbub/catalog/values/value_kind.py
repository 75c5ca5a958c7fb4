"""The contract of a kind of value: everything that depends on the type of reported values.

Each kind maps to a domain of mechanisms: listed values (also for ranges of numbers), a number
between two limits, a set, or a vector. Totals, answers and promises depend on the mechanism alone.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, ClassVar, Final

from hubbub.errors import BadParameter, NotListed, ValueOutOfDomain
from hubbub.mechanisms import is_number

OTHER: Final = "other"
"""What a value counts as that is not listed, where the metric says so."""
BOOLEANS: Final = ("false", "true")
Complain = Callable[[str, str], None]
"""Takes a field's name and what is wrong with it, with the remedy."""


class ValueKind:
    """A listed value, a string or a number, as the mechanism takes it; base of the named kinds.

    Each named kind overrides what differs in its module; value_kind_registry.py lists all kinds.

    FAMILY: the mechanism family that only this kind uses; None if there are several.
    NUMERIC: whether it is a number. LEAST: smallest number that exists, so that a range which
    begins there is not open. UNITS: permitted units; empty for any.
    ONE_TEXT: whether a listed value is reported as its text. TAKES_OTHER: whether a value may
    stand for all unlisted ones. SETS: subject of the totals; kinds with an equal one can be joined.
    NAME_OF_VALUES: what messages call its values. CROWD: the mechanism of its crowds; "" for any.
    NOT_ITS: fields that it must not have, with the reason. BESIDE: fields that `kind` may join.
    COLUMN: content of a column in a file of values. MEASURED: whether its values have a unit.
    COUNTS: whether a device reports when the epoch is over, by the counts of its events.
    VALUELESS: whether the app reports no value.
    PYTHON, TYPESCRIPT: type of a reported value, given the type of a listed one.
    """

    FAMILY: ClassVar[str | None] = None
    NUMERIC: ClassVar[bool] = False
    LEAST: ClassVar[float] = -inf
    UNITS: ClassVar[Sequence[str]] = ()
    ONE_TEXT: ClassVar[bool] = True
    TAKES_OTHER: ClassVar[bool] = True
    SETS: ClassVar[str] = "values"
    NAME_OF_VALUES: ClassVar[str] = "values"
    CROWD: ClassVar[str] = ""
    NOT_ITS: ClassVar[Mapping[str, str]] = {
        "coordinates": 'are only for a vector; add kind = "vector"',
        "steps": 'are only for a funnel; add kind = "funnel"',
        "weeks": 'are only for a retention; add kind = "retention"',
        "public": "is what the app passes to the client; write breakdown = { os = [...] }",
        "rate": "is a kind of its own; leave kind and its fields out",
    }
    BESIDE: ClassVar[str] = ""
    COLUMN: ClassVar[str] = "a part"
    MEASURED: ClassVar[bool] = False
    COUNTS: ClassVar[bool] = False
    VALUELESS: ClassVar[bool] = False
    PYTHON: ClassVar[str] = "{}"
    TYPESCRIPT: ClassVar[str] = "{0}"

    def spelled(self, table: dict[str, Any], complain: Complain) -> dict[str, Any]:
        """Returns a metric's table with the values or the domain that the kind implies."""
        if "edges" in table:
            complain("edges", 'are only for a number; add kind = "number", or another numeric kind')
            return {**table, "values": table.get("values", [*BOOLEANS])}
        return table

    def sole_choice(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the table for `mechanism = "auto"`; empty if several mechanisms can answer."""
        return {}

    def check(self, metric: Any, domain: str) -> None:
        """Raises BadParameter if kind, edges, unit and values contradict each other.

        `domain` is the mechanism's: "categories", "numbers", "strings" or "vectors".
        """
        if getattr(metric, "rate", None) and "rate" in self.NOT_ITS:  # a part has none
            raise BadParameter(f"rate: {self.NOT_ITS['rate']}")
        if metric.edges and not self.NUMERIC:
            raise BadParameter(
                'edges are only for a number; write kind = "number", or another numeric kind'
            )
        if metric.outside and not (metric.edges or domain == "numbers"):
            raise BadParameter("outside: is only for numbers; leave it out")
        lists_other = self.TAKES_OTHER and OTHER in (metric.values or ())
        if metric.other and not lists_other:
            raise BadParameter('other: is for listed values without a value "other"; leave it out')

    def code(self, metric: Any, places: Mapping[str, int], value: Any) -> Any:
        """Returns a value's code; `places`: of listed values. Raises ValueOutOfDomain."""
        if metric.values is None:
            if metric.clamps and is_number(value):
                value = min(max(value, metric.parameters["low"]), metric.parameters["high"])
            metric.randomizer.check(value)
            return value
        text = str(value).lower() if isinstance(value, bool) else value
        code = places.get(text) if isinstance(text, str) else None
        if code is None and metric.other:
            if isinstance(value, str):
                return places[OTHER]
            raise ValueOutOfDomain("the value is not a string")  # any string has a place
        if code is None:
            raise not_listed(metric.values, value)
        return code

    def code_name(self, values: Sequence[str], code: Any) -> str:
        """Returns the readable name of a mechanism's code."""
        return str(values[code])

    def meanings(self, values: Sequence[str], randomizer: Any) -> dict[str, Any]:
        """Returns the possible values behind a payload: readable name to the mechanism's code."""
        return {name: index for index, name in enumerate(values)}

    def example(self, metric: Any, chance: Any) -> Any:
        """Returns a value that an app may report, drawn by the `random.Random` in `chance`."""
        if metric.values is not None:
            return chance.choice(metric.values)
        if "low" in metric.parameters:
            return chance.uniform(metric.parameters["low"], metric.parameters["high"])
        return f"load {chance.randrange(1000)}"

    def figures(self, metric: Any) -> Sequence[str]:
        """Returns the names of its figures that are shares or rates, as answers have them."""
        return ()

    def columns(self, metric: Any) -> Sequence[str]:
        """Returns the columns of a file that hold one value together; none for a single column."""
        return [*metric.parts]

    def reader(self, metric: Any) -> Callable[[Any], Any]:
        """Returns the function from a file's cell, or its cells by column, to a reported value."""
        return lambda cell: cell


def not_listed(values: Sequence[str], value: Any) -> NotListed:
    """Returns the error for a value that is none of these, or is missing; never shows it."""
    if value is None:
        return NotListed(f"no value was given; it has {len(values)} values")
    return NotListed(f"the value is not one of its {len(values)} values")


class Boolean(ValueKind):
    """True or false."""

    TAKES_OTHER: ClassVar[bool] = False
    NAME_OF_VALUES: ClassVar[str] = "booleans"
    NOT_ITS: ClassVar[Mapping[str, str]] = {
        **ValueKind.NOT_ITS,
        **dict.fromkeys(
            ("values", "values_file", "domain"),
            "follows from the kind; leave it out, or the kind",
        ),
    }

    def spelled(self, table: dict[str, Any], complain: Complain) -> dict[str, Any]:
        return {**table, "values": [*BOOLEANS]}

    def check(self, metric: Any, domain: str) -> None:
        if sorted(metric.values or ()) != [*BOOLEANS]:
            raise BadParameter('kind: the values of a boolean must be "true" and "false"')
        super().check(metric, domain)
