"""Parameter: the meaning and the range of a number that a mechanism is built from.

Said where the number is a field of its class, `bits: int = field(metadata=whole("...", 1, 4096))`,
and read from there by the class itself, by the catalog and by its reference.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from math import inf, prod
from typing import Any, Final

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen
from hubbub.fields.rules import Interval, is_number

MAX_CELLS: Final = 1 << 22
"""Largest number of cells of any totals: each query reads them all from the store."""
_KEY: Final = "parameter"
# Parameters that follow from epsilon or the listed values, or that nobody writes.
_FOLLOWING: Final = frozenset(
    {"epsilon", "categories", "sizes", "beginnings", "dimensions", "seed"}
)


@frozen(kw_only=True)
class Parameter:
    """One number that a mechanism is built from, beside epsilon and how many values are listed.

    Attributes:
        meaning: a sentence for who writes a catalog; "" if the class has none.
        whole: no fraction.
        example: None if the class has none.
        default: None if it must be given.
    """

    meaning: str
    interval: Interval
    whole: bool
    example: float | None = None
    default: float | None = None


def whole(meaning: str, low: int, high: int, *, example: int) -> Mapping[str, Parameter]:
    """The metadata of a field that holds a whole number in [low, high]."""
    return {
        _KEY: Parameter(meaning=meaning, interval=Interval(low, high), whole=True, example=example)
    }


def number(
    meaning: str, low: float = -inf, high: float = inf, ends: str = "[]", *, example: float
) -> Mapping[str, Parameter]:
    """The metadata of a field that holds any number between two, or any at all."""
    return {
        _KEY: Parameter(
            meaning=meaning, interval=Interval(low, high, ends), whole=False, example=example
        )
    }


def described(mechanism: Any) -> dict[str, Parameter]:
    """The parameters of a mechanism's class, or of one built, by name."""
    parameters = {}
    for field in fields(mechanism):
        if field.init and field.name not in _FOLLOWING:
            says = field.metadata.get(_KEY)
            parameter = says or Parameter(meaning="", interval=Interval(), whole=field.type is int)
            default: Any = field.default if is_number(field.default) else None
            parameters[field.name] = replace(parameter, default=default)
    return parameters


def check_whole(mechanism: Any, *names: str) -> None:
    """Raises BadParameter unless each of these fields holds a whole number in its interval."""
    for name in names:
        interval = described(mechanism)[name].interval
        value = getattr(mechanism, name)
        if not (isinstance(value, int) and value in interval):
            raise BadParameter(f"{name} {value} is outside [{interval.low}, {interval.high}]")


def check_cells(mechanism: Any, *names: str, each: int = 1) -> None:
    """Raises BadParameter if the product of these fields, `each` cells, is above MAX_CELLS."""
    if (cells := each * prod(getattr(mechanism, name) for name in names)) > MAX_CELLS:
        numbers = " or ".join(f"{name} {getattr(mechanism, name)}" for name in names)
        raise BadParameter(
            f"{numbers} is too large: totals have {cells:,} cells, together above {MAX_CELLS:,}"
        )
