"""Dummies leave with a crowd: as many as it takes, once, alike to reports, whatever dies when."""

import base64
import json
import random
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom, chi2

from hubbub.conservation import Window, sum_terms
from hubbub.conservation import balances as balanced
from hubbub.errors import BadParameter, BadPayload, StoreUnavailable
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.sealing.hpke import open_sealed, seal_info
from hubbub.shuffler import crowd_pool as crowds_module
from hubbub.shuffler.crowd_pool import Crowds
from hubbub.shuffler.crowd_release import Departures, sealed_dummies
from hubbub.shuffler.mixing_policy import CrowdTake
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import Stream, StreamTable, read_stream_table
from tests.conftest import CatalogFiles
from tests.support import torn_scripts
from tests.support.mixing import (
    Mixing,
    a_sink,
    crowd_table,
    mixers,
    sealed_reports,
    until_empty,
    window_of_today,
)

DAY = 86_400
VALUES = 16
LENGTH = 49
WINDOW = Window("theme", 7)


@pytest.fixture(scope="module")
def table(catalog_files: CatalogFiles, tmp_path_factory: pytest.TempPathFactory) -> StreamTable:
    """As `hubbub catalog build` writes it of a metric with 16 values and 100 dummies in a crowd."""
    folder = tmp_path_factory.mktemp("dummies")
    own = {"min_batch": 300, "dummies": 100, "values": VALUES}
    return crowd_table(catalog_files.streams, catalog_files.bundle, folder, **own)


async def _law(pool: Pool, window: Window) -> dict[str, int]:
    return sum_terms([(await pool.report_counts())[window]])


async def _until_empty(mixing: Mixing, window: Window) -> dict[str, int]:
    await until_empty(mixing, window)
    return await _law(mixing.pools[0], window)


def _payloads(catalog_files: CatalogFiles, window: Window, sealed: Sequence[bytes]) -> list[int]:
    start = window.epoch * DAY
    [period] = [key for key in catalog_files.bundle.keys if key.start <= start < key.end]
    [key] = [key for key in catalog_files.opening if key.id == period.id]
    info = seal_info(window.stream, window.epoch)
    return [int.from_bytes(open_sealed(report, key.load(), info), "little") for report in sealed]


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_crowd_leaves_with_its_dummies_and_batches_reveal_only_sizes(
    catalog_files: CatalogFiles, table: StreamTable, redis_url: str, processes: int
) -> None:
    window, reports = window_of_today(), sealed_reports(600)
    async with a_sink() as (sink, address), mixers(redis_url, table, address, processes) as m:
        await m.pools[0].add({window: reports})
        for _ in range(10):
            await m.turn()
        assert not sink.delivered
        assert not await _keys_of(redis_url, "dummies"), "none is made before it is over"
        await m.pools[0].close_windows()
        law = await _until_empty(m, window)
        assert (law["acknowledged"], law["dummies"]) == (600, 100)
        assert set(sink.delivered.values()) == set(sink.sealed.values()) == {1}
        more = [report for report in sink.sealed if report not in set(reports)]
        assert sink.sealed.total() == 700
        assert {len(report) for report in more} == {LENGTH}
        values = _payloads(catalog_files, window, more)
        assert set(values) <= set(range(VALUES))
        assert max(Counter(values).values()) <= binom.isf(1e-8, 100, 1 / VALUES)
        assert sum(share for _, share in sink.sizes.values()) == 100
        for size, share in sink.sizes.values():
            assert abs(share - size / 7) < 1, "its size, and not how many it has"

        async def nothing_is_left() -> bool:
            return not await _keys_of(redis_url, "dummies", "shares", "crowd:", "batch:")

        await m.until(nothing_is_left)


async def _keys_of(redis_url: str, *parts: str) -> list[bytes | str]:
    server = await connect_redis(redis_url)
    keys = [key for part in parts for key in await server.client.keys(f"shuffler:{part}*")]
    await server.close()
    return keys


async def test_dummies_do_not_make_a_crowd(table: StreamTable, redis_url: str) -> None:
    window = window_of_today()
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 1) as m:
        await m.pools[0].add({window: sealed_reports(299)})
        await m.pools[0].close_windows()
        law = await _until_empty(m, window)
        assert not sink.delivered
        assert (law["withheld"], law["dummies"]) == (299, 0)
        assert not await _keys_of(redis_url, "dummies")


