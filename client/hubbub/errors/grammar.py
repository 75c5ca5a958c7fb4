"""Words of messages and tables: numbers with their nouns, similar names, days that do not exist."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

# Comparing takes time that grows with the square of the length.
_LONGEST: Final = 100
_MAX_NAMES: Final = 12  # as many as fit a few lines of a terminal
# A day, a month, or a minute of a day.
_DATE: Final = r"[0-9]{4}-[0-9]{2}(-[0-9]{2}(T[0-9]{2}:[0-9]{2})?)?"


def several(number: int, noun: str) -> str:
    """A number with its noun: "1 metric", "2 metrics"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def nats(loss: float, digits: int = 4) -> str:
    """A privacy loss with its unit, rounded to significant digits: "1 nat", "2.5 nats"."""
    number = f"{loss:.{digits}g}"
    return f"{number} nat" if number == "1" else f"{number} nats"


def similar(name: Any, names: Iterable[str]) -> str:
    """The name that a misspelled one was meant to be, in any case of letters; "" if none is near.

    It differs by one letter in three at most: left out, added, replaced, or two swapped.
    """
    if type(name) is not str:  # an object of the app's own may raise whatever is asked of it
        return ""
    letters = name[:_LONGEST].lower()
    nearest, max_edits = "", len(letters) // 3
    for other in names:
        if other == name:  # it is spelled right, but of another kind
            return ""
        other_letters = other.lower()
        if abs(len(other_letters) - len(letters)) <= max_edits:
            edits = _edits(letters, other_letters, max_edits)
            if edits <= max_edits:
                nearest, max_edits = other, edits - 1
    return nearest


def _edits(first: str, second: str, max_edits: int) -> int:
    """Edits between two texts (optimal string alignment): exact up to `max_edits`, else more."""
    before: Sequence[int] = ()
    row: Sequence[int] = range(len(second) + 1)
    for place, letter in enumerate(first):
        current = [place + 1]
        for column, other in enumerate(second):
            edits = min(row[column] + (letter != other), row[column + 1] + 1, current[column] + 1)
            if place and column and first[place - 1 : place + 1] == other + second[column - 1]:
                edits = min(edits, before[column - 1] + 1)
            current.append(edits)
        before, row = row, current
        if min(row) > max_edits:
            break
    return row[-1]


def did_you_mean(name: Any, names: Iterable[str], *, otherwise: str = "") -> str:
    """The question whether a similar name was meant, to end a message; `otherwise` if none is."""
    suggestion = similar(name, names)
    return f'; did you mean "{suggestion}"?' if suggestion else otherwise


def first_names(names: Sequence[str]) -> str:
    """The first names, quoted, and how many more there are."""
    listing = ", ".join(f'"{name}"' for name in names[:_MAX_NAMES])
    unlisted = len(names) - _MAX_NAMES
    return f"{listing} and {unlisted} more" if unlisted > 0 else listing


def absent_date(text: str) -> str:
    """The message that a date does not exist, for one that cannot be read; "" for other texts."""
    return f"{text} does not exist in the calendar" if re.fullmatch(_DATE, text) else ""
