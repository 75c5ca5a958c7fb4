"""Counting where it is hard: altered copies, clocks that are wrong, windows that are flooded."""

import itertools
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.aggregator.ingest import window_report_limit
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.ingest.window_report_limit import Room
from hubbub.aggregator.store.contract import Outcome
from hubbub.aggregator.store.redis import RedisStore
from hubbub.catalog import epoch_at
from hubbub.conservation import Window
from hubbub.errors import BadParameter, ServiceUnavailable, StoreFull, StoreUnavailable
from hubbub.mechanisms import Totals
from hubbub.runtime.clocks import Clocks
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.sealing.hpke import seal, seal_info
from tests.conftest import CatalogFiles
from tests.support.catalogs import catalog_toml, metric_toml, promised_catalog_of
from tests.support.moment import now
from tests.support.servers import redis_server
from tests.support.stores import totals

HOUR = 3600.0
# More bytes than a tag costs, so that a few hundred fill a window.
OF_FEW = 100


@pytest.fixture(scope="module")
def opener(catalog_files: CatalogFiles) -> Iterator[Opener]:
    new_opener = Opener(catalog_files.opening, 1)
    yield new_opener
    new_opener.close()


class Counting:
    """An aggregator's intake on a real Redis."""

    def __init__(
        self, catalog_files: CatalogFiles, server: RedisServer, opener: Opener, shards: int = 1
    ) -> None:
        self.made, self.server, self.opener = catalog_files, server, opener
        self.store = RedisStore(server, shards)
        self.ahead = 0.0
        self.start()

    def start(self, room: Room | None = None) -> None:
        clocks = Clocks(lambda: now() + self.ahead, self.server.times)
        self.clocks = clocks
        self.intake = Intake(
            self.made.bundle, self.opener, self.store, Stages(), clocks=clocks, room=room
        )

    async def restart(self) -> None:
        self.start()
        await self.clocks.look()

    def window(self, stream: str, back: int = 0) -> Window:
        length = self.made.bundle.metric(stream).epoch
        return Window(stream, epoch_at(now(), length) - back)

    def sealed(self, window: Window, number: int, payload: bytes = b"\1") -> list[bytes]:
        key, info = self.made.bundle.keys[0], seal_info(*window)
        return [seal(payload, key.half("x25519"), info) for _ in range(number)]

    async def apply(
        self,
        window: Window,
        sealed: Sequence[bytes],
        batch_id: bytes | None = None,
        dummies: int = 0,
    ) -> Outcome:
        batch_id = batch_id or secrets.token_bytes(16)
        key = self.made.bundle.keys[0].id
        return await self.intake.apply(window, batch_id, key, sealed, dummies)

    async def report_counts(self, window: Window) -> dict[str, int]:
        return dict((await self.store.report_counts())[window])


@asynccontextmanager
async def _counting(
    catalog_files: CatalogFiles, url: str, opener: Opener
) -> AsyncIterator[Counting]:
    server = await connect_redis(url)
    await server.client.flushdb()
    counting = Counting(catalog_files, server, opener)
    await counting.clocks.look()
    yield counting
    await server.close()


Opened = Callable[[], AbstractAsyncContextManager[Counting]]


@pytest.fixture
def opened(catalog_files: CatalogFiles, redis_url: str, opener: Opener) -> Opened:
    return lambda: _counting(catalog_files, redis_url, opener)


async def _refusal(call: Awaitable[object]) -> str | None:
    """What was said, if there was no room."""
    try:
        await call
    except StoreFull as error:
        return str(error)
    return None


def _altered(report: bytes, place: int) -> bytes:
    """A copy with its tag, and one bit of what is behind it turned."""
    return report[:place] + bytes([report[place] ^ 1]) + report[place + 1 :]


PADDED = catalog_toml(
    metric_toml(
        "padded",
        mechanism="grr",
        epsilon=1.0,
        values=["red", "green", "blue", "grey"],
        central_epsilon=1.0,
        crowd=50,
        dummies=40,
    )
)


