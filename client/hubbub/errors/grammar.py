"""Words of messages and tables: numbers with their nouns, and similar names."""

from collections.abc import Iterable
from typing import Any, Final

# Comparing takes time that grows with the square of the length.
_LONGEST: Final = 100


def several(number: int, noun: str) -> str:
    """A number with its noun: "1 metric", "2 metrics"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def similar(name: Any, names: Iterable[str]) -> str:
    """The name that is most similar to a misspelled one, in any case of letters; "" if none is."""
    if type(name) is not str:  # an object of the app's own may raise whatever is asked of it
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 of a mistake alone

    by_folded = {other.casefold(): other for other in reversed([*names])}
    near = get_close_matches(name[:_LONGEST].casefold(), by_folded, n=1)
    return by_folded[near[0]] if near else ""


def did_you_mean(name: Any, names: Iterable[str], *, otherwise: str = "") -> str:
    """The question whether a similar name was meant, to end a message; `otherwise` if none is."""
    near = similar(name, names)
    return f'; did you mean "{near}"?' if near else otherwise
