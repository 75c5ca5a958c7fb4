"""Shows progress: a bar on standard error of a terminal, almost nothing in a pipe."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from hubbub.errors.printable import visible

Step = TypeVar("Step")

_LINE_SECONDS = 60.0


def tracked(steps: Iterable[Step], total: int, name: str) -> Iterator[Step]:
    """Yields the steps; shows a bar on standard error, or in a pipe a line per minute."""
    if sys.stderr.isatty():
        with progress() as bar:
            yield from bar.track(steps, total=total, description=name)
        return
    began = last_line = time.monotonic()
    for number, step in enumerate(steps, start=1):
        now = time.monotonic()
        if now - last_line >= _LINE_SECONDS:
            last_line = now
            minutes = round((now - began) / 60)
            print(  # noqa: T201 beside the answer
                visible(f"{name}: {number:,} of {total:,} done, {minutes} min"),
                file=sys.stderr,
                flush=True,
            )
        yield step


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
