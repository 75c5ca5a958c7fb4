"""Rules for names, addresses and numbers."""

import re
import sys
from math import inf, isinf
from typing import Any, Final

from hubbub.errors.address_checks import LAST_PORT, has_port, url_parts
from hubbub.fields.frozen import frozen

MAX_TEXT: Final = 10_000
# A larger bound is only a technical limit, so messages print it in short form.
_LONG: Final = 1e6

NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
LOG_NAME: Final = r"[a-z0-9.-]{1,128}(:[0-9]{1,5})?(/[A-Za-z0-9._~-]{1,64}){0,8}"
ADDRESS: Final = re.compile(r"(https://)?[A-Za-z0-9._-]{1,253}:[1-9][0-9]{0,4}")
# Version 0.2 signed these, and devices go on with their bundle.
_SIGNED_ADDRESS: Final = re.compile(r"(?:https://)?[!-.0-9;-~]{1,253}:([0-9]{1,5})")


def int_if_whole(number: Any) -> Any:
    """A float such as 6.0 as an int, since JSON does not distinguish them; others unchanged."""
    small = type(number) is float and number.is_integer() and abs(number) < 1 << 53
    return int(number) if small else number


def as_tuple(value: Any) -> tuple[Any, ...]:
    """The entries of a list of JSON. Raises TypeError for anything else."""
    if not isinstance(value, list):
        raise TypeError("a list is expected")
    return tuple(value)


def as_table(value: Any) -> dict[str, Any]:
    """A table of JSON. Raises TypeError for anything else."""
    if not isinstance(value, dict):
        raise TypeError("a table is expected")
    return value


def is_writable(text: str) -> bool:
    """Whether a text can be encoded: a lone surrogate cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_number(value: Any) -> bool:
    """Whether it is a finite number in the range of a float."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -sys.float_info.max <= value <= sys.float_info.max
    )


# Floats hold the squares of ranges within this size; of their inverse, too.
_MAX_SIZE: Final = 1e100


def has_variance(low: float, high: float) -> bool:
    """Whether floats can hold the square of every number from low to high, and of its error."""
    return max(abs(low), abs(high)) <= _MAX_SIZE and high - low >= 1 / _MAX_SIZE


@frozen()
class Interval:
    """The numbers from low to high; `ends` is "[]", "()", "[)" or "(]"."""

    low: float = -inf
    high: float = inf
    ends: str = "[]"

    def __contains__(self, value: float) -> bool:
        above_low = self.low <= value if self.ends[0] == "[" else self.low < value
        return above_low and (value <= self.high if self.ends[1] == "]" else value < self.high)

    def __str__(self) -> str:
        """A condition: " in [0, 1)", " above 0"; "" if all numbers are in it."""
        if isinf(self.high):
            word = "not below" if self.ends[0] == "[" else "above"
            return "" if isinf(self.low) else f" {word} {_figure(self.low)}"
        return f" in {self.ends[0]}{_figure(self.low)}, {_figure(self.high)}{self.ends[1]}"


def is_whole(value: Any) -> bool:
    """Whether it is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_text(value: Any) -> bool:
    """Whether it is a non-empty text that can be encoded."""
    return (
        isinstance(value, str)
        and bool(value.strip())
        and len(value) <= MAX_TEXT
        and is_writable(value)
    )


def is_address(value: Any) -> bool:
    """Whether it is HOST:PORT or https://HOST:PORT, with a host name in ASCII."""
    is_matching = isinstance(value, str) and ADDRESS.fullmatch(value) is not None
    return is_matching and has_port(value.removeprefix("https://"))


def is_signed_address(value: Any) -> bool:
    """Whether a signed bundle may have this address, which some version's builder accepted."""
    match = _SIGNED_ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return match is not None and int(match[1]) <= LAST_PORT


def is_log_name(value: Any) -> bool:
    """Whether it is host and path under which a log is served."""
    is_name = isinstance(value, str) and re.fullmatch(LOG_NAME, value) is not None
    return is_name and url_parts(f"https://{value}") is not None


def metric_name_of(stream: str) -> str:
    """The metric of a stream, whose name is the metric's, perhaps with cell and tier."""
    return stream.partition("/")[0].partition("@")[0]


def _figure(number: float) -> str:
    if abs(number) <= _LONG:
        return str(number)
    return f"{number:,}" if is_whole(number) else f"{number:g}"
