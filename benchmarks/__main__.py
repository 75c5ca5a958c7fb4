"""Runs every stage, prints the table, and writes it to benchmarks/RESULTS.md."""

import os
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import mechanisms
from benchmarks.answers import answering
from benchmarks.device import randomize, sealing
from benchmarks.host import latency, memory, report
from benchmarks.measure import Row
from benchmarks.overload import overload
from benchmarks.queries import decoding, estimating
from benchmarks.services import folding, path, storing

STAGES = (
    *(randomize, report, memory, latency, sealing, folding),
    *(storing, estimating, decoding, answering, path, overload),
)
RESULTS = Path(__file__).with_name("RESULTS.md")
_PEERS = (
    "Peers (pure-ldp, multi-freq-ldpy, opendp) at epsilon 1, measured in the same run in an "
    "environment of their own; the first two draw from generators that are not private."
)
_NO_PEERS = "The peers could not be installed here."
HEADER = ("stage", "ours", "limit, in the same run", "ratio", "reach")


def main() -> int:
    """Measure, show, keep."""
    rows: list[Row] = []
    for stage in STAGES:
        if sys.stderr.isatty():
            print(f"measuring: {stage.__name__} ...", file=sys.stderr)
        rows += stage()
    cells = [(r.stage, r.ours, r.limit, f"{r.ratio:.2f}", r.reach) for r in rows]
    _show(HEADER, cells)
    if sys.stderr.isatty():
        print("measuring: peers ...", file=sys.stderr)
    best = mechanisms.peers()
    grid = mechanisms.rows(list(mechanisms.figures()), best)
    _show(mechanisms.HEADER, grid)
    made = (
        f"{datetime.now(UTC):%Y-%m-%d}: {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}"
    )
    lines = [
        "# Results",
        "",
        f"Made by `make bench` on {made}.",
        "Absolute figures drift from machine to machine; the limit is measured in the same run.",
        "",
        *_markdown(HEADER, cells),
        "",
        "## Mechanisms",
        "",
        "100,000 reports each, in 250 collections (5,000 where one number is estimated). "
        + (_PEERS if best else _NO_PEERS),
        "",
        *_markdown(mechanisms.HEADER, grid),
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    return 0


def _show(header: tuple[str, ...], cells: Sequence[tuple[str, ...]]) -> None:
    table = Table(*header)
    for row in cells:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _markdown(header: tuple[str, ...], cells: Sequence[tuple[str, ...]]) -> list[str]:
    return [
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in cells),
    ]


if __name__ == "__main__":
    sys.exit(main())
