"""Lays a table out: a figure is never cut; columns go, or rows become blocks."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# A column has a space on either side, and one between it and the next; the table one before all.
_AROUND: Final = 3
_BETWEEN: Final = "   "
# Letters without a place of their own: accents, joiners, what chooses between two pictures.
_WITHOUT_ROOM: Final = frozenset({"Mn", "Me", "Cf"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """One column. shortest: of a text, whose cells may go on in the next line; of a figure 0.

    spare: narrow terminals leave it out, those with 1 first; 0 stays. picture: of bars.
    """

    head: str
    cells: Sequence[str]
    shortest: int = 0
    spare: int = 0
    picture: bool = False

    @property
    def left(self) -> bool:
        """Whether its cells begin at one edge; figures end at one."""
        return self.picture or self.shortest > 0

    @property
    def widest(self) -> int:
        """What it takes with every cell on one line."""
        return max(map(cell_len, (self.head, *self.cells)))

    @property
    def narrowest(self) -> int:
        """What it takes at least: of a figure all of it, of a heading its longest word."""
        word = max(map(cell_len, self.head.split() or [""]))
        longest = max(map(cell_len, self.cells), default=0)
        return max(word, min(longest, self.shortest or longest))


def fitted(columns: Sequence[Sized], room: int) -> list[tuple[Sized, int]]:
    """The columns that fit into so many characters, each with its width; none, if they cannot."""
    for spare in sorted({0, *(column.spare for column in columns)}):
        visible_columns = [column for column in columns if not 0 < column.spare <= spare]
        rest = room - 1 - sum(_AROUND + column.narrowest for column in visible_columns)
        if rest >= 0:
            return _shared_out(visible_columns, rest)
    return []


def blocks(columns: Sequence[Sized], room: int) -> list[tuple[str, list[str]]]:
    """Every row as a heading of its first cell, and below it "heading cell" beside each other."""
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


def drawn(columns: Sequence[tuple[Sized, int]], line: str) -> list[str]:
    """The lines of a table of these columns and widths; `line` is drawn below its head."""
    head = [column.head for column, _ in columns]
    rows = zip(*(column.cells for column, _ in columns), strict=True)
    between = " " + line * (sum(width + _AROUND for _, width in columns) - 1)
    lines = ["", *_row(head, columns), between]
    for row in rows:
        lines += _row(row, columns)
    return [*lines, ""]


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines of this width, cut between words, and within those that are longer."""
    if cell_len(text) <= width:
        return [text]
    lines, line = [], ""
    for word in re.findall(r"\S+\s*|\s+", text):
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
    """How many places of a terminal a text takes: ideographs two, accents none."""
    if text.isascii():
        return len(text)
    return sum(map(_places, text))


def _places(letter: str) -> int:
    if unicodedata.category(letter) in _WITHOUT_ROOM:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _row(cells: Sequence[str], columns: Sequence[tuple[Sized, int]]) -> list[str]:
    """The lines of one row."""
    parts = [wrapped(cell, width) for cell, (_, width) in zip(cells, columns, strict=True)]
    lines = []
    for number in range(max(map(len, parts))):
        line = ""
        for part, (column, width) in zip(parts, columns, strict=True):
            text = part[number] if number < len(part) else ""
            room = " " * (width - cell_len(text))
            line += f"  {text}{room} " if column.left else f"  {room}{text} "
        lines.append(line.rstrip())
    return lines


def _shared_out(columns: Sequence[Sized], rest: int) -> list[tuple[Sized, int]]:
    """What is left goes to figures first, whose headings then stay on one line."""
    widths = [column.narrowest for column in columns]
    for place in sorted(range(len(columns)), key=lambda place: columns[place].shortest > 0):
        more = min(rest, columns[place].widest - widths[place])
        widths[place] += more
        rest -= more
    return list(zip(columns, widths, strict=True))
