"""A number in a metric's own unit as text, with as many digits as its error leaves."""

from math import floor, isfinite, log10
from typing import Final

# Of an error; more digits are chance.
_DIGITS_OF_ERROR: Final = 2
# Of a number whose error is not known.
_DIGITS: Final = 5
_MAX_PLACES: Final = 12
# From here on digits of a float are no more exact than powers of ten.
_LARGEST: Final = 1e15


def measured(number: float, error: float = 0.0, *, sign: str = "") -> str:
    """The number in full, never as a power of ten below 1e15, to two digits of its error.

    Args:
        number: in any unit.
        error: its standard error; 0 where that is not known, for five digits at least.
        sign: "+" to write that of a number above 0.
    """
    if not isfinite(number) or abs(number) >= _LARGEST:
        return f"{number:{sign}.6g}"
    size, digits = (error, _DIGITS_OF_ERROR) if error > 0 else (abs(number) or 1.0, _DIGITS)
    places = min(max(digits - 1 - floor(log10(size)), 0), _MAX_PLACES)
    text = f"{number:{sign},.{places}f}"
    return text.rstrip("0").rstrip(".") if places and not error > 0 else text


def error_of(low: float, high: float) -> float:
    """About the standard error of what has this interval."""
    return (high - low) / 4