async def test_every_crowd_of_a_rolling_stream_has_its_own_dummies(
    table: StreamTable, redis_url: str
) -> None:
    window = window_of_today()
    rolling = replace(table.streams["theme"], mix="rolling")
    rolling_table = replace(table, streams={**table.streams, "theme": rolling})
    async with a_sink() as (sink, address), mixers(redis_url, rolling_table, address, 1) as m:
        for times in (1, 2):
            await m.pools[0].add({window: sealed_reports(320)})
            law = await _until_empty(m, window)
            assert (law["acknowledged"], law["dummies"]) == (320 * times, 100 * times)
            assert sink.sealed.total() == 420 * times
            assert sum(share for _, share in sink.sizes.values()) == 100 * times


async def test_a_crowd_that_may_have_left_gets_no_more_dummies(
    table: StreamTable, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis sets it apart, the answer is lost, and another process cuts it: the next has others."""
    leave = Crowds.leave

    async def leaves_and_says_nothing(crowds: Crowds, *arguments: Any, **more: Any) -> int:
        assert await leave(crowds, *arguments, **more) == 320
        raise StoreUnavailable("gone")

    window, rolling = window_of_today(), replace(table.streams["theme"], mix="rolling")
    async with a_sink() as (_, address), mixers(redis_url, table, address, 1) as m:
        [mixer], [pool] = m.mixers, m.pools
        await m.turn()  # from here on it waits, and the test looks in its place
        await pool.add({window: sealed_reports(320)})
        await mixer._departures.look(window, 1, rolling, is_over=False)
        await _until_padded(mixer._departures, window)
        with monkeypatch.context() as once:
            once.setattr(Crowds, "leave", leaves_and_says_nothing)
            with pytest.raises(StoreUnavailable):
                await mixer._departures.look(window, 1, rolling, is_over=False)
        [crowd_id] = await pool.crowds.ids(window)
        await pool.add({window: sealed_reports(320)})
        assert await mixer._departures._crowd_id(window, rolling) is None
        await _until_padded(mixer._departures, window)
        assert await mixer._departures._crowd_id(window, rolling) != crowd_id


async def _until_padded(departures: Departures, window: Window) -> None:
    """Until no dummies are being made: on a loaded machine they may be there by now."""
    if window in departures._padding:
        await departures._padding[window]


async def _leave_and_cut(pool: Pool, crowd: CrowdTake, crowd_id: bytes) -> None:
    """What a mixer does of a crowd at one look."""
    await pool.crowds.leave(WINDOW, crowd, await pool.level(WINDOW), crowd_id)
    for cut_id in await pool.crowds.ids(WINDOW):
        await pool.crowds.cut(WINDOW, cut_id)


async def _in_flight(pool: Pool) -> tuple[Counter[bytes], list[tuple[int, int]]]:
    """All that is in batches of processes that live no more; of each its size and share."""
    sealed: Counter[bytes] = Counter()
    batches = []
    for batch_id, owner in (await pool.batches(WINDOW)).items():
        claimed = await pool.claim(WINDOW, batch_id, owner)
        sealed.update(claimed)
        batches.append((len(claimed), await pool.share(WINDOW, batch_id)))
    return sealed, batches


@pytest.mark.parametrize("hidden", [0, 7])
@pytest.mark.parametrize("step", ["_LEAVE", "_CUT"])
async def test_torn_after_any_write_nothing_is_lost_or_doubled(
    table: StreamTable, server: RedisServer, step: str, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every write of every second call, in turn; another process goes on each time.

    hidden: how many more are expected among the reports, and told.
    """
    monkeypatch.setattr("hubbub.shuffler.crowd_pool._CUT_AT_ONCE", 40)
    whole: str = getattr(crowds_module, step)
    crowd = CrowdTake(90, 20, 30, hidden)
    dummies = sealed_dummies(table, window_of_today(), table.streams["theme"], 30)

    async def torn_at(pools: list[Pool], reports: list[bytes], writes: int) -> int:
        """How often it was torn at this write, from the pool to batches in flight."""
        await pools[0].add({WINDOW: reports})
        crowd_id, torn = secrets.token_bytes(16), 0
        assert await pools[0].crowds.stage(WINDOW, crowd_id, dummies) == 30
        for turn in range(100):
            with monkeypatch.context() as once:
                if turn % 2 == 0:
                    once.setattr(crowds_module, step, torn_scripts.torn(whole, writes))
                try:
                    await _leave_and_cut(pools[turn % 2], crowd, crowd_id)
                except StoreUnavailable:
                    torn += 1
            if (await _law(pools[0], WINDOW))["pooled"] + len(
                await pools[0].crowds.ids(WINDOW)
            ) == 0:
                break
        return torn

    pools, reports = [Pool(server) for _ in range(2)], sealed_reports(90)
    for writes in count():
        await server.client.flushdb()
        torn = await torn_at(pools, reports, writes)
        law = await _law(pools[0], WINDOW)
        assert balanced(law)
        assert (law["dummies"], law["in_flight"]) == (30, 120)
        sealed, batches = await _in_flight(pools[0])
        assert sealed == Counter([*reports, *dummies])
        assert sum(share for _, share in batches) == 30 + hidden
        assert all(abs(share - size * (30 + hidden) / 120) < 1 for size, share in batches)
        if not torn:
            break
    assert writes >= 5, "so many places to die at, at least"


async def test_a_crowd_that_lost_dummies_goes_back_and_leaves_with_others(
    table: StreamTable, server: RedisServer
) -> None:
    """As half a script that comes back after a crash can have it: none is cut without them."""
    pool, reports = Pool(server), sealed_reports(90)
    sealed = sealed_dummies(table, window_of_today(), table.streams["theme"], 30)
    await pool.add({WINDOW: reports})
    crowd_id = secrets.token_bytes(16)
    await pool.crowds.stage(WINDOW, crowd_id, sealed)
    assert (
        await pool.crowds.leave(WINDOW, CrowdTake(90, 20, 30), await pool.level(WINDOW), crowd_id)
        == 90
    )
    await server.client.spop(f"{WINDOW.key('shuffler:dummies')}:{crowd_id.hex()}", 3)
    late = sealed_reports(5)
    await pool.add({WINDOW: late})
    assert await pool.crowds.cut(WINDOW, crowd_id) is None
    assert not await pool.crowds.ids(WINDOW)
    law = await _law(pool, WINDOW)
    assert (law["pooled"], law["in_flight"], law["dummies"]) == (95, 0, 0)
    assert balanced(law)
    level = await pool.level(WINDOW)
    assert await pool.crowds.leave(WINDOW, CrowdTake(90, 20, 30), level, crowd_id) == 0, (
        "27 are too few"
    )


STREAM = {
    "sealed_bytes": LENGTH,
    "min_batch": 300,
    "epoch_seconds": DAY,
    "grace_seconds": DAY,
    "mix": "epoch",
    "dummies": 100,
    "values": VALUES,
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mix": "pool"}, "must not have mix"),
        ({"dummies": -1}, "dummies -1 is not a whole number"),
        ({"dummies": 10**7}, "dummies 10000000 is not a whole number"),
        ({"values": 0}, "values 0 is outside"),
        ({"values": 257}, "values 257 is outside"),
    ],
)
def test_dummies_that_no_crowd_could_have_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Stream(**{**STREAM, **fields})


