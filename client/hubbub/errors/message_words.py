"""Words of messages and tables: numbers, similar names, printable text, and what a reader may do.

Every message, table and line of a terminal passes through `visible`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import ROUND_CEILING, Decimal, localcontext
from importlib.util import find_spec
from math import copysign
from typing import Any, Final

from hubbub.errors import MissingDependency

# Comparing takes time that grows with the square of the length.
_LONGEST: Final = 100
_MAX_NAMES: Final = 12  # as many as fit a few lines of a terminal
# A day, a month, or a minute of a day.
_DATE: Final = r"[0-9]{4}-[0-9]{2}(-[0-9]{2}(T[0-9]{2}:[0-9]{2})?)?"


def several(number: int, noun: str) -> str:
    """A number with its noun: "1 metric", "2 metrics"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def nats(loss: float, digits: int = 4) -> str:
    """A privacy loss with its unit, rounded up to significant digits: "1 nat", "2.5 nats"."""
    number = at_most(loss, f".{digits}g")
    return f"{number} nat" if number == "1" else f"{number} nats"


def at_most(bound: float, form: str) -> str:
    """The text of a bound in a format with e, f or g: rounded up, except for errors of floats."""
    with localcontext(rounding=ROUND_CEILING):
        digits = format(Decimal(bound * (1 - copysign(1e-12, bound))), form)
    return format(float(digits), form)


def at_least(bound: float, form: str) -> str:
    """The text of a bound of 0 or more, as `at_most`, but rounded down."""
    return at_most(-bound, form).removeprefix("-")


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


# Printable by category but invisible: Unicode's default ignorable letters and marks, and the
# Braille pattern without dots.
UNSEEN: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)


def visible(text: str) -> str:
    """The text with control and invisible characters as JSON escapes, which no terminal obeys."""
    return "".join(c if c.isprintable() and c not in UNSEEN else _escape(c) for c in text)


def visible_lines(text: str) -> str:
    """The same for text whose line breaks are our own."""
    return "\n".join(map(visible, text.split("\n")))


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


PROTECTS_NOBODY: Final = (
    "DEVELOPMENT: this installation protects nobody; an estimate may rest on a single report."
)
"""What every face of a development installation says first."""
NOTICES: Final = {True: PROTECTS_NOBODY, False: ""}
"""The notice in front of an installation's answers, by whether it is a development one."""


def wrong_place(*, development: bool) -> str:
    """The error for a file of the other kind of installation; `development` is the service's."""
    if development:
        return (
            "is of production; a service with --dev refuses it: give a file made with keys for "
            "development, or leave --dev out"
        )
    return (
        "is of a development installation, whose numbers protect nobody; build it with keys of "
        "production, or start the service with --dev"
    )


OF_DEVICES: Final = ("relay", "tokens")
"""The extras of hubbub-client; all others are of hubbub, which is installed beside it."""


def install_with(extra: str) -> str:
    """The command that installs this extra, or hubbub without one, for error messages.

    It names wheels or a checkout: package indexes have no hubbub of ours, and whoever registers
    a name there would have their program run on our users' machines. Both wheels are named, since
    an installer asks an index for what hubbub depends on and nobody gives it.
    """
    client = "hubbub-client's wheel, or client/ of a checkout"
    if extra in OF_DEVICES:
        return f"pip install 'CLIENT[{extra}]', where CLIENT is {client}"
    path = f"'PATH[{extra}]'" if extra else "PATH"
    return (
        f"pip install CLIENT {path}, where CLIENT is {client}, and PATH is hubbub's wheel "
        "or checkout"
    )


@contextmanager
def needs(libraries: str, extra: str) -> Iterator[None]:
    """Raises MissingDependency if an import fails; `libraries`: what needs which of `extra`."""
    try:
        yield
    except ImportError as error:
        message = f"{libraries}, not installed here: {install_with(extra)}"
        raise MissingDependency(message) from error


def is_installed(module: str) -> bool:
    """Whether a module of an optional part is installed; it is not imported."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
