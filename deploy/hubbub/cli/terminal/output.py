"""What a person sees: tables, lines, and progress on a terminal that is silent in a pipe."""

import sys
import time
from collections.abc import Callable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from hubbub.errors.visible import visible, visible_lines

__all__ = ["live", "progress", "say", "table"]

_PIPE_WIDTH = 160
_LONGEST = 200


def say(line: str) -> None:
    """One line to standard output, or several; nothing in them is obeyed."""
    print(visible_lines(line), flush=True)  # noqa: T201 this is the command line; a pipe hears it now


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
    console.print(Text(visible(title), style="bold"))
    drawn = Table(box=SIMPLE_HEAD)
    for index, name in enumerate(header):
        picture = pictures and index == len(header) - 1
        left = picture or index < text_columns
        drawn.add_column(Text(visible(name)), justify="left" if left else "right", no_wrap=picture)
    for row in rows:
        drawn.add_row(*(Text(_shown(cell)) for cell in row))  # never markup of a value's own
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


def _shown(text: str) -> str:
    """A value must not fill pages."""
    return visible(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")
