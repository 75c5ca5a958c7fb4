"""Prints lines and tables for people, on a terminal or in a pipe."""

import json
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from threading import Timer
from typing import Any, Final

from hubbub.errors.message_words import several, visible, visible_lines

_PIPE_WIDTH = 160
_TEXT_WIDTH = 80
_LONGEST = 200
_SET_IN = "  "
# Least width of a wrapped text; names, in the first column, are not wrapped.
_SHORTEST_TEXT = 18
_SHORTEST_NAME = 24
_SOON_SECONDS: Final = 2.0


def say(line: str) -> None:
    """Prints lines to standard output, with control characters made visible."""
    print(visible_lines(line), flush=True)  # noqa: T201 this is the command line; flushed for pipes


def say_json(document: Any) -> None:
    """Prints a document as JSON to standard output."""
    say(json.dumps(document, indent=1))


def explain(sentence: str) -> None:
    """Prints a sentence, on a terminal wrapped and with continuation lines indented.

    In a pipe it is one line. Not for what is to be copied, such as a command or JSON.
    """
    if not sys.stdout.isatty():
        say(sentence)
        return
    for line in sentence.split("\n"):
        first, *others = wrapped_lines(line, _columns() - len(_SET_IN))
        say("\n".join([first, *(_SET_IN + other for other in others)]))


def paragraph(sentences: str) -> str:
    """Sentences as a paragraph of readable width, also in a pipe."""
    return textwrap.fill(sentences, min(_TEXT_WIDTH, _columns()))


