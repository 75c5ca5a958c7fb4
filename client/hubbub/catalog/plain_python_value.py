"""Converts values of other libraries to the plain Python types that metrics take."""

import math
from collections.abc import Collection, Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final

# Python type by numpy's kind of a type; dates have none.
_OWN: Final[Mapping[str, type]] = {"b": bool, "i": int, "u": int, "f": float}


def as_python(value: Any, listed: Collection[str] = ()) -> Any:
    """Converts a value of another library's type to a plain one; returns others unchanged.

    It converts numbers, booleans and time spans of numpy and compatible libraries; Decimal and
    Fraction; and Enum members to their value, or to their name if only that is listed.
    """
    if isinstance(value, Enum):
        python_value = as_python(value.value)
        is_listed = isinstance(python_value, str) and python_value in listed
        return value.name if not is_listed and value.name in listed else python_value
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal | Fraction):
        return _number_of(value)
    if getattr(value, "shape", None) != ():
        return value
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "m":
        return _span_of(value)
    converter = _OWN.get(kind)
    return converter(value) if converter else value


def _number_of(value: Any) -> Any:
    """The equal int, or a float if it is not whole; otherwise the value unchanged."""
    try:
        number = float(value)  # by no context of decimal, unlike abs() and comparisons with floats
    except (ArithmeticError, ValueError):  # too large, or a NaN that must not be read
        return value
    if not math.isfinite(number):
        return value
    integer = int(value)
    if integer == value:
        return integer
    return value if number.is_integer() else number


def _span_of(value: Any) -> Any:
    """A numpy time span as a timedelta; one without unit, or of months or years, unchanged."""
    span = value.item()
    if isinstance(span, int) and "[ns]" in value.dtype.str:  # finer than a timedelta is
        return timedelta(microseconds=span / 1000)
    return span if isinstance(span, timedelta) else value
