"""The `hubbub` command, in the test's process or in one of its own."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hubbub.cli.main import main
from tests.support.programs import run_hubbub

Hubbub = Callable[..., subprocess.CompletedProcess[str]]
"""Runs the command with these words, and with these variables of the environment besides."""


@pytest.fixture
def process(tmp_path: Path) -> Hubbub:
    """The command as a process of its own."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_hubbub(*arguments, cwd=tmp_path, env={**os.environ, **environment})

    return run


@pytest.fixture
def hubbub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Hubbub:
    """The command in this process, which saves the start of an interpreter."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            for name, text in environment.items():
                patch.setenv(name, text)
            try:
                status = main(arguments)
            except SystemExit as end:  # argparse, after it printed help or an error
                status = int(end.code or 0)
        return subprocess.CompletedProcess(arguments, status, *capsys.readouterr())

    return run
