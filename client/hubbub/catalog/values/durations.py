"""Durations: a length of time, as a number of a unit or as a timedelta."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Final

from hubbub.catalog.values.numbers import Number

_UNITS: Final[Mapping[str, timedelta]] = {
    "us": timedelta(microseconds=1),
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}


class Duration(Number):
    """A length of time."""

    NAME: ClassVar[str] = "duration"
    ALSO: ClassVar[str] = ", nor a timedelta"
    SIGNED: ClassVar[bool] = False
    UNITS: ClassVar[Sequence[str]] = tuple(_UNITS)
    MEASURED: ClassVar[bool] = True
    PYTHON: ClassVar[str] = "Timedelta | float"

    def number(self, unit: str, value: Any) -> float | int:
        """Returns a timedelta in the metric's unit, or the number itself."""
        if isinstance(value, timedelta):
            return value / _UNITS[unit]
        return super().number(unit, value)
