"""client/typescript, and Node to run it with."""

import functools
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "client" / "typescript"

needs_node = pytest.mark.skipif(
    not (shutil.which("node") and shutil.which("npm")),
    reason="no Node on this machine: apt-get install nodejs npm",
)


def run(*words: str, folder: Path = PACKAGE) -> str:
    """What a program prints, in a folder."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install() -> None:
    """What the package is built with, and its parts."""
    run("make", "client/typescript/node_modules/ready", folder=ROOT)


@functools.cache
def build() -> None:
    """Compiles the package into `dist`, once for all tests of a run."""
    run("npm", "run", "--silent", "build")
