"""A backup's archive, and what is said where its passphrase takes this machine too long."""

import re
from pathlib import Path

import pytest

from hubbub.cli.backup import archive
from hubbub.errors import BackupUnusable

# Keys made from words are meant to take long.
pytestmark = pytest.mark.slow

WORDS = "six words that nobody guesses"


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "metrics.toml").write_text("metrics = {}\n")
    out = tmp_path / "installation.age"
    archive.pack(tmp_path / "home", out, archive.lock_with(WORDS))
    return out


def test_a_passphrase_that_this_machine_would_take_long_for_is_not_called_wrong(
    sealed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A work factor far above what age allows here stands for one that it misjudged."""
    monkeypatch.setattr(archive, "_PAUSE_SECONDS", 0.0)
    assert archive.unpack(sealed, archive.open_with(WORDS), None) == 1
    much = re.sub(rb"(-> scrypt \S+) \d+", rb"\1 30", sealed.read_bytes(), count=1)
    sealed.write_bytes(much)
    with pytest.raises(BackupUnusable, match="too slow, or too busy now"):
        archive.unpack(sealed, archive.open_with(WORDS), None)


def test_another_passphrase_is_refused_at_once(sealed: Path) -> None:
    with pytest.raises(BackupUnusable, match="does not open by this passphrase"):
        archive.unpack(sealed, archive.open_with("another one altogether"), None)
