"""Puts small faults into a copy of the product, one at a time, to see whether a test fails.

`make faults` tries those of faults.toml, in a clone of the commit that is checked out, with the
short tests: first those that are likely to notice it, then all others.
build/faults.json keeps the results; a fault that was caught is not tried again.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from tests.support.clone import ROOT, clone_to, first_failure
from tests.support.relevance import by_relevance

RESULTS: Final = ROOT / "build/faults.json"
# The likeliest test file is run alone, then nine more, then all: to collect tests takes time.
STAGES: Final = (0, 1, 10, None)
CAUGHT, THOROUGH, SURVIVED = "caught", "caught by thorough tests", "survived"
UNDECIDED: Final = "not decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """tests: files to begin with, where no word of the fault leads to them."""

    what: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Result:
    """by: the test that failed. seconds: until then, or until the end or the limit."""

    fault: Fault
    outcome: str
    by: str
    seconds: float


def fault_of(entry: dict[str, Any]) -> Fault:
    """The fault of a table of TOML or JSON."""
    return Fault(**{**entry, "tests": tuple(entry.get("tests", ()))})


def faults() -> list[Fault]:
    """The list of faults.toml."""
    text = Path(__file__).with_suffix(".toml").read_text()
    return [fault_of(entry) for entry in tomllib.loads(text)["fault"]]


@dataclass(frozen=True, slots=True)
class Laboratory:
    """A clone, in which one fault at a time is put. sound: whether tests pass without a fault."""

    clone: Path
    sound: dict[str, bool] = field(default_factory=dict)

    def try_out(self, fault: Fault, limit_seconds: float, *, thorough: bool) -> Result:
        """Look for a test that fails with the fault, and passes without it."""
        path, begun = self.clone / fault.file, time.monotonic()
        ranked = by_relevance(self.clone, Path(fault.file), f"{fault.what} {fault.before}")
        files = list(dict.fromkeys([*fault.tests, *ranked]))
        stages = [(CAUGHT, files[first:end]) for first, end in pairwise(STAGES)]
        whole = path.read_text()
        path.write_text(whole.replace(fault.before, fault.after))
        outcome, failed = SURVIVED, ""
        try:
            for stage, some in [*stages, (THOROUGH, files)] if thorough else stages:
                marked = "thorough" if stage == THOROUGH else "not thorough"
                remaining = begun + limit_seconds - time.monotonic()
                if failed := first_failure(self.clone, [*some, "-m", marked], remaining):
                    outcome = stage
                    break
        except subprocess.TimeoutExpired:
            outcome = UNDECIDED
        finally:
            path.write_text(whole)
        seconds = round(time.monotonic() - begun, 1)
        if failed and failed not in self.sound:
            self.sound[failed] = not first_failure(self.clone, [failed])
        if failed and not self.sound[failed]:
            return Result(fault, UNDECIDED, f"{failed} fails without the fault, too", seconds)
        return Result(fault, outcome, failed, seconds)


def table(results: list[Result]) -> str:
    """By package how many faults, and what became of them; then those that no test caught."""
    outcomes = (CAUGHT, THOROUGH, SURVIVED, UNDECIDED)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        counts["/".join(result.fault.file.split("/")[:3:2])][result.outcome] += 1
    counts["all"] = sum(counts.values(), Counter())
    lines = [f"| package | faults | {' | '.join(outcomes)} |", "|---|" + "--:|" * 5]
    for package, outcomes_of in counts.items():
        numbers = [outcomes_of.total(), *(outcomes_of[outcome] for outcome in outcomes)]
        lines.append(f"| {package} | {' | '.join(map(str, numbers))} |")
    uncaught = [result for result in results if result.outcome in {SURVIVED, UNDECIDED}]
    lines += [
        f"{trial.outcome}: {trial.fault.file}: {trial.fault.what}. {trial.by}" for trial in uncaught
    ]
    return "\n".join([*lines, ""])


def read_results() -> dict[Fault, Result]:
    """The results of earlier runs, of faults that are in the list as they were."""
    records = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    results = [Result(**{**record, "fault": fault_of(record["fault"])}) for record in records]
    return {result.fault: result for result in results if result.fault in faults()}


def main() -> None:
    """Try the faults of the list; print what became of each, and the table."""
    parser = argparse.ArgumentParser(prog="make faults", description=main.__doc__)
    parser.add_argument("texts", nargs="*", help="those whose file or description has one of these")
    parser.add_argument("--seconds", type=float, default=3600, help="after these it is given up")
    parser.add_argument("--all", action="store_true", help="try survivors with thorough tests, too")
    options = parser.parse_args()
    results = read_results()
    with tempfile.TemporaryDirectory(prefix="hubbub-faults-") as folder:
        clone_to(Path(folder) / "hubbub")
        laboratory = Laboratory(Path(folder) / "hubbub")
        for fault in faults():
            chosen = any(text in f"{fault.file} {fault.what}" for text in options.texts or [""])
            is_open = fault not in results or results[fault].outcome in {UNDECIDED, SURVIVED}
            if chosen and is_open:
                result = laboratory.try_out(fault, options.seconds, thorough=options.all)
                results[fault] = result
                RESULTS.parent.mkdir(exist_ok=True)
                RESULTS.write_text(
                    json.dumps([asdict(result) for result in results.values()], indent=1)
                )
                sys.stdout.write(
                    f"{result.outcome}, {result.seconds} s: {fault.what}. {result.by}\n"
                )
                sys.stdout.flush()
    sys.stdout.write(table([results[fault] for fault in faults() if fault in results]))


if __name__ == "__main__":
    main()