def test_dummies_without_a_key_are_refused_when_the_table_is_read(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    document = json.loads(catalog_files.streams.read_bytes())
    path = tmp_path / "streams.json"
    document["streams"]["theme"] = STREAM
    path.write_text(json.dumps(document))
    with pytest.raises(BadParameter, match="'theme' has dummies, but key 1 has no public half"):
        read_stream_table(path)
    for key in document["keys"]:
        key["public"] = base64.b64encode(bytes(32)).decode()
    path.write_text(json.dumps(document))
    with pytest.raises(BadParameter, match="not a stream table"):
        read_stream_table(path)


def test_a_stream_table_with_other_dummies_is_refused_at_reload(table: StreamTable) -> None:
    other = replace(table.streams["theme"], dummies=0)
    with pytest.raises(BadParameter, match="number of dummies"):
        replace(table, streams={"theme": other}).check_follows(table)


def test_dummies_have_uniform_values_from_system_coins(
    catalog_files: CatalogFiles, table: StreamTable
) -> None:
    window, counts = window_of_today(), Counter[int]()
    drawn = []
    for _ in range(2):
        random.seed(5)
        sealed = sealed_dummies(table, window, table.streams["theme"], 200)
        assert len(set(sealed)) == 200
        drawn.append(_payloads(catalog_files, window, sealed))
        counts.update(drawn[-1])
    assert drawn[0] != drawn[1], "no seed of a program's foretells them"
    assert set(counts) == set(range(VALUES)), "one is missing once in 10^10 runs"
    off = sum((counts[value] - 400 / VALUES) ** 2 / (400 / VALUES) for value in range(VALUES))
    assert chi2.sf(off, VALUES - 1) > 1e-7
    with pytest.raises(BadPayload):
        _payloads(catalog_files, Window("theme", window.epoch + 1), sealed)
    with pytest.raises(BadParameter, match="no public key"):
        sealed_dummies(replace(table, keys=()), window, table.streams["theme"], 1)
