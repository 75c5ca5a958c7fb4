"""The contract of a kind of value: all that is asked of what apps report, whatever mechanism.

Each kind becomes what mechanisms know: listed values, of which a range of numbers is one, a number
between two, a set or a vector. So totals, answers and promises are those of mechanisms.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.mechanisms import is_number

OTHER: Final = "other"
"""What a value counts as that is not listed, where the metric says so."""
BOOLEANS: Final = ("false", "true")
Complain = Callable[[str, str], None]
"""Takes a field's name and what is wrong with it, with the remedy."""


class ValueKind:
    """A value as the mechanism takes it: one of those listed, a string or a number.

    Kinds with a name say in their own file what differs, and have a line in value_kinds.py.

    FAMILY: of the mechanisms that take such values, and no others do; None for several.
    NUMERIC: whether it is a number. UNITS: that it is measured in; empty for any.
    ONE_TEXT: whether each listed value is reported by its text. TAKES_OTHER: whether some value may
    stand for all that are not listed. SETS: what its totals are of; those of one kind join.
    LISTS: what people call its values. CROWD: the mechanism of its crowds; "" for any.
    NOT_ITS: fields that its table has not, with the reason. BESIDE: what its `kind` stands with.
    COLUMN: what a column of a file of values is. MEASURED: whether its values carry a unit.
    COUNTS: whether a device reports once the epoch is over, by how often what happened in it.
    VALUELESS: whether the app reports no value.
    PYTHON, TYPESCRIPT: the type of what an app reports, by that of a listed value.
    """

    FAMILY: ClassVar[str | None] = None
    NUMERIC: ClassVar[bool] = False
    UNITS: ClassVar[Sequence[str]] = ()
    ONE_TEXT: ClassVar[bool] = True
    TAKES_OTHER: ClassVar[bool] = True
    SETS: ClassVar[str] = "values"
    LISTS: ClassVar[str] = "values"
    CROWD: ClassVar[str] = ""
    NOT_ITS: ClassVar[Mapping[str, str]] = {
        "coordinates": 'are of a vector; write kind = "vector" beside them',
        "steps": 'are of a funnel; write kind = "funnel" beside them',
        "weeks": 'are of a retention; write kind = "retention" beside them',
        "rate": "is a kind of its own; leave kind and its fields out",
    }
    BESIDE: ClassVar[str] = ""
    COLUMN: ClassVar[str] = "a part"
    MEASURED: ClassVar[bool] = False
    COUNTS: ClassVar[bool] = False
    VALUELESS: ClassVar[bool] = False
    PYTHON: ClassVar[str] = "{}"
    TYPESCRIPT: ClassVar[str] = "{0}"

    def spelled(self, table: dict[str, Any], wrong: Complain) -> dict[str, Any]:
        """A metric's table with the values or the domain that the kind means."""
        if "edges" in table:
            wrong("edges", 'are of a number; write kind = "number" beside them, or another')
            return {**table, "values": table.get("values", [*BOOLEANS])}
        return table

    def sole_choice(self, table: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002 of others
        """What `mechanism = "auto"` is where one mechanism answers; empty where several do."""
        return {}

    def check(self, metric: Any, domain: str) -> None:
        """Raises BadParameter if kind, edges, unit and values contradict each other.

        `domain` is that of the mechanism: "categories", "numbers", "strings" or "vectors".
        """
        if getattr(metric, "rate", None) and "rate" in self.NOT_ITS:  # a part of answers has none
            raise BadParameter(f"rate: {self.NOT_ITS['rate']}")
        if metric.edges and not self.NUMERIC:
            raise BadParameter('edges are of a number; write kind = "number", or another')
        if metric.outside and not (metric.edges or domain == "numbers"):
            raise BadParameter("outside: is of numbers; leave it out")
        listed = self.TAKES_OTHER and OTHER in (metric.values or ())
        if metric.other and not listed:
            raise BadParameter('other: is for listed values without a value "other"; leave it out')

    def code(self, metric: Any, places: Mapping[str, int], value: Any) -> Any:
        """The mechanism's value for a reported value; `places` are those of the listed values.

        Raises:
            ValueOutOfDomain: not one of the metric's values; the message never shows it.
        """
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
            raise ValueOutOfDomain("the value is not a string")  # any string counts as something
        if code is None:
            raise ValueOutOfDomain(f"the value is not one of its {len(metric.values)} values")
        return code

    def named(self, values: Sequence[str], code: Any) -> str:
        """What people call a value of the mechanism."""
        return str(values[code])

    def meanings(self, values: Sequence[str], randomizer: Any) -> dict[str, Any]:  # noqa: ARG002 of others
        """What a payload may have meant: a name for people, and the mechanism's own value."""
        return {name: index for index, name in enumerate(values)}

    def example(self, metric: Any, chance: Any) -> Any:
        """A value that an app may report, drawn by the `random.Random` in `chance`."""
        if metric.values is not None:
            return chance.choice(metric.values)
        if "low" in metric.parameters:
            return chance.uniform(metric.parameters["low"], metric.parameters["high"])
        return f"load {chance.randrange(1000)}"

    def columns(self, metric: Any) -> Sequence[str]:
        """What a value takes several columns of a file for; none where it takes one."""
        return [*metric.parts]

    def reader(self, metric: Any) -> Callable[[Any], Any]:  # noqa: ARG002 of others
        """From a file's cell, or its cells by column, to what an app reports."""
        return lambda cell: cell
