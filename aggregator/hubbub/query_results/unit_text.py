"""Formats a number in a metric's unit, with as many digits as its error leaves."""

from math import floor, isfinite, log10
from typing import Final, Literal

# Significant digits of an error; further ones are random.
_DIGITS_OF_ERROR: Final = 2
# Significant digits of a number with unknown error.
_DIGITS: Final = 5
_MAX_PLACES: Final = 12
# From here on, not all digits of a float are exact.
_LARGEST: Final = 1e15

End = Literal["", "low", "high"]
# Moves nearly by half of the last place, so that an end which has no further digits stays.
_OUTWARDS: Final[dict[End, float]] = {"": 0.0, "low": -0.499999, "high": 0.499999}


def number_text(number: float, error: float = 0.0, *, sign: str = "", end: End = "") -> str:
    """The number to two digits of its error, without a power of ten below 1e15.

    Args:
        number: in any unit.
        error: its standard error; 0 if unknown, for at least five digits.
        sign: "+" to mark positive numbers with it.
        end: which end of an interval it is; the end is rounded outwards.
    """
    if not isfinite(number) or abs(number) >= _LARGEST:
        return f"{number:{sign}.6g}"
    size, digits = (error, _DIGITS_OF_ERROR) if error > 0 else (abs(number) or 1.0, _DIGITS)
    places = min(max(digits - 1 - floor(log10(size)), 0), _MAX_PLACES)
    rounded = number + _OUTWARDS[end] * 10**-places
    text = f"{rounded:{sign}z,.{places}f}"
    return text.rstrip("0").rstrip(".") if places and not error > 0 else text


def error_of(low: float, high: float) -> float:
    """The approximate standard error behind an interval: a quarter of its width."""
    return (high - low) / 4
