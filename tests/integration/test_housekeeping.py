"""The keys of the aggregator: held while an epoch needs them, then gone from memory and file."""

import asyncio
import logging
from pathlib import Path

import pytest

from hubbub.aggregator.housekeeping import Housekeeping
from hubbub.aggregator.opener import Opener
from hubbub.catalog import (
    read_opening_keys,
    read_public_keys,
    seal,
    seal_info,
    write_new_keys,
)

DAY = 86_400
START = 20_000 * DAY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_new_keys(tmp_path / "keys", start=START, period_seconds=28 * DAY, periods=3)
    return tmp_path / "keys"


async def _opened(opener: Opener, folder: Path, key_id: int) -> bool:
    [key] = [key for key in read_public_keys(folder) if key.id == key_id]
    sealed = seal(b"payload", key.key, seal_info("theme", 7))
    _, did_open = await opener.open("theme", 7, key_id, [sealed] * 3)
    return bool(did_open.all())


def test_a_key_goes_when_its_epochs_are_closed(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "opening.keys.json"
    now = [START + 5.0 * DAY]

    async def body() -> None:
        opener = Opener(read_opening_keys(path), 1)
        keeping = Housekeeping(path, read_public_keys(folder), opener, lambda: now[0])
        keeping.look()
        assert opener.key_ids == [1, 2, 3]
        assert await _opened(opener, folder, 1)
        now[0] = START + (28 + 21) * DAY
        keeping.look()
        assert opener.key_ids == [2, 3]
        assert [key.id for key in read_opening_keys(path)] == [2, 3]
        assert not await _opened(opener, folder, 1)
        assert await _opened(opener, folder, 2)
        assert "run hubbub keys rotate" not in caplog.text
        now[0] = START + (84 - 20) * DAY
        keeping.look()
        keeping.look()
        assert keeping.days_left == 20
        opener.close()

    with caplog.at_level(logging.INFO):
        asyncio.run(body())
    assert caplog.text.count("run hubbub keys rotate") == 1, "said once"


def test_a_file_that_may_not_be_written_is_said(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "opening.keys.json"

    async def body() -> None:
        opener = Opener(read_opening_keys(path), 1)
        public = read_public_keys(folder)
        (folder / ".lock").mkdir()  # no lock file can be there now
        Housekeeping(path, public, opener, lambda: START + 60.0 * DAY).look()
        assert opener.key_ids == [2, 3], "forgotten all the same"
        opener.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(body())
    assert "old keys stay in their file" in caplog.text
