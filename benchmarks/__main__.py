"""Runs the stages, prints the table, and writes it to benchmarks/RESULTS.md beside what was before.

python -m benchmarks [STAGE ...]: some of them; the others keep their last figures.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks import mechanisms
from benchmarks.answers import answering, stored_answer
from benchmarks.bulk import bulk
from benchmarks.calibration import HEADER as STATEMENTS
from benchmarks.calibration import WIDTHS, calibrated, widths
from benchmarks.crowds import HEADER as CROWDS
from benchmarks.crowds import crowds
from benchmarks.day import day
from benchmarks.device import randomize, sealing
from benchmarks.door import door
from benchmarks.filed_totals import filed, reestimated
from benchmarks.fleet import fleet
from benchmarks.growth import commits, growth
from benchmarks.hidden_counts import hidden
from benchmarks.history import Run, fell, newest, read_history, unkept, write_run
from benchmarks.hoarding import hoarding
from benchmarks.host import latency, memory, report
from benchmarks.idle import idle, silent
from benchmarks.measure import Row
from benchmarks.overload import overload
from benchmarks.page import page
from benchmarks.paths import HEADER as PATHS
from benchmarks.paths import paths
from benchmarks.queries import decoding, estimating
from benchmarks.rappor_marks import HEADER as MARKS
from benchmarks.rappor_marks import rappor_marks
from benchmarks.relayed import relayed
from benchmarks.sdks import HEADER as SDKS
from benchmarks.sdks import sdks
from benchmarks.services import folding, opening, storing
from benchmarks.trust import covers, fillers, logs, seals, tokens
from benchmarks.unlisted import HEADER as UNLISTED
from benchmarks.unlisted import NAMED, unlisted
from benchmarks.vectors import HEADER as VECTORS
from benchmarks.vectors import vectors
from benchmarks.whole_epoch import whole_epoch
from benchmarks.wire import transport

STAGES: Final[Sequence[Callable[[], Iterator[Row]]]] = (
    randomize,
    report,
    memory,
    latency,
    sealing,
    seals,
    covers,
    fillers,
    hidden,
    tokens,
    logs,
    opening,
    transport,
    folding,
    storing,
    growth,
    commits,
    estimating,
    decoding,
    answering,
    stored_answer,
    filed,
    reestimated,
    bulk,
    whole_epoch,
    overload,
    door,
    relayed,
    idle,
    silent,
    hoarding,
    page,
    fleet,
)
# Only if it is asked for: it takes an hour.
ON_REQUEST: Final[Sequence[Callable[[], Iterator[Row]]]] = (day,)
RESULTS: Final = Path(__file__).with_name("RESULTS.md")


@dataclass(frozen=True, slots=True)
class Beside:
    """A table of its own, beside that of the stages."""

    title: str
    about: str
    header: Sequence[str]
    make: Callable[[], Iterator[Sequence[str]]]


def _mechanisms() -> Iterator[Sequence[str]]:
    best = mechanisms.peers()
    if not best:
        print("The peers could not be installed here.", file=sys.stderr)
    yield from mechanisms.rows(list(mechanisms.figures()), best)


BESIDE: Final[Mapping[str, Beside]] = {
    "mechanisms": Beside(
        "Mechanisms",
        "100,000 reports each, in 250 collections (5,000 where one number is estimated). "
        "Peers (pure-ldp, multi-freq-ldpy, opendp) at epsilon 1, measured in the same run in an "
        "environment of their own; the first two draw from generators that are not private.",
        mechanisms.HEADER,
        _mechanisms,
    ),
    "vectors": Beside(
        "Unit vectors",
        "20,000 reports of one vector by the codes that models have, drawn from the exact law "
        "on the real pool and decoded as the aggregator does. PrivUnitG is the least error there "
        "can be; it and SQKR (Kashin level 2.5) are by their formulas.",
        VECTORS,
        vectors,
    ),
    "crowds": Beside(
        "Crowds",
        "Central epsilon 1 at delta 1e-8, everybody honest, an epoch that leaves whole; errors in "
        "reports. 10,000 epochs (2,000 of wide questions) are drawn from the exact law, 20 made of "
        "reports randomized one by one; where it says services, they were sealed, mixed whole and "
        "counted by them. ± is the standard error of a ratio if the claim is true. Beside them "
        "what any so many people say of a larger population, and the least error of a rare value "
        "of those mechanisms that need no crowd, at epsilon 1, and where batches of 1,000 shuffled "
        "reports say as much.",
        CROWDS,
        crowds,
    ),
    "unlisted": Beside(
        "Strings that nobody listed",
        "The words of six letters of Python's own documentation, means of three drawings: how many "
        "strings that are named exist, how many do not, and of the most frequent 10, 20 and 50 how "
        "many are named. PEM is simulated by its exact law and told that words have six letters; "
        f"it names {NAMED} strings. The tree is told that they fit 41 bits, and names what it "
        "proves, then what is likely, at most as many in all.",
        UNLISTED,
        unlisted,
    ),
    "rappor": Beside(
        "Marks of RAPPOR strings",
        "Candidates that are held and marked, and those that nobody holds and are, beside "
        "Benjamini and Hochberg on the decode's own p-values: of four public collections, and of "
        "twenty simulated ones together.",
        MARKS,
        rappor_marks,
    ),
    "calibration": Beside(
        "Calibration",
        "What answers say of themselves, and how often it holds where it is simulated; ± is the "
        "standard error of that, if the claim is true. Past 3.1 of them it is called FALSE. Wider "
        "than 94 to 97% by design: lows of rows and near ends of changes, which hold for the first "
        "k rows whatever k; differences of two few counts, whose ends go by whole reports; trends "
        "of flat lines, which count on a day's own noise; values of which there are none, whose "
        "interval ends at 0; vectors of fewer than 64 books, which take the books' error in full.",
        STATEMENTS,
        calibrated,
    ),
    "sdks": Beside(
        "SDKs in an app",
        "What an app pays in its process above a bare interpreter: to import, to have recorded "
        "once (of hubbub with its bundle opened and state on disk), for each of 400 records, and "
        "after one sending to a server on this machine. Median of five processes, all from wheels; "
        "Sentry records messages, Glean and OpenTelemetry counters.",
        SDKS,
        sdks,
    ),
    "paths": Beside(
        "Paths",
        "Calls, functions and files of hubbub that each path runs, in all its threads: of a plain "
        "metric, with the client's state in a folder and totals in memory.",
        PATHS,
        paths,
    ),
    "widths": Beside(
        "Widths",
        "Of 95% intervals, in standard errors, the median of 40 runs; one that was not picked has "
        "3.9. Beside them the two published ways to be as honest of what was picked.",
        WIDTHS,
        widths,
    ),
}
HEADER: Final = ("stage", "ours", "limit, in the same run", "ratio", "reach", "")


def main(arguments: Sequence[str]) -> int:
    """Measure, show, keep. 2 if a stage is asked for that there is not."""
    names = [stage.__name__ for stage in (*STAGES, *ON_REQUEST)]
    unknown = set(arguments) - {*names, *BESIDE}
    if unknown:
        print(f"no stage {', '.join(sorted(unknown))}; there are {', '.join([*names, *BESIDE])}")
        return 2
    history = read_history()
    for former in unkept(RESULTS.read_text(), history):
        write_run(former)
        history.append(former)
    rows: list[Row] = []
    for stage in (*STAGES, *ON_REQUEST):
        if stage.__name__ in arguments or (not arguments and stage not in ON_REQUEST):
            _say_progress(stage.__name__)
            rows += stage()
    if rows:
        _show(HEADER, [_cells(row, fell(row, history)) for row in rows])
    tables: dict[str, list[list[str]]] = {}
    for name, beside in BESIDE.items():
        if not arguments or name in arguments:
            _say_progress(name)
            tables[name] = [list(row) for row in beside.make()]
            _show(beside.header, tables[name])
    run_label = (
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}"
    )
    run = Run(run_label, rows, tables)
    write_run(run)
    RESULTS.write_text("\n".join(document([*history, run])) + "\n")
    return 0


def document(history: Sequence[Run]) -> list[str]:
    """All stages with their last figures, in their order; worse ones and older ones say so."""
    last = newest(history)
    today = history[-1].made
    cells = []
    for row, run_label in last.values():
        before = [run for run in history if run.made != run_label or row not in run.rows]
        remarks = [fell(row, before), "" if run_label == today else f"of {run_label}"]
        cells.append(_cells(row, "; ".join(filter(None, remarks))))
    lines = [
        "# Results",
        "",
        f"Made by `make bench` on {today}. Every run is kept in benchmarks/history.jsonl.",
        "Absolute figures drift from machine to machine; the limit is measured in the same run,",
        "and a ratio that is over 15% worse than the last one of its stage is pointed out.",
        "",
        *_markdown(HEADER, cells),
    ]
    for name, beside in BESIDE.items():
        table_runs = [(run.tables[name], run.made) for run in history if run.tables.get(name)]
        if table_runs:
            table, run_label = table_runs[-1]
            lines += [
                "",
                f"## {beside.title}",
                "",
                f"{beside.about} Made on {run_label}.",
                "",
            ]
            lines += _markdown(beside.header, table)
    return lines


def _cells(row: Row, remark: str) -> tuple[str, ...]:
    return (row.stage, row.ours, row.limit, f"{row.ratio:.2f}", row.reach, remark)


def _say_progress(what: str) -> None:
    if sys.stderr.isatty():
        print(f"measuring: {what} ...", file=sys.stderr)


def _show(header: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    table = Table(*header)
    for row in cells:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def _markdown(header: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    return [
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in cells),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
