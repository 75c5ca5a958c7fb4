"""How long the paths of a report and of a question are: a feature must not add to all of them."""

import tempfile
from pathlib import Path

import pytest

from benchmarks.paths import path_lengths

# Calls, functions and files: a little above what they were when they were last shortened. In one
# report of twelve a draw takes a call more.
MOST = {
    "report()": (45, 37, 12),
    "flush() of 3 reports": (775, 216, 34),
    "GET /v1/metrics/theme/estimates": (1175, 139, 32),
}


def test_no_path_grows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Where an app has run, this user's folder among temporary files makes a flush longer.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lengths = list(path_lengths())
    with capsys.disabled():
        for length in lengths:
            print(f"\n{length}")  # noqa: T201 shows its figures
    assert {length.path for length in lengths} == MOST.keys()
    for length in lengths:
        for number, most in zip(
            (length.calls, length.functions, length.files), MOST[length.path], strict=True
        ):
            assert number <= most, length
