"""Fuzzing by hand: python -m tests.fuzz --runs 100000 [--seed 1] [--survey] [TARGET ...]."""

import argparse
import asyncio
import importlib.util
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tests.fuzz.methods import fuzz
from tests.fuzz.targets import targets
from tests.fuzz.unguided import FAULT_FOLDER, Run, blind, corpus, quiet, survey

METHODS = "methods"
GUIDED = importlib.util.find_spec("atheris") is not None


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help="by name, or `methods` (all of gRPC's)")
    parser.add_argument("--runs", type=int, default=100_000, help="inputs for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--survey",
        action="store_true",
        help="unguided, and on past faults: at the end each kind of them, with its shortest input",
    )
    arguments = parser.parse_args()
    quiet()
    warnings.simplefilter("error")
    all_targets = targets()
    unknown = sorted(set(arguments.targets) - {*all_targets, METHODS})
    if unknown:
        parser.error(f"no such target: {', '.join(unknown)}; there are {', '.join(all_targets)}")
    faults = 0
    for name in arguments.targets or [*all_targets, METHODS]:
        began = time.monotonic()
        run = Run(arguments.runs, arguments.seed, corpus(name), tell)
        guided = GUIDED and name != METHODS and not arguments.survey
        if name == METHODS:
            with tempfile.TemporaryDirectory(prefix="hubbub-fuzz-") as folder:
                answers = asyncio.run(fuzz(Path(folder), arguments.runs, arguments.seed, tell))
            for what, number in sorted(answers.items()):
                print(f"  {what}: {number:,}")
        elif arguments.survey:
            lines = survey(name, all_targets[name], run)
            faults += len(lines)
            for line in lines:
                print(f"  {line}")
        elif guided:
            command = [sys.executable, "-m", "tests.fuzz.guided", name]
            command += [str(arguments.runs), str(arguments.seed)]
            if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode:
                print(f"{name}: FAILED; the input is in {FAULT_FOLDER}/{name}")
                return 1
        else:
            blind(name, all_targets[name], run)
        rate = arguments.runs / (time.monotonic() - began)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN if guided else resource.RUSAGE_SELF)
        way = "guided by coverage" if guided else "mutated"
        print(
            f"{name}: {arguments.runs:,} inputs, {way}, {rate:,.0f}/s, "
            f"at most {peak.ru_maxrss >> 10} MB",
            flush=True,
        )
    return 1 if faults else 0


def tell(line: str) -> None:
    """Progress, on a terminal alone."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="\r", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
