"""Fuzzing by hand: python -m tests.fuzz --runs 100000 [--seed 1] [TARGET ...]."""

import argparse
import asyncio
import hashlib
import importlib.util
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.decoders import Target, decoders
from tests.fuzz.methods import fuzz
from tests.fuzz.mutate import mutated

CORPUS = Path(__file__).parent / "corpus"
FOUND = Path("build/fuzz")
METHODS = "methods"
GUIDED = importlib.util.find_spec("atheris") is not None
# More than the modules and an input take; growth past it is a leak or an input that blows up.
MOST_GROWTH_MB = 400


def corpus(name: str) -> list[bytes]:
    """What earlier runs have found worth keeping."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help="decoders by name, or `methods` (all of them)")
    parser.add_argument("--runs", type=int, default=100_000, help="inputs for each target")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    targets = decoders()
    unknown = sorted(set(given.targets) - {*targets, METHODS})
    if unknown:
        parser.error(f"no such target: {', '.join(unknown)}; there are {', '.join(targets)}")
    for name in given.targets or [*targets, METHODS]:
        began = time.monotonic()
        if name == METHODS:
            with tempfile.TemporaryDirectory(prefix="hubbub-fuzz-") as folder:
                answers = asyncio.run(fuzz(Path(folder), given.runs, given.seed, tell))
            for what, number in sorted(answers.items()):
                print(f"  {what}: {number:,}")
        elif GUIDED:
            command = [sys.executable, "-m", "tests.fuzz.guided", name]
            command += [str(given.runs), str(given.seed)]
            if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode:
                print(f"{name}: FAILED; the input is in {FOUND}/{name}")
                return 1
        else:
            _blind(name, targets[name], given.runs, given.seed)
        rate = given.runs / (time.monotonic() - began)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN if GUIDED else resource.RUSAGE_SELF)
        how = "guided by coverage" if GUIDED and name != METHODS else "mutated"
        print(
            f"{name}: {given.runs:,} inputs, {how}, {rate:,.0f}/s, "
            f"at most {peak.ru_maxrss >> 10} MB",
            flush=True,
        )
    return 0


def tell(line: str) -> None:
    """Progress, on a terminal alone."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="\r", file=sys.stderr, flush=True)


def _blind(name: str, target: Target, runs: int, seed: int) -> None:
    chance = random.Random(f"{seed} {name}")
    examples = [*target.examples, *corpus(name)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for done in range(runs):
        data = mutated(chance, examples)
        try:
            target.run(data)
        except BaseException:
            folder = FOUND / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
            raise
        if done % 10_000 == 0:
            tell(f"{name}: {done:,} of {runs:,}")
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before >> 10
    assert growth < MOST_GROWTH_MB, f"{name}: memory grew by {growth} MB"


if __name__ == "__main__":
    sys.exit(main())
