"""Plain values: what other libraries hold, as the types of Python that metrics take."""

import math
from collections.abc import Collection, Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final

# By the kind of a type in numpy; of dates there is none.
_OWN: Final[Mapping[str, type]] = {"b": bool, "i": int, "u": int, "f": float}


def as_python(thing: Any, listed: Collection[str] = ()) -> Any:
    """A value of another library's or module's type as a plain one; any other value as it is.

    Numbers, truths and spans of time of numpy and of libraries that keep to its types; Decimal and
    Fraction; a member of an Enum as its value, or as its name where only the name is listed.

    Args:
        thing: what an app reported.
        listed: the texts that a metric takes.
    """
    if isinstance(thing, Enum):
        plain = as_python(thing.value)
        is_listed = isinstance(plain, str) and plain in listed
        return thing.name if not is_listed and thing.name in listed else plain
    if isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, Decimal | Fraction):
        return _number_of(thing)
    if getattr(thing, "shape", None) != ():
        return thing
    kind = getattr(getattr(thing, "dtype", None), "kind", "")
    if kind == "m":
        return _span_of(thing)
    own = _OWN.get(kind)
    return own(thing) if own else thing


def _number_of(thing: Any) -> Any:
    """The int that it is exactly, else a float that is no whole number either; else as it is."""
    try:
        number = float(thing)  # by no context of decimal, unlike abs() and comparisons with floats
    except (ArithmeticError, ValueError):  # too large, or a NaN that must not be read
        return thing
    if not math.isfinite(number):
        return thing
    whole = int(thing)
    if whole == thing:
        return whole
    return thing if number.is_integer() else number


def _span_of(thing: Any) -> Any:
    """A span of numpy's as a timedelta; one without a unit, of months or years as it is."""
    span = thing.item()
    if isinstance(span, int) and "[ns]" in thing.dtype.str:  # finer than a timedelta is
        return timedelta(microseconds=span / 1000)
    return span if isinstance(span, timedelta) else thing
