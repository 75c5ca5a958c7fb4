"""A kind of value that the product has not: grades, as "B+", which count by their letter.

It shows what a new kind takes: this file, and a line in the table of kinds.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from hubbub.catalog.values.value_kind import Complain, ValueKind
from hubbub.errors import ValueOutOfDomain

LETTERS = ("A", "B", "C")


class Grade(ValueKind):
    """One of three letters, with or without a sign behind it."""

    ONE_TEXT: ClassVar[bool] = False
    TAKES_OTHER: ClassVar[bool] = False
    NAME_OF_VALUES: ClassVar[str] = "grades"
    PYTHON: ClassVar[str] = "str"

    def spelled(self, table: dict[str, Any], _wrong: Complain) -> dict[str, Any]:
        return {**table, "values": [*LETTERS]}

    def code(self, metric: Any, places: Mapping[str, int], value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueOutOfDomain("the value is no grade")
        return super().code(metric, places, value.rstrip("+-"))

    def example(self, _metric: Any, chance: Any) -> str:
        return f"{chance.choice(LETTERS)}-"

    def reader(self, _metric: Any) -> Callable[[Any], Any]:
        return str.strip
