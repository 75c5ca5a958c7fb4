"""A clone of the checkout, with an environment whose `hubbub` is the clone's in every process."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_NODE: Final = Path("client/typescript/node_modules")


def clone_to(clone: Path) -> None:
    """Make it, of the commit that is checked out; other packages stay those of the checkout."""
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, clone], check=True)
    venv, environment = ROOT / ".venv", clone / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    [packages] = venv.glob("lib/python*/site-packages")
    # One file of each distribution.
    paths = "\n".join(path.read_text() for path in packages.glob("_hubbub*.pth"))
    paths = paths.replace(str(ROOT), str(clone))
    (environment / packages.relative_to(venv) / "clone.pth").write_text(f"{paths}\n{packages}\n")
    for program in (venv / "bin").iterdir():
        copy = environment / "bin" / program.name
        if not copy.exists():
            shutil.copy(program, copy)
            if program.read_bytes().startswith(b"#!"):
                copy.write_text(program.read_text().replace(str(venv), str(environment)))
    if (ROOT / _NODE).exists():
        shutil.copytree(ROOT / _NODE, clone / _NODE, symlinks=True)
        (clone / _NODE / "ready").touch()


def first_failure(clone: Path, arguments: list[str], seconds: float = 3600) -> str:
    """The first test of a run of pytest that fails, or "".

    Raises:
        subprocess.TimeoutExpired: after so many seconds none has failed.
    """
    words = [".venv/bin/python", "-m", "pytest", "-xq", "-p", "no:cacheprovider", *arguments]
    with subprocess.Popen(words, cwd=clone, stdout=subprocess.PIPE, text=True) as run:
        try:
            output, _ = run.communicate(timeout=max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            run.send_signal(signal.SIGINT)  # it ends the services that it started
            run.communicate()
            raise
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    if run.returncode not in {0, 5} and not failed:  # 5: no test of these is marked so
        return f"pytest ends with {run.returncode}"
    return failed[1] if failed else ""
