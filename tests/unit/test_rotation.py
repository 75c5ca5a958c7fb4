"""Rotation: new keys follow the old ones, old epochs still open, what nobody needs is gone."""

import time
from pathlib import Path

import pytest

from hubbub.bundles import OpeningKeyPublic, key_at
from hubbub.cli.main import main
from hubbub.epochs import MONTH_SECONDS
from hubbub.errors import KeysUnusable
from hubbub.keys.opening_key_files import (
    forget_keys,
    read_opening_keys,
    read_public_keys,
    rotate_keys,
    still_needed,
    write_new_keys,
)
from hubbub.sealing.hpke import open_sealed, seal, seal_info
from tests.support.commands import Capture, output_of, refusal_of

DAY, WEEK = 86_400, 604_800
NOW = 20_000 * DAY + 5000.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_new_keys(tmp_path / "keys", start=19_900 * DAY, period_seconds=28 * DAY, periods=5)
    return tmp_path / "keys"


def _opens(folder: Path, key: OpeningKeyPublic) -> bool:
    info = seal_info("theme", 7)
    sealed = seal(b"payload", key.half("x25519"), info)
    keys = {
        opening_key.id: opening_key.load()
        for opening_key in read_opening_keys(folder / "opening.keys.json")
    }
    return key.id in keys and open_sealed(sealed, keys[key.id], info) == b"payload"


def test_new_keys_follow_the_last_and_old_epochs_still_open(folder: Path) -> None:
    before = read_public_keys(folder)
    added, deleted = rotate_keys(
        folder, now=NOW, period_seconds=28 * DAY, periods=3, sure=True, longest="week"
    )
    after = read_public_keys(folder)
    assert [key.id for key in added] == [6, 7, 8]
    assert added[0].start == before[-1].end
    assert deleted == [key for key in before if not still_needed(key, NOW, "week")]
    assert len(deleted) == 3
    assert after == (*before[3:], *added)
    assert all(_opens(folder, key) for key in after)
    assert not any(_opens(folder, key) for key in deleted)
    for start in range(before[3].start, before[-1].end, DAY):
        assert key_at(after, start) == key_at(before, start), "an epoch keeps its key"
    assert (folder / "opening.keys.json").stat().st_mode & 0o77 == 0


def test_a_key_is_needed_until_its_last_week_closes() -> None:
    key = OpeningKeyPublic(id=1, start=0, end=10 * WEEK, public=bytes(31) + b"\x09")
    assert still_needed(key, 12 * WEEK - 1, "week")
    assert not still_needed(key, 12 * WEEK, "week")
    april = 90 * DAY  # of 1970, after the March that the key ends in
    assert still_needed(key, april + 2 * MONTH_SECONDS - 1, "month")
    assert not still_needed(key, april + 2 * MONTH_SECONDS, "month")


def test_a_key_that_leaked_is_replaced_from_a_day_on(folder: Path) -> None:
    before = read_public_keys(folder)
    anew = 20_003 * DAY
    added, _ = rotate_keys(folder, now=NOW, period_seconds=7 * DAY, periods=4, anew_from=anew)
    after = read_public_keys(folder)
    assert added[0].start == anew
    assert key_at(after, anew - DAY) == key_at(after, int(NOW))
    old, new = key_at(after, anew - 1), key_at(after, anew)
    assert old is not None
    assert new is not None
    assert old.id in {key.id for key in before}
    assert new.id not in {key.id for key in before}
    assert _opens(folder, old), "what it opened before it still opens"
    assert not any(_opens(folder, key) for key in before if key.start >= anew)


def test_a_folder_without_keys_is_refused_with_the_command_that_makes_them(
    tmp_path: Path, capsys: Capture
) -> None:
    assert main(["keys", "rotate", str(tmp_path / "none")]) == 2
    assert "give a folder made by: hubbub keys new" in capsys.readouterr().err


def test_keys_that_ran_out_long_ago_begin_today(folder: Path) -> None:
    much_later = 30_000 * DAY + 77.0
    added, deleted = rotate_keys(folder, now=much_later, period_seconds=DAY, periods=1, sure=True)
    assert len(deleted) == 5
    assert (added[0].start, added[0].end) == (30_000 * DAY, 30_001 * DAY)


def test_the_aggregator_forgets_keys_in_their_file(folder: Path) -> None:
    path = folder / "opening.keys.json"
    forget_keys(path, {1, 3})
    assert [key.id for key in read_opening_keys(path)] == [2, 4, 5]
    with pytest.raises(KeysUnusable, match="cannot be"):
        forget_keys(folder / "none" / "opening.keys.json", {1})


@pytest.mark.slow
def test_keys_rotate_names_its_changes(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    folder = str(tmp_path / "keys")
    assert main(["keys", "new", folder, "--days", "7", "--periods", "4"]) == 0
    assert main(["keys", "rotate", folder, "--days", "7", "--periods", "1"]) == 0
    assert "added key 5: epochs from " in capsys.readouterr().out
    today = time.strftime("%Y-%m-%d", time.gmtime(NOW))
    out = output_of(capsys, "keys", "rotate", folder, "--anew-from", today)
    assert "added key 6: " in out
    assert "deleted key 5: " in out
    assert main(["keys", "rotate", folder, "--anew-from", "2020-01-01"]) == 2
    assert "is in the past" in capsys.readouterr().err
    assert "cannot be written" in refusal_of(capsys, "keys", "rotate", str(tmp_path / "none"))


def test_one_wrong_clock_deletes_no_key(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong clock, ten years ahead or half a year: the operator has to say the day, too."""
    before = read_public_keys(folder)
    for wrong, status in ((NOW + 90 * DAY, 2), (NOW + 3650 * DAY, 2), (NOW + 20 * DAY, 0)):
        monkeypatch.setattr(time, "time", lambda wrong=wrong: wrong)
        assert main(["keys", "rotate", str(folder), "--periods", "1"]) == status
        assert set(before) <= set(read_public_keys(folder))
        assert all(_opens(folder, key) for key in before)
    assert "--today YYYY-MM-DD" in capsys.readouterr().err
    assert main(["keys", "rotate", str(folder), "--today", "2024-01-01"]) == 2
    assert "differs from this machine's clock" in capsys.readouterr().err
    monkeypatch.setattr(time, "time", lambda: NOW)
    today = time.strftime("%Y-%m-%d", time.gmtime(NOW))
    assert main(["keys", "rotate", str(folder), "--today", today, "--longest", "day"]) == 0
    assert capsys.readouterr().out.count("deleted key") == 3
