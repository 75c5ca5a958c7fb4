"""What a target of the fuzzing is, and where its files are: in memory, if that can be."""

import atexit
import logging
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.mutate import LONGEST, Mutate, mutated

_MEMORY = Path("/dev/shm")  # noqa: S108 a folder of our own is made there


@dataclass(frozen=True)
class Target:
    """examples: inputs that are right. run: takes anything; what it raises is a fault of ours.

    mutate: another input of the kind, from examples. longest: in bytes.
    """

    examples: Sequence[bytes]
    run: Callable[[bytes], None]
    mutate: Mutate = mutated
    longest: int = LONGEST


class Faults(logging.Handler):
    """What is logged as an error, by anyone."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(self.format(record))


def scratch() -> Path:
    """A new folder, gone with this process."""
    memory = _MEMORY if _MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="hubbub-fuzz-", dir=memory))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
