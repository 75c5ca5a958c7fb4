"""The tutorial, step by step as it stands: its files, its commands, and what they print."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubbub.installation.child_process import free_port
from hubbub.installation.running_endpoints import read_endpoints
from tests.support import web
from tests.support.development_server import MORE_PORTS
from tests.support.moment import far_from_midnight
from tests.support.waiting import eventually

pytestmark = pytest.mark.thorough

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-metric.md"
BLOCK = re.compile(r'^```(\w+)(?: title="(.*?)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
Steps = list[tuple[str, str, str]]
TRUTH = {"dark": 1000, "light": 700, "system": 300}


def _shape(text: str) -> set[str]:
    """Its lines, with every number and every gap alike."""
    lines = (re.sub(r"\d[\d,.]*", "0", line) for line in text.splitlines())
    return {" ".join(line.split()) for line in lines} - {""}


def _run(line: str, folder: Path) -> str:
    """What a line of the page prints, on either stream."""
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env={**os.environ, "COLUMNS": "140", "PATH": programs},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


@contextmanager
def _up(folder: Path, port: int, command: str) -> Iterator[Path]:
    """`hubbub up`, as the page starts it, and what it says."""
    log_path = folder / "up.log"
    with log_path.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "hubbub.cli", *command.split()[1:], "--port", str(port)],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            eventually(
                lambda: "Ctrl-C ends it" in log_path.read_text() or process.poll() is not None
            )
            yield log_path
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()
    assert process.returncode == 0, log_path.read_text()


def test_the_tutorial_works_as_it_stands(tmp_path: Path) -> None:
    far_from_midnight()
    text = PAGE.read_text()
    [base] = re.findall(r'^shuffler = "127\.0\.0\.1:(\d+)"', text, re.MULTILINE)
    port = free_port(*MORE_PORTS)
    for distance in range(8):
        text = text.replace(f":{int(base) + distance}", f":{port + distance}")
    steps: Steps = BLOCK.findall(text)
    assert len([kind for kind, _, _ in steps if kind == "sh"]) >= 8
    before, developed, between, after = _split_steps(steps)
    _follow(before, tmp_path, "")
    with _up(tmp_path, port, "hubbub up --dev") as log:
        _follow(developed, tmp_path, log.read_text(), development=True)
    _follow(between, tmp_path, "")
    with _up(tmp_path, port, "hubbub up") as log:
        _follow(after, tmp_path, log.read_text())
        document = json.loads(_run("hubbub query theme --format json", tmp_path))
    for row in document["values"]:
        counted = TRUTH[row["value"]] / 2000 * document["reports"]
        # Whose report stayed in the pool is chance, too: 7 errors of both are passed once in 10^11.
        assert abs(row["estimate"] - counted) < 7 * (row["stderr"] + 10), row["value"]


def _split_steps(steps: Steps) -> list[Steps]:
    """Before everything is started, while it runs for development, between, and in production."""
    bodies = [body for _, _, body in steps]
    started, ended, again = (
        bodies.index(body)
        for body in ("hubbub up --dev\n", "rm -r .hubbub my-device*\n", "hubbub up\n")
    )
    return [
        steps[:started],
        steps[started + 1 : ended],
        steps[ended:again],
        steps[again + 1 :],
    ]


def _follow(steps: Steps, folder: Path, output: str, *, development: bool = False) -> None:
    """Take the steps; what the page shows must come out of the commands before it."""
    for kind, title, body in steps:
        if kind == "sh" and not title:
            if development and body == "hubbub query theme\n":
                eventually(lambda: _status(folder)["total"]["counted"] == 1)
            output = "".join(_run(line, folder) for line in body.splitlines())
            if body == "python crowd.py\n":
                eventually(lambda: _settled(folder))
        elif kind == "text":
            assert _shape(body) <= _shape(output)
        elif title.endswith((".py", ".toml")):
            (folder / title).write_text(body)


def _settled(folder: Path) -> bool:
    """Whether all that may leave the pool is counted."""
    [window] = _status(folder)["windows"]
    return bool(window["counted"] > 1800 and window["in_flight"] == 0)


def _status(folder: Path) -> Any:
    return web.get(f"{read_endpoints(folder / '.hubbub').page}v1/status").json()
