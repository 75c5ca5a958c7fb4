"""One target without a guide: inputs mutated from its examples, until one of them is a fault."""

import hashlib
import logging
import random
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tests.fuzz.target import Target

FAULT_FOLDER = Path("build/fuzz")
# More than the modules and an input take; growth past it is a leak or an input that blows up.
MAX_GROWTH_MB = 400
HANG_SECONDS = 60


@dataclass(frozen=True)
class Run:
    """How often, with which coins; and what shall be tried besides the target's own examples."""

    runs: int
    seed: int
    corpus: Sequence[bytes]
    tell: Callable[[str], None]

    def inputs(self, name: str, target: Target) -> Iterator[bytes]:
        """The examples, and then what is made of them."""
        chance = random.Random(f"{self.seed} {name}")
        examples = [*target.examples, *self.corpus]
        yield from examples[: self.runs]
        for done in range(len(examples), self.runs):
            yield target.mutate(chance, examples)[: target.longest]
            if done % 1000 == 0:
                self.tell(f"{name}: {done:,} of {self.runs:,}")


def corpus(name: str) -> list[bytes]:
    """What earlier runs have found worth keeping."""
    folder = Path(__file__).parent / "corpus" / name
    return [path.read_bytes() for path in sorted(folder.glob("*"))]


def blind(name: str, target: Target, run: Run) -> None:
    """Run it so often. A fault is raised, once its input is in a file."""
    before = _megabytes()
    for data in run.inputs(name, target):
        try:
            _run(target, data)
        except BaseException:
            _keep(FAULT_FOLDER / name, data)
            raise
    growth = _megabytes() - before
    assert growth < MAX_GROWTH_MB, f"{name}: memory grew by {growth} MB"


def survey(name: str, target: Target, run: Run) -> list[str]:
    """Run it so often, whatever fails: each kind of fault in a line, with its shortest input."""
    counts: Counter[tuple[str, ...]] = Counter()
    shortest: dict[tuple[str, ...], bytes] = {}
    for data in run.inputs(name, target):
        try:
            _run(target, data)
        except Exception as error:  # noqa: BLE001 whatever it is, it is told
            # Faults of one kind have one cause, mostly: what was raised, and where in what we ship.
            frames = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in frames if "/hubbub/" in frame.filename] or frames
            last = ours[-1]
            text = str(error).splitlines()[-1:] if isinstance(error, AssertionError) else []
            kind = (type(error).__name__, f"{Path(last.filename).name}:{last.lineno}", *text)
            counts[kind] += 1
            if kind not in shortest or len(data) < len(shortest[kind]):
                shortest[kind] = data
    return [
        f"{number:,} {' '.join(kind)}: {_keep(FAULT_FOLDER / name, shortest[kind])}"
        for kind, number in counts.most_common()
    ]


def _run(target: Target, data: bytes) -> None:
    with _no_longer_than(HANG_SECONDS):
        target.run(data)


@contextmanager
def _no_longer_than(seconds: int) -> Iterator[None]:
    """An input that takes longer is a fault."""

    def raise_timeout(_number: int, _frame: FrameType | None) -> NoReturn:
        raise TimeoutError(f"an input takes more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _keep(folder: Path, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    path.write_bytes(data)
    return path


def _megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def quiet() -> None:
    """What a hostile input is logged as is for nobody to read."""
    logging.lastResort = None