def _columns() -> int:
    """The width of standard output in characters; in a pipe enough for most tables."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH


def table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    text_columns: int = 1,
    pictures: bool = False,
    spare: Sequence[int] = (),
    below: Sequence[str] = (),
) -> None:
    """Prints a table; the first `text_columns` are text, the others figures.

    Nothing is cut: if a terminal is too narrow, columns are left out or rows become blocks. Without
    rows there are no columns.
    `pictures` is whether the last column has bars. `spare` gives each column's order of being left
    out, from 1; 0 is never left out. `below` are sentences between title and columns.
    """
    width = _columns()
    columns = [
        Sized(
            head=visible(name),
            # Shortened, so that no cell fills pages.
            cells=[
                visible(row[place][:_LONGEST] + "..." * bool(row[place][_LONGEST:])) for row in rows
            ],
            shortest=0 if place >= text_columns else _SHORTEST_TEXT if place else _SHORTEST_NAME,
            spare=spare[place] if spare else 0,
            picture=pictures and place == len(header) - 1,
        )
        for place, name in enumerate(header)
    ]
    layout = fitting_columns(columns, width)
    if not layout and not sys.stdout.isatty():
        # A pipe has no width.
        layout = fitting_columns(columns, sum(column.widest + 3 for column in columns) + 1)
    lines = [_bold(line) for line in wrapped_lines(visible(title), width)]
    lines += [line for sentence in below for line in wrapped_lines(visible(sentence), width)]
    if not rows:
        lines.append("")
    elif layout:
        lines += table_lines(layout, _line())
    else:
        for name, cell_lines in blocks(columns, width - 2):
            lines += [_bold(line) for line in wrapped_lines(name, width)]
            lines += [f"  {part}" for line in cell_lines for part in wrapped_lines(line, width - 2)]
        lines.append("")
    print("\n".join(lines), flush=True)  # noqa: T201 as say


def listing(
    title: str,
    items: Iterable[Any],
    columns: Mapping[str, str | Callable[[Any], str]],
    *,
    text_columns: int = 1,
) -> None:
    """Prints a table with a line for each thing.

    `columns` maps headings to the content of cells: a format of the thing's keys or attributes,
    such as "{epsilon:.3f}", or a function of the thing.
    """
    rows = [
        [
            content(item) if callable(content) else content.format_map(_Fields(item))
            for content in columns.values()
        ]
        for item in items
    ]
    table(title, list(columns), rows, text_columns=text_columns)


@dataclass(frozen=True, slots=True)
class _Fields:
    """The keys of a mapping, or the attributes of an object, for str.format_map."""

    thing: Any

    def __getitem__(self, name: str) -> Any:
        is_mapping = isinstance(self.thing, Mapping)
        return self.thing[name] if is_mapping else getattr(self.thing, name)


def _bold(line: str) -> str:
    return f"\x1b[1m{line}\x1b[0m" if sys.stdout.isatty() else line


def _line() -> str:
    """The character to draw lines with, in the encoding of standard output."""
    try:
        "─".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "-"
    return "─"


def live(look: Callable[[], tuple[object, Callable[[], None]]], every_seconds: float) -> None:
    """Calls `look` repeatedly until Ctrl-C; redraws a terminal, and adds changes to a pipe.

    `look` returns the state, and a function that shows it.
    """
    before: object = None
    while True:
        state, show = look()
        if sys.stdout.isatty():
            print("\x1b[H\x1b[2J", end="")  # noqa: T201 to the corner, and clear
            show()
        elif state != before:
            show()
        before = state
        time.sleep(every_seconds)


@contextmanager
def announced_if_long(what: Callable[[], str]) -> Iterator[None]:
    """Says what is being done on standard error if it takes over two seconds; nothing for ""."""

    def announce() -> None:
        if message := what():
            print(message, file=sys.stderr, flush=True)  # noqa: T201 beside the answer

    timer = Timer(_SOON_SECONDS, announce)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# A column has a space on either side, and one between it and the next; the table one before all.
_AROUND: Final = 3
_BETWEEN: Final = "   "
# Characters of width 0: accents, joiners, variation selectors.
_WITHOUT_ROOM: Final = frozenset({"Mn", "Me", "Cf"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """One column of a table. `shortest` is the smallest width of wrapped text, 0 for figures.

    `spare` is its order of being left out, from 1; 0 is never left out. `picture` marks bars.
    """

    head: str
    cells: Sequence[str]
    shortest: int = 0
    spare: int = 0
    picture: bool = False

    @property
    def is_left(self) -> bool:
        """Whether its cells are left-aligned; figures are right-aligned."""
        return self.picture or self.shortest > 0

    @property
    def widest(self) -> int:
        """The width with every cell on one line."""
        return max(map(cell_len, (self.head, *self.cells)))

    @property
    def narrowest(self) -> int:
        """The smallest width: a whole figure, or the longest word of a heading."""
        word = max(map(cell_len, self.head.split() or [""]))
        longest = max(map(cell_len, self.cells), default=0)
        return max(word, min(longest, self.shortest or longest))


def fitting_columns(columns: Sequence[Sized], room: int) -> list[tuple[Sized, int]]:
    """The columns that fit into `room` characters, with their widths; empty if they cannot."""
    for spare in sorted({0, *(column.spare for column in columns)}):
        visible_columns = [column for column in columns if not 0 < column.spare <= spare]
        free_room = room - 1 - sum(_AROUND + column.narrowest for column in visible_columns)
        if free_room >= 0:
            # Figures are widened first, so that their headings stay on one line.
            widths = [column.narrowest for column in visible_columns]
            for place in sorted(
                range(len(visible_columns)), key=lambda place: visible_columns[place].shortest > 0
            ):
                widening = min(free_room, visible_columns[place].widest - widths[place])
                widths[place] += widening
                free_room -= widening
            return list(zip(visible_columns, widths, strict=True))
    return []


def blocks(columns: Sequence[Sized], room: int) -> list[tuple[str, list[str]]]:
    """Every row as a heading, its first cell, and lines of "heading cell" pairs."""
    result = []
    for row in zip(*(column.cells for column in columns), strict=True):
        lines: list[str] = []
        for column, cell in list(zip(columns, row, strict=True))[1:]:
            pair = f"{column.head} {cell}".strip()
            if not cell:
                continue
            if lines and cell_len(lines[-1]) + len(_BETWEEN) + cell_len(pair) <= room:
                lines[-1] += _BETWEEN + pair
            else:
                lines.append(pair)
        result.append((row[0], lines))
    return result


def table_lines(columns: Sequence[tuple[Sized, int]], line: str) -> list[str]:
    """The lines of a table; `line` is the character under its head."""
    head = [column.head for column, _ in columns]
    rows = zip(*(column.cells for column, _ in columns), strict=True)
    separator = " " + line * (sum(width + _AROUND for _, width in columns) - 1)
    lines = ["", *_row(head, columns), separator]
    for row in rows:
        lines += _row(row, columns)
    return [*lines, ""]


def wrapped_lines(text: str, width: int) -> list[str]:
    """The text in lines of this width, cut between words, after "..", or inside longer words."""
    if cell_len(text) <= width:
        return [text]
    lines, line = [], ""
    for word in re.findall(r"\S+?\.\.(?=\S)|\S+\s*|\s+", text):
        if line and cell_len(line + word.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        for letter in word:
            if cell_len(line + letter) > width and not letter.isspace():
                lines.append(line.rstrip())
                line = ""
            line += letter
    return [*lines, line.rstrip()]


def cell_len(text: str) -> int:
    """The width of a text on a terminal: ideographs take two places, accents none."""
    if text.isascii():
        return len(text)
    letters = [letter for letter in text if unicodedata.category(letter) not in _WITHOUT_ROOM]
    return len(letters) + sum(unicodedata.east_asian_width(letter) in "WF" for letter in letters)


def _row(cells: Sequence[str], columns: Sequence[tuple[Sized, int]]) -> list[str]:
    parts = [wrapped_lines(cell, width) for cell, (_, width) in zip(cells, columns, strict=True)]
    lines = []
    for number in range(max(map(len, parts))):
        line = ""
        for part, (column, width) in zip(parts, columns, strict=True):
            text = part[number] if number < len(part) else ""
            room = " " * (width - cell_len(text))
            line += f"  {text}{room} " if column.is_left else f"  {room}{text} "
        lines.append(line.rstrip())
    return lines


def day_of(seconds: float) -> date:
    """The day (UTC) of a time in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).date()


def first_second(day: date) -> int:
    """When a UTC day begins, in seconds since 1970."""
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


_MEANINGS: Final = 3
_HEX: Final = 16


def short_payload(payload: str) -> str:
    """A payload in hex, shortened to the width of a column."""
    return payload if len(payload) <= _HEX else f"{payload[: _HEX - 2]}.."


def chance_text(chance: float) -> str:
    """A probability, never as certain or impossible if it is not."""
    if 0 < chance < 0.001:  # noqa: PLR2004 as written
        return "less than 0.1%"
    return "more than 99.9%" if 0.999 < chance < 1 else f"{chance:.1%}"  # noqa: PLR2004 as written


def likeliest(meanings: Sequence[tuple[str, float]], others: int = 0) -> str:
    """The likeliest meanings, and how many more there are, `others` included."""
    texts = [f"{value} {chance_text(chance)}" for value, chance in meanings[:_MEANINGS]]
    rest_count = len(meanings) - len(texts) + others
    return ", ".join(texts) + (f", or {several(rest_count, 'other')}" if rest_count else "")
