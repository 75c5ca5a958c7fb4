"""A file is replaced whole, and what is no file is written to as it is."""

import errno
import os
from pathlib import Path

import pytest

from hubbub.programs.atomic_write import replace_file


def test_a_pipe_behind_a_link_is_written_to(tmp_path: Path) -> None:
    """As `--out /dev/stdout` in a pipeline is."""
    reading, writing = os.pipe()
    link = tmp_path / "standard output"
    link.symlink_to(f"/dev/fd/{writing}")
    replace_file(link, b"answer")
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        assert file.read() == b"answer"
    assert link.is_symlink()
    assert list(tmp_path.iterdir()) == [link]


def test_a_file_is_unchanged_if_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("before")

    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fails)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
