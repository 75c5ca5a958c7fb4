"""A file is replaced whole, and what is no file is written to as it is."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hubbub.aggregator.access.tokens import add_token, read_tokens, remove_token
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


def test_commands_that_change_one_file_at_once_lose_no_change(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    names = [f"token {number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: add_token(path, name, "viewer", 1, 0.0), names))
        assert {token.name for token in read_tokens(path)} == set(names)
        list(pool.map(lambda name: remove_token(path, name), names[1:]))
    assert [token.name for token in read_tokens(path)] == names[:1]
