"""Shows progress: a bar on standard error of a terminal, almost nothing in a pipe."""

import sys
import time
from collections.abc import Iterable, Iterator
from math import ceil
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

from hubbub.errors.message_words import several, visible

Step = TypeVar("Step")

_LINE_SECONDS = 60.0
_LONG_SECONDS = 30.0
_SAMPLE_SECONDS = 2.0


def tracked(steps: Iterable[Step], total: int, name: str, remedy: str = "") -> Iterator[Step]:
    """Yields the steps; shows a bar on standard error, or in a pipe a line per minute.

    If all steps will take over half a minute, it says so with the `remedy`, after the steps of two
    seconds; a short first step does not count, since it also imports modules and fills caches.
    """
    began = last_line = sample_began = time.monotonic()
    skipped = 0
    with progress() as bar:
        for number, step in enumerate(bar.track(steps, total=total, description=name), start=1):
            now, line = time.monotonic(), ""
            if remedy and now - sample_began > _SAMPLE_SECONDS:
                seconds = (now - sample_began) / (number - skipped) * total
                if seconds > _LONG_SECONDS:
                    minutes = several(ceil(seconds / 60), "minute")
                    line = f"{name}: all {total:,} take about {minutes}; {remedy}"
                remedy = ""
            elif now - last_line >= _LINE_SECONDS and not sys.stderr.isatty():
                last_line = now
                line = f"{name}: {number:,} of {total:,} done, {round((now - began) / 60)} min"
            if line:
                print(visible(line), file=sys.stderr, flush=True)  # noqa: T201 beside the answer
            if number == 1:
                sample_began, skipped = now, 1
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
