"""What the command `hubbub` prints when it runs in the process of the test."""

import json
from typing import Any

import pytest

from hubbub.cli.main import main

Capture = pytest.CaptureFixture[str]


def output_of(capsys: Capture, *words: str) -> str:
    """The output of a command that succeeds."""
    code, output = main([*words]), capsys.readouterr()
    assert code == 0, output.err
    return output.out


def document_of(capsys: Capture, *words: str) -> Any:
    """The JSON document that a command prints."""
    return json.loads(output_of(capsys, *words))


def refusal_of(capsys: Capture, *words: str) -> str:
    """The errors of a command that refuses what it is asked for, or how it is written."""
    try:
        code = main([*words])
    except SystemExit as ended:  # of the parser
        code = int(ended.code or 0)
    output = capsys.readouterr()
    assert code == 2, output.out
    return output.err
