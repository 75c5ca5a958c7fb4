"""Runs every stage, prints the table, and writes it to benchmarks/RESULTS.md."""

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.device import randomize, report, sealing
from benchmarks.measure import Row
from benchmarks.services import decoding, folding, path, storing

STAGES = (randomize, report, sealing, folding, storing, decoding, path)
RESULTS = Path(__file__).with_name("RESULTS.md")
HEADER = ("stage", "ours", "limit, in the same run", "ratio", "reach")


def main() -> int:
    """Measure, show, keep."""
    rows: list[Row] = []
    for stage in STAGES:
        if sys.stderr.isatty():
            print(f"measuring: {stage.__name__} ...", file=sys.stderr)
        rows += stage()
    cells = [(r.stage, r.ours, r.limit, f"{r.ratio:.2f}", r.reach) for r in rows]
    table = Table(*HEADER)
    for row in cells:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
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
        "| " + " | ".join(HEADER) + " |",
        "|" + "---|" * len(HEADER),
        *("| " + " | ".join(row) + " |" for row in cells),
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
