"""How many reports there are is hidden: dummies of a drawn number, once, whatever dies when."""

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import count
from math import exp
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scipy.stats import binom

from hubbub.conservation import Window, balances
from hubbub.errors import StoreUnavailable
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.sealing.dummy_laws import CountNoise, ValueNoise
from hubbub.shuffler import crowd_pool as hidden_module
from hubbub.shuffler import crowd_release as departures_module
from hubbub.shuffler.crowd_release import sealed_dummies
from hubbub.shuffler.grpc_door import OperatorService, ShownCounts, departed_terms
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import StreamTable, read_stream_table
from hubbub.wire.v1.services_pb2 import StatusRequest, WindowStatus
from tests.conftest import CatalogFiles
from tests.support import torn_scripts
from tests.support.mixing import (
    Mixing,
    Sink,
    a_sink,
    crowd_table,
    law_of,
    mixers,
    sealed_reports,
    until_empty,
    window_of_today,
)

DAY = 86_400
VALUES = 16
# Of a twentieth of a nat, at a delta of one in a hundred.
FAINT = CountNoise.least(Fraction(exp(0.05)), 0.01)
NOISE = CountNoise(3 << 31, 20)
CROWD = 100
MINIMUM = CROWD + NOISE.most


@pytest.fixture(scope="module")
def table(catalog_files: CatalogFiles, tmp_path_factory: pytest.TempPathFactory) -> StreamTable:
    """As `hubbub catalog build` writes it of a metric that hides how many reports it has."""
    folder = tmp_path_factory.mktemp("hidden")
    own = {"min_batch": MINIMUM, "noise": [NOISE.odds, NOISE.reach], "values": VALUES}
    return crowd_table(catalog_files.streams, catalog_files.bundle, folder, **own)


@asynccontextmanager
async def _past_epoch(
    table: StreamTable, redis_url: str, reports: int
) -> AsyncIterator[tuple[Window, Sink, Mixing]]:
    """An epoch of so many reports that is over: they have left, or were withheld."""
    window = window_of_today()
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 1) as m:
        await m.pools[0].add({window: sealed_reports(reports)})
        await m.pools[0].close_windows()
        await until_empty(m, window)
        yield window, sink, m


async def _status_terms(pool: Pool, table: StreamTable) -> dict[Window, dict[str, int]]:
    """What the shuffler's Status says, to whoever may ask it."""
    service = OperatorService(ShownCounts(pool, lambda: table.streams))
    status = await service.Status(StatusRequest(), None)  # type: ignore[arg-type]  # not used
    return {Window(window.stream, window.epoch): dict(window.terms) for window in status.windows}


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("fixed", [0, 50])
async def test_a_crowd_leaves_with_a_drawn_number_of_dummies_and_the_law_balances(
    table: StreamTable, redis_url: str, processes: int, fixed: int
) -> None:
    """Beside those of a fixed number, which are told."""
    fixed_table = replace(table, streams={"theme": replace(table.streams["theme"], dummies=fixed)})
    window, reports = window_of_today(), sealed_reports(300)
    async with a_sink() as (sink, address), mixers(redis_url, fixed_table, address, processes) as m:
        pool = m.pools[0]
        await pool.add({window: reports})
        await m.turn()
        drawn = await pool.hidden.draw_number(window, NOISE)
        assert window not in await _status_terms(pool, fixed_table), "nothing is told of what waits"
        await pool.close_windows()
        await until_empty(m, window)
        law = await law_of(pool, window)
        assert (law["acknowledged"], law["dummies"]) == (300 + drawn, fixed)
        assert sink.sealed.total() == 300 + drawn + fixed
        assert set(sink.sealed.values()) == {1}
        assert set(reports) < set(sink.sealed)
        expected = NOISE.reach + fixed
        shares = [(size, share) for size, share in sink.sizes.values()]
        assert sum(share for _, share in shares) == expected
        assert all(abs(s - n * expected / sink.sealed.total()) < 1 for n, s in shares)
        terms = (await _status_terms(pool, fixed_table))[window]
        assert terms["dummies"] == expected
        assert terms["acknowledged"] == 300 + drawn - NOISE.reach
        counted = dict.fromkeys(("duplicate", "rejected", "fillers"), 0)
        assert balances({**terms, **counted, "counted": sink.sealed.total()})


