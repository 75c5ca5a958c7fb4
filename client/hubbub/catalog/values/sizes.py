"""Sizes: a number of bytes, as a number of a unit or as a text such as "1.5 MiB"."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from hubbub.catalog.values.numbers import Number

_UNITS: Final = {
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
    for unit, size in _UNITS.items()
    for name in (unit, unit.removesuffix("B"))
    if name
}
_SIZE: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) *([A-Za-z]{1,3})")


class Size(Number):
    """A number of bytes."""

    NAME: ClassVar[str] = "size"
    ALSO: ClassVar[str] = ', nor a text such as "1.5 MiB"'
    SIGNED: ClassVar[bool] = False
    UNITS: ClassVar[Sequence[str]] = tuple(_UNITS)
    MEASURED: ClassVar[bool] = True
    PYTHON: ClassVar[str] = "float | str"

    def number(self, unit: str, value: Any) -> float | int:
        """Returns a text's size in the metric's unit, or the number itself."""
        match = _SIZE.fullmatch(value) if isinstance(value, str) else None
        if match and (size := _BYTES_OF.get(match[2].lower())):
            return float(match[1]) * size / _UNITS[unit]
        return super().number(unit, value)
