"""Programs that tests run until they end."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.clean_environment import CALLER

ROOT = Path(__file__).parents[2]


def run_program(
    *words: object, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Runs a program; what it prints is text. `options` are those of subprocess.run."""
    command = [str(word) for word in words]
    return subprocess.run(command, check=check, capture_output=True, text=True, **options)


def run_hubbub(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command `hubbub` as a process of its own."""
    return run_program(sys.executable, "-m", "hubbub.cli", *words, **options)


def build_wheels(folder: Path) -> list[Path]:
    """Builds the client's wheel and the other's as a release does; their paths."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    for source in (ROOT / "client", ROOT):
        run_program(*build, check=True, cwd=source, env=CALLER)
    return [next(folder.glob(f"{name}-*.whl")) for name in ("hubbub_client", "hubbub")]