@pytest.mark.parametrize(("reports", "leaves"), [(MINIMUM, True), (CROWD - 1, False)])
async def test_the_minimum_includes_dummies_and_at_least_the_crowds_reports(
    table: StreamTable, redis_url: str, reports: int, leaves: bool
) -> None:
    async with _past_epoch(table, redis_url, reports) as (window, sink, m):
        pool = m.pools[0]
        law = await law_of(pool, window)
        assert law["dummies"] == 0
        assert 0 <= law["acknowledged"] - reports <= NOISE.most
        output_count = law["acknowledged"] if leaves else 0
        assert sink.sealed.total() == output_count
        assert law["withheld"] == law["acknowledged"] - output_count
        assert (window in await _status_terms(pool, table)) is leaves


async def test_late_reports_are_withheld_and_change_no_shown_number(
    table: StreamTable, redis_url: str
) -> None:
    """Enough for a crowd of their own, which would have no number drawn to hide it."""
    async with _past_epoch(table, redis_url, 300) as (window, sink, m):
        pool = m.pools[0]
        before, sent = await _status_terms(pool, table), sink.sealed.total()
        await pool.add({window: sealed_reports(2 * MINIMUM)})
        assert await _status_terms(pool, table) == before
        await until_empty(m, window)
        assert (await law_of(pool, window))["withheld"] == 2 * MINIMUM
        assert sink.sealed.total() == sent
        assert await _status_terms(pool, table) == before
        gone = replace(table, streams={})
        [terms] = (await _status_terms(pool, gone)).values()
        assert terms["acknowledged"] == sent, "a stream that left the table is hidden on"


async def test_late_reports_of_a_withheld_epoch_never_leave(
    table: StreamTable, redis_url: str
) -> None:
    """Its dummies were withheld with it: what left now would be counted to the report."""
    async with _past_epoch(table, redis_url, CROWD - 1) as (window, sink, m):
        pool = m.pools[0]
        before = (await law_of(pool, window))["withheld"]
        await pool.add({window: sealed_reports(2 * MINIMUM)})
        await until_empty(m, window)
        assert (await law_of(pool, window))["withheld"] == before + 2 * MINIMUM
        assert sink.sealed.total() == 0
        assert window not in await _status_terms(pool, table)


