"""What a person reads: lines and tables, on a terminal and in a pipe."""

import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Sequence

from hubbub.cli.terminal.table_layout import Sized, blocks, drawn, fitted, wrapped
from hubbub.errors.printable import visible, visible_lines

_PIPE_WIDTH = 160
_TEXT_WIDTH = 80
_LONGEST = 200
_SET_IN = "  "
# Texts go on in the next line in no less; names, which stand first, are rather whole.
_SHORTEST_TEXT = 14
_SHORTEST_NAME = 24


def say(line: str) -> None:
    """One line to standard output, or several; nothing in them is obeyed."""
    print(visible_lines(line), flush=True)  # noqa: T201 this is the command line; a pipe hears it now


def explain(sentence: str) -> None:
    """A sentence: on a terminal in lines that fit, cut between words, those that go on set in.

    In a pipe it is one line. Not for what is to be copied, such as a command or JSON.
    """
    say("\n".join(_fitting(line) for line in sentence.split("\n")))


def _fitting(line: str) -> str:
    if not sys.stdout.isatty():
        return line
    first, *others = wrapped(line, _columns() - len(_SET_IN))
    return "\n".join([first, *(_SET_IN + other for other in others)])


def several(number: int, noun: str) -> str:
    """So many of it: "1 metric", "2 metrics"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def filled(sentences: str) -> str:
    """Sentences as a paragraph that is easy to read, in a pipe as on a terminal."""
    return textwrap.fill(sentences, min(_TEXT_WIDTH, _columns()))


def _columns() -> int:
    """How wide standard output is: a pipe has room for most tables."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH


def table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    text_columns: int = 1,
    pictures: bool = False,
    spare: Sequence[int] = (),
) -> None:
    """A table to standard output; the first columns are text, the others figures.

    Nothing is cut: what is too narrow for it leaves columns out, or has rows as blocks.

    pictures: the last column is one of bars. spare: of the columns, which narrow terminals leave
    out, those with 1 first; 0 stays.
    """
    width = _columns()
    columns = [
        Sized(
            head=visible(name),
            cells=[_shown(row[place]) for row in rows],
            shortest=0 if place >= text_columns else _SHORTEST_TEXT if place else _SHORTEST_NAME,
            spare=spare[place] if spare else 0,
            picture=pictures and place == len(header) - 1,
        )
        for place, name in enumerate(header)
    ]
    layout = fitted(columns, width)
    if not layout and not sys.stdout.isatty():
        # A pipe has no edge.
        layout = fitted(columns, sum(column.widest + 3 for column in columns) + 1)
    lines = [_bold(line) for line in wrapped(visible(title), width)]
    if layout:
        lines += drawn(layout, _line())
    else:
        for name, below in blocks(columns, width - 2):
            lines += [_bold(line) for line in wrapped(name, width)]
            lines += [f"  {part}" for line in below for part in wrapped(line, width - 2)]
        lines.append("")
    print("\n".join(lines), flush=True)  # noqa: T201 as say


def _bold(line: str) -> str:
    """In heavier letters, on a terminal."""
    return f"\x1b[1m{line}\x1b[0m" if sys.stdout.isatty() else line


def _line() -> str:
    """What a line is drawn with, where standard output can say it."""
    try:
        "─".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "-"
    return "─"


def live(look: Callable[[], tuple[object, Callable[[], None]]], every_seconds: float) -> None:
    """Look again and again, until Ctrl-C: on a terminal in place, in a pipe where it changed.

    look: what is seen, and how to show it.
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


def _shown(text: str) -> str:
    """A value must not fill pages."""
    return visible(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")
