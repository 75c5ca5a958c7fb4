"""Sets: a device reports all of the listed values that apply to it."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar

from hubbub.catalog.plain_value import as_python
from hubbub.catalog.values.value_kind import OTHER, Complain, ValueKind
from hubbub.errors import BadParameter, NotListed, ValueOutOfDomain


class ValueSet(ValueKind):
    """Any number of the listed values."""

    FAMILY: ClassVar[str | None] = "sets"
    ONE_TEXT: ClassVar[bool] = False
    SETS: ClassVar[str] = "sets"
    LISTS: ClassVar[str] = "sets"
    NOT_ITS: ClassVar[Mapping[str, str]] = {
        **ValueKind.NOT_ITS,
        **dict.fromkeys(
            ("domain", "parts", "edges", "outside"),
            "is not of a set; write its values, and leave this out",
        ),
    }
    PYTHON: ClassVar[str] = "Collection[{}]"
    TYPESCRIPT: ClassVar[str] = "readonly ({0})[] | ReadonlySet<{0}>"

    def spelled(self, table: dict[str, Any], complain: Complain) -> dict[str, Any]:
        return table

    def sole_choice(self, table: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**table, "mechanism": "privset"}

    def code(self, metric: Any, places: Mapping[str, int], value: Any) -> int:
        """Returns the bit set of a list, tuple or set, by place. Raises ValueOutOfDomain."""
        if not isinstance(value, list | tuple | AbstractSet):
            raise ValueOutOfDomain(
                "the value is not a list or set; pass one, empty if there is nothing"
            )
        code, other = 0, places[OTHER] if metric.other else None
        for member in value:
            python_value = as_python(member, places)
            text = str(python_value).lower() if isinstance(python_value, bool) else python_value
            place = places.get(text) if isinstance(text, str) else None
            if place is None and isinstance(python_value, str):
                place = other
            if place is None:
                raise NotListed(f"a member of the set is not one of its {len(places)} values")
            code |= 1 << place
        return code

    def code_name(self, values: Sequence[str], code: Any) -> str:
        return ", ".join(name for index, name in enumerate(values) if code >> index & 1) or "none"

    def meanings(self, values: Sequence[str], randomizer: Any) -> dict[str, Any]:
        return {"none": 0, **{f"only {name}": 1 << place for place, name in enumerate(values)}}

    def example(self, metric: Any, chance: Any) -> list[str]:
        return [value for value in metric.values if chance.random() < 2 / len(metric.values)]

    def reader(self, metric: Any) -> Callable[[Any], Any]:
        """Returns a reader of values separated by |. Raises BadParameter if a value contains |."""
        if bad_value := next((value for value in metric.values or () if "|" in value), None):
            raise BadParameter(
                f'metric "{metric.name}": its value "{bad_value[:60]}" contains |, which '
                "separates the values of a set in the file, so its sets cannot be read; "
                "rename it for the rehearsal"
            )
        return lambda text: [part for part in text.split("|") if part]