async def test_the_number_of_sealed_dummies_is_independent_of_the_secret_number(
    table: StreamTable, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long a crowd waits for them would say how many they are."""
    sealed: list[int] = []

    def counting(*arguments: Any) -> list[bytes]:
        sealed.append(arguments[3])
        return sealed_dummies(*arguments)

    monkeypatch.setattr(departures_module, "sealed_dummies", counting)
    windows = [window_of_today(), Window("theme", window_of_today().epoch - 1)]
    async with a_sink() as (_, address), mixers(redis_url, table, address, 1) as m:
        for window in windows:
            await m.pools[0].add({window: sealed_reports(300)})
        await m.pools[0].close_windows()
        for window in windows:
            await until_empty(m, window)
    assert sealed == [NOISE.most] * 2


@pytest.mark.parametrize("by_value", [False, True])
async def test_a_kill_between_draw_and_departure_keeps_the_drawn_number(
    table: StreamTable, server: RedisServer, monkeypatch: pytest.MonkeyPatch, *, by_value: bool
) -> None:
    """The script is torn after every write in turn; another process goes on, with its own seals."""
    window, whole = window_of_today(), hidden_module._HIDE
    stream = table.streams["theme"]

    async def draw(pool: Pool) -> tuple[int, ...]:
        if by_value:
            return tuple(
                await pool.hidden.draw_by_value(window, ValueNoise(CountNoise(6 << 30, 7), 5))
            )
        return (await pool.hidden.draw_number(window, NOISE),)

    async def torn_at(pools: list[Pool], reports: list[bytes], writes: int) -> bool:
        await pools[0].add({window: reports})
        drawn = {await draw(pool) for pool in pools * 20}
        assert len(drawn) == 1, "whoever asks, and however often"
        number = sum(drawn.pop())
        assert not await pools[0].hidden.move_to_pool(window, 49), "none is made yet"
        torn = False
        for pool in pools:
            await pool.hidden.keep(window, sealed_dummies(table, window, stream, number))
            with monkeypatch.context() as once:
                if pool is pools[0]:
                    once.setattr(hidden_module, "_HIDE", torn_scripts.torn(whole, writes))
                try:
                    assert await pool.hidden.move_to_pool(window, 49)
                except StoreUnavailable:
                    torn = True
        law = await law_of(pools[0], window)
        assert (law["pooled"], law["dummies"]) == (len(reports) + number, number)
        assert balances(
            {**law, **dict.fromkeys(("counted", "duplicate", "rejected", "fillers"), 0)}
        )
        return torn

    for writes in count():
        await server.client.flushdb()
        if not await torn_at([Pool(server) for _ in range(2)], sealed_reports(90), writes):
            break
    assert writes >= 2


async def _attack(table: StreamTable, redis_url: str, noise: CountNoise | None) -> list[bool]:
    """Whether a guess is right who reported, of one person in each of many crowds.

    Whoever guesses knows of all others that they did, has filled up each crowd until that person
    decides whether it leaves, and sees what leaves, which answers are made of, and what is told.
    """
    crowds = 50
    fewest = CROWD + (noise.most if noise else 0)
    stream = replace(table.streams["theme"], noise=noise, min_batch=fewest)
    crowds_table = replace(table, streams={f"theme{i}": stream for i in range(crowds)})
    others = fewest - 1 - (noise.reach if noise else 0)
    truth = [secrets.randbelow(2) for _ in range(crowds)]
    windows = [window_of_today(name) for name in crowds_table.streams]
    counts: Counter[Window] = Counter()
    async with a_sink() as (_, address), mixers(redis_url, crowds_table, address, 1) as m:
        pool = m.pools[0]
        await pool.add(
            {w: sealed_reports(others + extra) for w, extra in zip(windows, truth, strict=True)}
        )
        await pool.close_windows()
        for window in windows:
            await until_empty(m, window)
        terms_by_window = await _status_terms(pool, crowds_table)
        counts.update({window: terms["acknowledged"] for window, terms in terms_by_window.items()})
    return [(counts[w] > others) == bool(extra) for w, extra in zip(windows, truth, strict=True)]


def test_an_attacker_who_knows_all_others_guesses_at_chance_whether_one_person_reported(
    table: StreamTable, redis_url: str
) -> None:
    right = asyncio.run(_attack(table, redis_url, FAINT))
    most = exp(0.05) / (1 + exp(0.05)) + 0.01
    assert binom.sf(sum(right) - 1, len(right), most) > 1e-7


def test_with_a_visible_number_the_same_guess_is_always_right(
    table: StreamTable, redis_url: str
) -> None:
    assert all(asyncio.run(_attack(table, redis_url, None)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mix": "pool"}, "must not have mix"),
        ({"mix": "rolling"}, "noise needs mix"),
        ({"min_batch": NOISE.most}, "above the most dummies"),
        ({"values": 0}, "values 0 is outside"),
    ],
)
def test_noise_that_hides_no_number_is_refused(
    table: StreamTable, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        replace(table.streams["theme"], **settings)


@pytest.mark.parametrize(
    "noise", [[1, 2], [1 << 33], [1 << 33, 0], "x", [1 << 33, 10**6], [2.5, 3]]
)
def test_a_stream_table_with_an_invalid_noise_law_is_refused(
    catalog_files: CatalogFiles, tmp_path: Path, noise: object
) -> None:
    document = json.loads(catalog_files.streams.read_bytes())
    document["streams"]["theme"] |= {"mix": "epoch", "noise": noise, "values": VALUES}
    path = tmp_path / "streams.json"
    path.write_text(json.dumps(document))
    with pytest.raises(Exception, match="hubbub catalog build"):
        read_stream_table(path)


NAMES = ("theme", "crash", "launch", "diet", "health", "faith")


@pytest.mark.thorough
def test_an_attacker_with_all_counts_and_connection_times_guesses_the_metric_at_chance(
    table: StreamTable, redis_url: str
) -> None:
    """An attacker's notebook: 240 devices, six metrics, a look after every report.

    Each look takes every term that any face shows, and guesses the stream of which one grew.
    """
    plain = replace(table.streams["theme"], noise=None, mix="pool", min_batch=50)
    streams = dict.fromkeys(NAMES, plain)
    reported = Random(0).choices(NAMES, k=240)

    async def right_guesses(*, development: bool) -> int:
        server = await connect_redis(redis_url)
        await server.execute([("FLUSHDB",)])
        pool, guesser = Pool(server), Random(1)
        counts = ShownCounts(pool, lambda: streams, development=development)
        service, right_guesses = OperatorService(counts), 0
        before: dict[str, dict[str, int]] = {}
        for number, name in enumerate(reported, 1):
            await pool.add({Window(name, window_of_today().epoch): sealed_reports(1)})
            status = await service.Status(StatusRequest(), None)  # type: ignore[arg-type]  # not used
            by_stream = {window.stream: dict(window.terms) for window in status.windows}
            for window, terms in (await counts.windows()).items():  # as /metrics has them
                assert by_stream[window.stream] == dict(terms)
            if not development:
                assert status.total["acknowledged"] == number, "operators see all of it at once"
            grew = [stream for stream in NAMES if by_stream.get(stream) != before.get(stream)]
            right_guesses += guesser.choice(grew or NAMES) == name
            before = by_stream
        await server.close()
        return right_guesses

    chance, sigma = 240 / 6, (240 / 6 * 5 / 6) ** 0.5
    assert abs(asyncio.run(right_guesses(development=False)) - chance) <= 3 * sigma
    assert asyncio.run(right_guesses(development=True)) == 240, (
        "where counts are live it finds everybody"
    )


def test_status_shows_reports_that_left_by_batches_and_balances(table: StreamTable) -> None:
    gone, new = Window("plain", 3), Window("plain", 4)
    zero = {"dummies": 0, "in_flight": 0, "withheld": 0}
    terms = {
        gone: {"acknowledged": 90, "dummies": 7, "pooled": 25, "in_flight": 60, "withheld": 0},
        new: {"acknowledged": 4, "pooled": 4, **zero},
    }
    counts = departed_terms(terms, {"plain": replace(table.streams["theme"], noise=None)}, ())
    assert counts == {gone: {**terms[gone], "acknowledged": 65, "pooled": 0}}, (
        "of a new one nothing"
    )


def test_no_term_of_a_crowd_that_leaves_in_parts_is_negative(table: StreamTable) -> None:
    """The mean of all dummies may be more than what left so far, dummies and reports."""
    window = Window("theme", 3)
    noise = CountNoise(3 << 31, 20)
    stream = replace(table.streams["theme"], noise=None, value_noise=noise, values=5)
    terms = {"acknowledged": 900, "dummies": 0, "pooled": 840, "in_flight": 60, "withheld": 0}
    shown = departed_terms({window: terms}, {"theme": stream}, {window})[window]
    assert shown == {**terms, "acknowledged": 0, "dummies": 60, "pooled": 0}
    WindowStatus(stream=window.stream, epoch=window.epoch, terms=shown)
