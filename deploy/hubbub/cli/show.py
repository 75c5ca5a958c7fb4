"""What a person sees: tables, lines, and progress on a terminal that is silent in a pipe."""

import sys
import time
from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

__all__ = ["live", "progress", "say", "table"]

_PIPE_WIDTH = 160
_LONGEST = 200


def say(line: str) -> None:
    """One line to standard output."""
    print(line, flush=True)  # noqa: T201 this is the command line; a pipe hears it now


def table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    text_columns: int = 1,
    pictures: bool = False,
) -> None:
    """A table to standard output; the first columns are text, the others figures.

    pictures: the last column is one of bars, which is not cut.
    """
    console = Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)
    console.print(escape(title), style="bold", highlight=False)
    drawn = Table(box=SIMPLE_HEAD)
    for index, name in enumerate(header):
        picture = pictures and index == len(header) - 1
        left = picture or index < text_columns
        drawn.add_column(name, justify="left" if left else "right", no_wrap=picture)
    for row in rows:
        drawn.add_row(*(escape(_visible(cell)) for cell in row))  # never markup of a value's own
    console.print(drawn)


def progress() -> Progress:
    """Progress bars on standard error: shown on a terminal, silent in a pipe."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def live(look: Callable[[], tuple[object, Callable[[], None]]], every_seconds: float) -> None:
    """Look again and again, until Ctrl-C: on a terminal in place, in a pipe where it changed.

    look: what is seen, and how to show it.
    """
    before: object = None
    while True:
        seen, show = look()
        if sys.stdout.isatty():
            print("\x1b[H\x1b[2J", end="")  # noqa: T201 to the corner, and clear
            show()
        elif seen != before:
            show()
        before = seen
        time.sleep(every_seconds)


def _visible(text: str) -> str:
    """Control characters shown, not obeyed: a value must not move the cursor, nor fill pages."""
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "..."
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
