"""Programs that tests run until they end."""

import subprocess
import sys
from typing import Any


def run_program(
    *words: object, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program; what it prints is text. `options` are those of subprocess.run."""
    command = [str(word) for word in words]
    return subprocess.run(command, check=check, capture_output=True, text=True, **options)


def run_hubbub(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command `hubbub` as a process of its own."""
    return run_program(sys.executable, "-m", "hubbub.cli", *words, **options)