@pytest.mark.parametrize("shards", [1, 4])
async def test_dummies_are_counted_exactly_after_any_part_of_their_crowd(
    opener: Opener, catalog_files: CatalogFiles, server: RedisServer, shards: int
) -> None:
    """A crowd of 60 reports and 40 dummies, in five parts; most of two were counted before."""
    catalog = promised_catalog_of(PADDED)
    bundle = replace(catalog_files.bundle, metrics=catalog.metrics, history={})
    counting = Counting(replace(catalog_files, bundle=bundle), server, opener, shards)
    await counting.clocks.look()
    window = counting.window("padded")
    early = counting.sealed(window, 36, b"\0")
    await counting.apply(window, early)
    late, dummies = counting.sealed(window, 24, b"\2"), counting.sealed(window, 40, b"\1")
    # Of 20 in a part 8 count as dummies, by its size; so many are really among them.
    crowd = [*early[:18], *dummies[:2], *early[18:], *dummies[2:4], *late, *dummies[4:]]
    for first in range(0, 100, 20):
        await counting.apply(window, crowd[first : first + 20], dummies=8)
    assert await totals(counting.store, window) == Totals(
        cells=[36, 40, 24, 0], reports=60, dummies=40
    )
    law = await counting.report_counts(window)
    assert (law["counted"], law["counted:dummies"], law["duplicate"]) == (60, 40, 36)
    over = counting.window("padded", back=30)
    await counting.apply(over, counting.sealed(over, 10), dummies=4)
    assert await counting.report_counts(over) == {"rejected:expired": 10}


@pytest.mark.parametrize("seed", range(4))
async def test_altered_copies_of_reports_use_no_places(opened: Opened, seed: int) -> None:
    """Several of each, in every order, in one batch with the honest report and in one before."""
    chance, times = random.Random(seed), 2 if seed == 3 else 1
    async with opened() as counting:
        window = counting.window("theme")
        honest = counting.sealed(window, 20)
        copies = [
            _altered(report, chance.randrange(16, len(report)))
            for report in honest
            for _ in range(seed)
        ]
        if seed == 3:
            await counting.apply(window, copies)
        mixed = [*copies, *honest, *honest[:5]]
        if seed != 1:  # else all copies stand in front
            chance.shuffle(mixed)
        assert await counting.apply(window, mixed) is Outcome.APPLIED
        assert (await totals(counting.store, window)).reports == 20
        law = await counting.report_counts(window)
        repeats = times * (len(copies) - len(set(copies)))
        assert (law["counted"], law["duplicate"]) == (20, 5 + repeats)
        assert law.get("rejected:not_opened", 0) == times * len(set(copies))
        assert sum(law.values()) == len(mixed) + (len(copies) if seed == 3 else 0)
        await counting.apply(window, [*copies, *honest])
        assert (await totals(counting.store, window)).reports == 20


async def test_every_order_of_a_report_and_its_copies_counts_it(opened: Opened) -> None:
    async with opened() as counting:
        window = counting.window("theme")
        for number, order in enumerate(itertools.permutations(range(4)), 1):
            [report] = counting.sealed(window, 1)
            several = [report, _altered(report, 20), _altered(report, 40), report]
            await counting.apply(window, [several[place] for place in order])
            assert (await totals(counting.store, window)).reports == number


OFF = [-24, -4.5, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4.5, 24]
WAITS = (ServiceUnavailable, BadParameter)


@pytest.mark.parametrize("stream", ["crashed", "theme"])
@pytest.mark.parametrize("hours", OFF)
async def test_replays_count_nothing_however_far_the_clocks_are_apart(
    opened: Opened, hours: float, stream: str
) -> None:
    """From its start, and for how long it may be; and once it is right all is counted, once."""
    async with opened() as counting:
        counting.ahead = hours * HOUR
        await counting.restart()
        for back in (0, 1):
            window = counting.window(stream, back)
            sealed, first = counting.sealed(window, 20), secrets.token_bytes(16)
            counted = 0
            for batch_id in (first, *(secrets.token_bytes(16) for _ in range(3)), first):
                try:
                    await counting.apply(window, sealed, batch_id)
                    counted = 20
                except WAITS:
                    continue
                assert (await totals(counting.store, window)).reports == 20
            ahead, counting.ahead = counting.ahead, 0.0
            await counting.restart()
            await counting.apply(window, sealed, first)
            await counting.apply(window, sealed)
            law = await counting.report_counts(window)
            assert law["counted"] == 20, (law, counted)
            assert set(law) == {"counted", "duplicate"}, "nothing was refused for good"
            counting.ahead = ahead
            await counting.restart()


