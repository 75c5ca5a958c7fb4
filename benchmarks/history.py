"""Every result so far, a JSON object a line, so that a figure that fell is pointed out.

Machines differ, so what is compared is the ratio to the limit or peer of the same run.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.measure import Row

_FILE: Final = Path(__file__).with_name("history.jsonl")
_WORSE: Final = 0.15
# How RESULTS.md says of what day and machine it is, or one of its rows.
_TODAY: Final = re.compile(r"^Made by `make bench` on (.*?)\. Every run", re.MULTILINE)
_OF: Final = re.compile(r"(?:^|; )of (.*)$")


@dataclass(frozen=True)
class Run:
    """What one run found. made: when and on what. tables: by name, those beside the stages."""

    made: str
    rows: list[Row]
    tables: dict[str, list[list[str]]] = field(default_factory=dict)


def read_history(path: Path = _FILE) -> list[Run]:
    """Oldest first."""
    if not path.exists():
        return []
    runs = []
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        rows = [Row(**row) for row in entry["rows"]]
        # Once there was one table, the mechanisms'.
        tables = entry.get("tables", {"mechanisms": entry.get("grid", [])})
        runs.append(Run(entry["made"], rows, tables))
    return runs


def write_run(run: Run, path: Path = _FILE) -> None:
    """Put one more behind the others."""
    with path.open("a") as file:
        file.write(json.dumps(asdict(run)) + "\n")


def unkept(results: str, history: Sequence[Run]) -> list[Run]:
    """Rows of RESULTS.md's first table whose stages no run has: a merge may have dropped its line.

    A page that is made of the history alone would lose them.
    """
    latest, groups = newest(history), dict[str, list[Row]]()
    today = _TODAY.search(results)
    for row, remark in _rows(results):
        older = _OF.search(remark)
        date_match = older or today
        if row.stage not in latest and date_match:
            groups.setdefault(date_match[1], []).append(row)
    return [Run(run_label, rows) for run_label, rows in sorted(groups.items())]


def _rows(results: str) -> Iterator[tuple[Row, str]]:
    """Every stage, and what is remarked of it. Whether more is better is told by rates alone."""
    lines = results.partition("\n## ")[0].splitlines()
    for line in [line for line in lines if line.startswith("| ")][1:]:
        stage, ours, limit, ratio, reach, remark = line.removeprefix("| ")[:-2].split(" | ")
        more = reach.startswith(">=")
        yield Row(stage, ours, limit, float(ratio), reach, more), remark.strip()


def newest(history: Iterable[Run]) -> dict[str, tuple[Row, str]]:
    """Of every stage the last row, and when it was made."""
    return {row.stage: (row, run.made) for run in history for row in run.rows}


def fell(row: Row, history: Sequence[Run]) -> str:
    """By how much a figure is worse than the last one of its stage, if by more than 15%; or ""."""
    before = newest(history).get(row.stage)
    if before is None or not before[0].ratio or not row.ratio:
        return ""
    old = before[0].ratio
    worse = 1 - row.ratio / old if row.more else row.ratio / old - 1
    return f"WORSE by {worse:.0%} than on {before[1][:10]}" if worse > _WORSE else ""
