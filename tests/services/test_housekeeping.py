"""Keys and tags: held while an epoch may need them, then gone; never by one look at one clock."""

import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.aggregator.housekeeping import Housekeeping
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.publishing.publisher import EpochPublisher
from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.releases.releasing import Releases
from hubbub.catalog import closing_time
from hubbub.conservation import Window
from hubbub.errors import ServiceUnavailable
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.runtime.clocks import Clocks
from hubbub.sealing.hpke import seal, seal_info
from tests.conftest import CATALOG
from tests.support.bundles import Signed, make_signed
from tests.support.fakes import MemoryReleaseLog, MemoryStore
from tests.support.stores import commit_of

HOUR, DAY, YEAR = 3600.0, 86_400, 365 * 86_400
START = int(time.time()) // DAY * DAY - 14 * DAY


class House:
    """An aggregator's housekeeping, whose clocks and collection are set by hand."""

    def __init__(self, tmp_path: Path) -> None:
        self.signed: Signed = make_signed(tmp_path, CATALOG, start=START)
        self.path = self.signed.keys / "opening.keys.json"
        self.opener = Opener(read_opening_keys(self.path), 1)
        self.store = MemoryStore()
        self.served: dict[int, float] = {}
        self.passed, self.ahead, self.redis_ahead = 0.0, 0.0, 0.0
        self.start()

    def start(self) -> None:
        self.clocks = Clocks(
            lambda: START + self.passed + self.ahead, self._redis, lambda: self.passed
        )
        self.keeping = Housekeeping(
            path=self.path,
            bundle=self.signed.bundle,
            opener=self.opener,
            store=self.store,
            clocks=self.clocks,
            served=self.served,
        )

    def begin(self, passed: float) -> None:
        """A start after this time."""
        self.passed = passed
        self.start()

    async def _redis(self) -> list[float]:
        return [START + self.passed + self.redis_ahead]

    async def live(self, seconds: float, step: float = 600.0) -> None:
        """Time passes; both look."""
        for _ in range(max(int(seconds / step), 1)):
            self.passed += step
            await self.look()

    async def look(self) -> None:
        await self.clocks.look()
        await self.keeping.look()

    async def count(self, stream: str, epoch: int) -> None:
        window = Window(stream, epoch)
        length = self.signed.bundle.metric(stream).epoch
        seconds = {"hour": 3600, "day": DAY, "week": 7 * DAY}[length]
        until = closing_time(epoch, length) + seconds
        await self.store.shards(window)
        tags = [f"{stream}{epoch:>15}".encode()[-16:]]
        cells = np.zeros(1, dtype=np.int64)
        await self.store.add(
            window,
            commit_of(tags, cells, batch_id=tags[0], seen_until=until),
        )

    async def collect(self, days: range) -> None:
        for day in days:
            await self.count("theme", START // DAY + day)

    @property
    def ids(self) -> list[int]:
        return [key.id for key in self.opener.keys]

    async def opens(self, key_id: int) -> bool:
        [key] = [key for key in self.signed.bundle.keys if key.id == key_id]
        sealed = seal(b"payload", key.half("x25519"), seal_info("theme", 7))
        _, did_open = await self.opener.open(seal_info("theme", 7), key_id, [sealed] * 3)
        return bool(did_open.all())


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    new_house = House(tmp_path)
    yield new_house
    new_house.opener.close()


def _period(house: House) -> int:
    return (house.signed.bundle.keys[0].end - START) // DAY


async def test_a_key_goes_when_its_epochs_are_closed_and_others_followed(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    days = _period(house)
    every = list(house.ids)
    await house.collect(range(days + 22))
    house.begin((days - 1.0) * DAY)
    await house.live(2 * HOUR)
    assert house.ids == every, "its epochs are open"
    assert await house.opens(1)
    house.begin((days + 22.0) * DAY)
    await house.live(HOUR / 2)
    assert house.ids == every, "nobody has watched the clocks for an hour"
    await house.live(HOUR)
    assert house.ids == every[1:]
    assert [key.id for key in read_opening_keys(house.path)] == every[1:]
    assert not await house.opens(1)
    assert await house.opens(2)
    assert "opening key 1 forgotten" in caplog.text


@pytest.mark.parametrize("ahead", [30 * DAY, 200 * DAY, 10 * YEAR])
@pytest.mark.parametrize("who", ["machine", "redis", "both"])
async def test_a_clock_that_jumps_ahead_deletes_nothing(
    house: House, ahead: float, who: str
) -> None:
    """For a moment, and for two hours; as seen by one clock, by the other, by both."""
    every = list(house.ids)
    await house.collect(range(5))
    await house.count("crashed", START // 3600)
    house.begin(4.0 * DAY)
    await house.live(2 * HOUR)
    remembered = await house.store.tag_ends()
    for duration in (1.0, 2 * HOUR):
        house.ahead = ahead if who != "redis" else 0.0
        house.redis_ahead = ahead if who != "machine" else 0.0
        await house.live(duration)
        house.ahead = house.redis_ahead = 0.0
        await house.live(2 * HOUR)
    assert house.ids == every
    assert [key.id for key in read_opening_keys(house.path)] == every
    # An hour that is long over, after which others were counted, is nobody's loss.
    windows = {w for w in remembered if w.stream == "theme"}
    assert windows <= set(await house.store.tag_ends())


@pytest.mark.parametrize("ahead", [49 * DAY, 120 * DAY, 10 * YEAR])
async def test_a_machine_that_starts_with_a_wrong_clock_deletes_no_key(
    house: House, caplog: pytest.LogCaptureFixture, ahead: float
) -> None:
    """Both clocks are the machine's; devices on it report for its time for a day."""
    caplog.set_level(logging.WARNING)
    every = list(house.ids)
    await house.collect(range(5))
    house.passed = 4.0 * DAY
    house.ahead = house.redis_ahead = ahead
    house.start()
    now = int(START + house.passed + ahead)
    for stream, seconds in (("crashed", 3600), ("theme", DAY), ("editor", 7 * DAY)):
        for before in (0, 1):
            await house.count(stream, now // seconds - before)
    await house.live(2 * DAY)
    assert house.ids == every
    assert [key.id for key in read_opening_keys(house.path)] == every
    assert caplog.text.count("opening key 1 has ended by this clock, but no counted reports") == 1


async def test_closed_keys_are_deleted_hourly_the_oldest_first(house: House) -> None:
    every = list(house.ids)
    days = _period(house)
    await house.collect(range(5 * days))
    house.begin(5.0 * days * DAY)
    counts = []
    for _ in range(6):
        await house.live(HOUR)
        counts.append(len(every) - len(house.ids))
    assert counts[0] <= 1
    assert all(0 <= after - before <= 1 for before, after in pairwise(counts))
    assert counts[-1] == 4
    assert house.ids == every[4:]


async def test_keys_of_answers_of_the_last_day_stay(house: House) -> None:
    every, days = list(house.ids), _period(house)
    await house.collect(range(days + 30))
    house.begin((days + 30.0) * DAY)
    house.served[1] = house.passed
    await house.live(23 * HOUR)
    assert house.ids == every
    await house.live(2 * HOUR)
    assert house.ids == every[1:]


async def test_tags_go_when_an_epoch_was_closed_for_its_own_length(house: House) -> None:
    first = Window("theme", START // DAY)
    await house.collect(range(4))
    house.begin(3.9 * DAY)
    await house.live(2 * HOUR)
    assert first in await house.store.tag_ends()
    await house.live(2 * HOUR)
    assert first in await house.store.tag_ends(), "nothing shows that a later day has begun"
    await house.collect(range(4, 5))
    await house.live(HOUR)
    assert first not in await house.store.tag_ends()
    assert Window("theme", START // DAY + 1) in await house.store.tag_ends()


async def test_a_file_without_write_permission_is_named(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    every, days = list(house.ids), _period(house)
    await house.collect(range(days + 30))
    house.begin((days + 30.0) * DAY)
    (house.path.parent / ".lock").unlink(missing_ok=True)
    (house.path.parent / ".lock").mkdir()  # no lock file can be there now
    await house.live(2 * HOUR)
    assert house.ids == every[1:], "forgotten all the same"
    assert "old keys stay in their file" in caplog.text


async def test_keys_that_end_soon_are_logged_once(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    house.begin(float(max(key.end for key in house.signed.bundle.keys) - START - 20 * DAY))
    await house.look()
    await house.look()
    assert house.keeping.days_left == 20
    assert caplog.text.count("run hubbub keys rotate") == 1, "said once"


class RecordingStore:
    """Takes closed epochs."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    async def wants(self, metric: str, epoch: int, date: str) -> bool:
        del date
        return f"{metric}:{epoch}" not in self.taken

    async def take(self, closed: Any) -> None:
        self.taken.append(closed.id)


@pytest.mark.parametrize("who", ["machine", "redis", "both"])
async def test_a_clock_that_jumped_closes_no_epoch(house: House, who: str) -> None:
    day = START // DAY
    await house.collect(range(3))
    house.begin(2.5 * DAY)
    hook = RecordingStore()
    publisher = EpochPublisher(
        QueryEngine(house.signed.bundle, house.store, clocks=house.clocks), [hook]
    )
    await house.live(2 * HOUR)
    house.ahead = 30.0 * DAY if who != "redis" else 0.0
    house.redis_ahead = 30.0 * DAY if who != "machine" else 0.0
    await house.look()
    assert await publisher.publish_closed() == 0
    house.ahead = house.redis_ahead = 0.0
    await house.live(10 * HOUR)
    assert await publisher.publish_closed() == 1
    assert hook.taken == [f"theme:{day}"]


async def test_no_year_s_budget_is_spent_before_it_has_surely_begun(house: House) -> None:
    await house.live(2 * HOUR)
    query = QueryEngine(house.signed.bundle, house.store, clocks=house.clocks)
    releases = Releases(query.collected, MemoryReleaseLog())
    year = datetime.fromtimestamp(START + house.passed, UTC).year
    house.ahead = float(YEAR)
    assert releases._year() == year, "Redis and the past are two against one"
    house.redis_ahead = float(YEAR)
    await house.look()
    with pytest.raises(ServiceUnavailable, match="differ on the year"):
        releases._year()