@pytest.mark.parametrize("hours", OFF)
async def test_replays_of_an_epoch_by_the_wrong_clock_count_nothing(
    opened: Opened, hours: float
) -> None:
    """Shuffler and devices have the aggregator's clock; Redis alone is right, or wrong."""
    async with opened() as counting:
        counting.ahead = hours * HOUR
        await counting.restart()
        window = Window("crashed", int((now() + counting.ahead) // HOUR))
        sealed = counting.sealed(window, 20)
        ids = [secrets.token_bytes(16) for _ in range(3)]
        waits = 0
        for batch_id in ids:
            try:
                await counting.apply(window, sealed, batch_id)
            except WAITS:
                waits += 1
        assert waits in {0, 3}
        assert (await totals(counting.store, window)).reports == (0 if waits else 20)
        counting.intake._clocks = Clocks(lambda: now() + counting.ahead)  # Redis is set
        for batch_id in ids:
            await counting.apply(window, sealed, batch_id)
        assert await counting.report_counts(window) == {"counted": 20, "duplicate": 40}


@pytest.mark.parametrize("stream", ["crashed", "theme"])
async def test_replays_count_nothing_while_the_clock_steps(opened: Opened, stream: str) -> None:
    """The same process all along, its clock anew before every delivery."""
    async with opened() as counting:
        chance = random.Random(7)
        window = counting.window(stream)
        sealed = counting.sealed(window, 20)
        for number in range(60):
            counting.ahead = chance.choice(OFF) * HOUR
            if number % 7 == 0:
                await counting.clocks.look()
            await counting.apply(window, sealed)
            assert (await totals(counting.store, window)).reports == 20
        assert await counting.report_counts(window) == {"counted": 20, "duplicate": 59 * 20}


async def test_a_late_resend_is_recognized_while_its_window_accepts_reports(opened: Opened) -> None:
    """In the last second of it, by a right clock, after a wrong one counted the first."""
    for ahead in (-3 * HOUR, 0.0, 2 * HOUR):
        async with opened() as counting:
            window = counting.window("crashed")
            closes = (window.epoch + 3) * HOUR
            sealed = counting.sealed(window, 20)
            counting.ahead = ahead
            counting.start()  # of this clock alone: Redis is where it is
            counting.intake._clocks = Clocks(lambda: now() + counting.ahead)
            await counting.apply(window, sealed)
            counting.intake._clocks = Clocks(
                itertools.repeat(closes - 1).__next__, monotonic=lambda: 1.0
            )
            await counting.apply(window, sealed)
            assert await counting.report_counts(window) == {"counted": 20, "duplicate": 20}
            assert await counting.server.client.ttl(window.key("aggregator:tags")) == -1


async def test_tags_that_are_gone_end_the_counting_of_their_window_alone(opened: Opened) -> None:
    """As version 0.1 left them where its clock was behind: they had expired at once."""
    async with opened() as counting:
        window, other = counting.window("crashed"), counting.window("theme")
        sealed = counting.sealed(window, 20)
        await counting.apply(window, sealed)
        await counting.server.client.delete(window.key("aggregator:tags"))
        await counting.apply(window, sealed)
        await counting.apply(other, counting.sealed(other, 20))
        assert await counting.report_counts(window) == {"counted": 20, "rejected:forgotten": 20}
        assert await counting.report_counts(other) == {"counted": 20}


async def test_a_batch_waits_until_its_epoch_is_certainly_over(opened: Opened) -> None:
    async with opened() as counting:
        old = counting.window("crashed", back=9)
        sealed = counting.sealed(old, 20)
        with pytest.raises(ServiceUnavailable, match="or were watched for less than an hour"):
            await counting.apply(old, sealed)
        new = counting.window("crashed")
        await counting.apply(new, counting.sealed(new, 20))
        await counting.apply(old, sealed)
        assert await counting.report_counts(old) == {"rejected:expired": 20}
        counting.ahead = 5 * HOUR
        await counting.restart()
        with pytest.raises(ServiceUnavailable, match="18000 s apart"):
            await counting.apply(new, counting.sealed(new, 20))
        assert counting.intake.counts["clocks_differ"] == 1
        assert await counting.report_counts(new) == {"counted": 20}


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["memory", "number"])
async def test_a_window_that_is_flooded_stops_no_other(
    catalog_files: CatalogFiles,
    opener: Opener,
    tmp_path: Path,
    by: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Batches of fake reports until it is full; honest ones of another metric beside them."""
    monkeypatch.setattr(window_report_limit, "TAG_COST", OF_FEW)
    with redis_server(tmp_path / "redis") as port:
        async with _counting(catalog_files, f"redis://127.0.0.1:{port}/0", opener) as counting:
            client = counting.server.client
            if by == "memory":
                used = int((await client.info("memory"))["used_memory"])
                await client.config_set("maxmemory", used + 420_000)
            most = 0 if by == "memory" else 2500
            counting.start(Room(counting.store, most, monotonic=_hurried()))
            flooded, honest = counting.window("crashed"), counting.window("theme")
            batches = [counting.sealed(flooded, 500) for _ in range(12)]
            ids = [secrets.token_bytes(16) for _ in batches]
            refused, theme = [], 0
            for batch_id, sealed in zip(ids, batches, strict=True):
                if (error := await _refusal(counting.apply(flooded, sealed, batch_id))) is not None:
                    assert "crashed:" in error
                    assert "--max-window" in error
                    refused.append((batch_id, sealed))
                await counting.apply(honest, counting.sealed(honest, 20))
                theme += 20
            assert 3 <= len(refused) < 12, "some of it is counted, most of it waits"
            assert (await counting.report_counts(honest)) == {"counted": theme}
            assert counting.intake.counts["window_full"] == len(refused)
            await client.config_set("maxmemory", 0)
            counting.start()
            for batch_id, sealed in refused:
                assert await counting.apply(flooded, sealed, batch_id) is Outcome.APPLIED
            assert await counting.report_counts(flooded) == {"counted": 6000}


@pytest.mark.thorough
async def test_streams_that_are_flooded_one_after_the_other_leave_room(
    catalog_files: CatalogFiles, opener: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three metrics filled to the brim in all the epochs that are open; a fourth is counted."""
    monkeypatch.setattr(window_report_limit, "TAG_COST", OF_FEW)
    with redis_server(tmp_path / "redis") as port:
        async with _counting(catalog_files, f"redis://127.0.0.1:{port}/0", opener) as counting:
            client = counting.server.client
            used = int((await client.info("memory"))["used_memory"])
            await client.config_set("maxmemory", used + 900_000)
            counting.start(Room(counting.store, monotonic=_hurried()))
            for stream in ("crashed", "crashed/0.5", "theme"):
                for back in (0, 1):
                    window = counting.window(stream, back)
                    for _ in range(30):
                        error = await _refusal(counting.apply(window, counting.sealed(window, 500)))
                        if error is not None:
                            break
                    assert error is not None, "something limits it"
                    assert "reports of one window" in error, "and not that Redis is full"
            honest = counting.window("editor")
            await counting.apply(honest, counting.sealed(honest, 100))
            assert (await counting.report_counts(honest))["counted"] == 100


async def test_a_window_that_will_not_fit_is_logged_at_its_first_batch(
    catalog_files: CatalogFiles,
    opener: Opener,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As large as the epoch before; with room for it nothing is said."""
    monkeypatch.setattr(window_report_limit, "TAG_COST", 2000)
    with redis_server(tmp_path / "redis") as port:
        async with _counting(catalog_files, f"redis://127.0.0.1:{port}/0", opener) as counting:
            before, window = counting.window("theme", 1), counting.window("theme")
            await counting.apply(before, counting.sealed(before, 1000))
            client = counting.server.client
            used = int((await client.info("memory"))["used_memory"])
            for room, count in ((20_000_000, 0), (1_500_000, 1)):
                await client.config_set("maxmemory", used + room)
                counting.start(Room(counting.store, monotonic=_hurried()))
                for _ in range(2):
                    await counting.apply(window, counting.sealed(window, 20))
                assert caplog.text.count(f"{window.name} will not fit") == count
            assert "raise maxmemory" in caplog.text


def _hurried() -> Callable[[], float]:
    """A clock that says at every look that a second has passed."""
    return itertools.count(1.0).__next__


@pytest.mark.thorough
async def test_a_window_that_is_full_is_not_opened_again_at_once(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as counting:
        counting.start(Room(counting.store, 10))
        window = counting.window("theme")
        sealed = counting.sealed(window, 20)
        calls = 0
        open_all = counting.opener.open

        async def counted(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            return await open_all(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(counting.opener, "open", counted)
        for _ in range(5):
            with pytest.raises(StoreUnavailable):
                await counting.apply(window, sealed)
        assert calls == 1
