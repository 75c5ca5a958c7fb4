"""Hints for a developer whose value a metric refuses: the accepted values."""

from collections.abc import Sequence
from typing import Any, Final

# As many as fit a few lines of a terminal.
_SHOWN: Final = 12
# Comparing takes time that grows with the square of the length.
_LONGEST: Final = 100


def value_hint(values: Sequence[str], value: Any) -> str:
    """Returns the first accepted values, and the accepted value that is most similar.

    PRIVACY: similarity nearly reveals the value. For the developer; never for a log.
    """
    listing = ", ".join(f'"{value}"' for value in values[:_SHOWN])
    rest = len(values) - _SHOWN
    more = f" and {rest} more" if rest > 0 else ""
    near = _nearest(values, value)
    return f"{listing}{more}" + (f'; did you mean "{near}"?' if near else "")


def _nearest(values: Sequence[str], value: Any) -> str | None:
    if type(value) is not str:  # an object of the app's own may raise whatever is asked of it
        return None
    from difflib import get_close_matches  # noqa: PLC0415 of a mistake alone

    by_folded = {value.casefold(): value for value in reversed(values)}
    near = get_close_matches(value[:_LONGEST].casefold(), by_folded, n=1)
    return by_folded[near[0]] if near else None
