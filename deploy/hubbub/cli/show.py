"""What a person sees: tables, lines, and progress on a terminal that is silent in a pipe."""

import sys
from collections.abc import Sequence

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

__all__ = ["progress", "say", "table"]

_PIPE_WIDTH = 160


def say(line: str) -> None:
    """One line to standard output."""
    print(line, flush=True)  # noqa: T201 this is the command line; a pipe hears it now


def table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    text_columns: int = 1,
) -> None:
    """A table to standard output; the first columns are text, the others figures."""
    console = Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)
    console.print(escape(title), style="bold", highlight=False)
    drawn = Table(box=SIMPLE_HEAD)
    for index, name in enumerate(header):
        drawn.add_column(name, justify="left" if index < text_columns else "right")
    for row in rows:
        drawn.add_row(*(escape(_visible(cell)) for cell in row))
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


def _visible(text: str) -> str:
    """Control characters shown, not obeyed: a value must not move the cursor."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
