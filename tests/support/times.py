"""What every test costs: a pytest plugin records it, `make test-times` writes the table.

Processor seconds include those of all processes below this one, also of a service or a browser that
many tests share, in the test that uses them; waiting is wall time minus those.
"""

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from time import monotonic  # as it is: tests put their own in its module
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "build/test-times"
README = ROOT / "tests/README.md"
BEGIN, END = "<!-- make test-times -->", "<!-- end -->"
SLOWEST = 60
PHASES = ("setup", "call", "teardown")

_started: Counter[str] = Counter()


def _count(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        program = Path(os.fsdecode(arguments[0])).name
        _started["processes"] += 1
        _started["redis"] += program.startswith(("redis-server", "valkey-server"))


def processor_seconds(process: str = "self") -> float:
    """Of a process and all below it: those that run, and those that have ended."""
    ticks = sum(map(int, _contents(f"/proc/{process}/stat").rpartition(")")[2].split()[11:15]))
    tasks = glob(f"/proc/{process}/task/*/children")  # noqa: PTH207 a test replaces Path.stat
    children = " ".join(map(_contents, tasks)).split()
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(processor_seconds, children))


def _contents(path: str) -> str:
    """Of a file of a process or thread; nothing, if that has just ended."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def pytest_configure() -> None:
    sys.addaudithook(_count)
    RECORDS.mkdir(parents=True, exist_ok=True)


def _phase(item: pytest.Item, phase: str) -> Iterator[None]:
    _started.clear()
    wall, cpu = monotonic(), processor_seconds()
    yield
    record = {
        "test": item.nodeid,
        "phase": phase,
        "wall": monotonic() - wall,
        "cpu": processor_seconds() - cpu,
        **_started,
    }
    with (RECORDS / f"{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    yield from _phase(item, "setup")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield from _phase(item, "call")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield from _phase(item, "teardown")


def _table(header: str, rows: list[list[str]]) -> list[str]:
    columns = header.count("|") + 1
    lines = [f"| {header} |", "|---|" + "--:|" * (columns - 1)]
    return lines + [f"| {' | '.join(row)} |" for row in rows] + [""]


def tables(records: list[dict[str, Any]]) -> str:
    """The costs by folder, and the tests that cost the most processor time, in Markdown."""
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    tests: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        phase, wall, cpu = record["phase"], record["wall"], record["cpu"]
        name = record["test"].partition("[")[0]
        for sums in (folders[name.split("/")[1]], tests[name]):
            sums.update({phase: wall, "wall": wall, "cpu": cpu, "tests": phase == "call"})
            sums.update({what: record.get(what, 0) for what in ("processes", "redis")})

    def numbers(sums: Counter[str], *columns: str) -> list[str]:
        return [f"{sums[column]:.0f}" for column in columns]

    def waiting(sums: Counter[str]) -> str:
        return f"{max(0, sums['wall'] - sums['cpu']):.0f}"

    folders["all"] = sum(folders.values(), Counter())
    by_folder = [
        [
            name,
            *numbers(sums, "tests", *PHASES, "cpu"),
            waiting(sums),
            *numbers(sums, "processes", "redis"),
        ]
        for name, sums in sorted(folders.items(), key=lambda folder: folder[1]["wall"])
    ]
    slowest = sorted(tests.items(), key=lambda test: -test[1]["cpu"])[:SLOWEST]
    by_test = [
        [f"`{name.removeprefix('tests/')}`", *numbers(sums, "tests", "cpu"), waiting(sums)]
        for name, sums in slowest
    ]
    head = "folder | tests | set-up s | call s | teardown s | processor s | waiting s"
    return "\n".join(
        [
            *_table(f"{head} | processes | Redis servers", by_folder),
            *_table("test | cases | processor s | waiting s", by_test),
        ]
    )


def main() -> None:
    """Write the tables of what was recorded into tests/README.md: of each test the latest run."""
    records = {
        (record["test"], record["phase"]): record
        for path in sorted(RECORDS.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        for record in map(json.loads, path.read_text().splitlines())
    }
    before, _, rest = README.read_text().partition(BEGIN)
    README.write_text(
        f"{before}{BEGIN}\n\n{tables([*records.values()])}\n{END}{rest.partition(END)[2]}"
    )


if __name__ == "__main__":
    main()
