"""Shards: an epoch's pool on several slots, and still one crowd, whatever dies while it gathers."""

from collections import Counter
from dataclasses import replace
from itertools import count

import pytest
from redis.crc import key_slot
from scipy.stats import chi2

from hubbub.conservation import Window
from hubbub.errors import StoreUnavailable
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.shuffler import crowd_pool as crowds_module
from hubbub.shuffler.mixing_policy import CrowdTake
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.shards import by_shard, may_spread, places
from hubbub.shuffler.stream_table import StreamTable, read_stream_table
from tests.conftest import CatalogFiles
from tests.support.mixing import (
    a_sink,
    law_of,
    mixers,
    sealed_reports,
    until_empty,
    window_of_today,
)
from tests.support.torn_scripts import torn

DAY = 86_400
SHARDS = 4
WINDOW = Window("theme", 7)


@pytest.fixture
def table(catalog_files: CatalogFiles) -> StreamTable:
    """`theme` leaves whole, from 300 reports on."""
    table = read_stream_table(catalog_files.streams)
    whole = replace(table.streams["theme"], mix="epoch", min_batch=300)
    return replace(table, streams={**table.streams, "theme": whole})


def test_reports_are_spread_evenly_and_come_again_to_the_same() -> None:
    reports = sealed_reports(8000)
    shards = by_shard({WINDOW: reports}, {WINDOW: SHARDS})
    assert shards == by_shard({WINDOW: reports}, {WINDOW: SHARDS})
    assert set(shards) == set(places(WINDOW, SHARDS))
    off = sum((len(part) - 2000) ** 2 / 2000 for part in shards.values())
    assert chi2.sf(off, SHARDS - 1) > 1e-7
    keys = {place.key("shuffler:pool") for place in shards}
    assert len(keys) == SHARDS
    assert WINDOW.key("shuffler:pool") in keys, "the first is where a pool without shards is"


@pytest.mark.parametrize("changes", [{"mix": "pool"}, {"dummies": 10, "values": 16}])
def test_streams_that_must_be_mixed_together_have_one_shard(
    table: StreamTable, changes: dict[str, object]
) -> None:
    stream = table.streams["theme"]
    assert may_spread(stream)
    assert not may_spread(replace(stream, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("processes", [1, 3])
async def test_all_shards_are_one_crowd(table: StreamTable, redis_url: str, processes: int) -> None:
    """600 reports in 4 shards: too few in each, enough in all. None leaves before it is over."""
    window, reports = window_of_today(), sealed_reports(600)
    async with (
        a_sink() as (sink, address),
        mixers(redis_url, table, address, processes, shards=SHARDS) as m,
    ):
        # Some came before the operator asked for shards, and some are sent twice.
        await m.pools[0].add({window: reports[:50]})
        for pool in m.pools:
            await pool.add({window: reports[50:]}, {window})
        for _ in range(20):
            await m.turn()
        assert not sink.delivered
        law = await law_of(m.pools[0], window)
        assert (law["acknowledged"], law["pooled"]) == (600, 600)
        await m.pools[0].close_windows()
        await until_empty(m, window)
        assert sink.sealed == Counter(reports), "each report once"
        assert set(sink.delivered.values()) == {1}, "each cut once"
        law = await law_of(m.pools[0], window)
        assert (law["acknowledged"], law["withheld"]) == (600, 0)

        async def archived() -> bool:
            return not await m.pools[0].windows()

        await m.until(archived)
        assert (await law_of(m.pools[0], window))["acknowledged"] == 600, "as long as it is kept"


async def test_too_few_in_all_shards_are_withheld(table: StreamTable, redis_url: str) -> None:
    window = window_of_today()
    async with (
        a_sink() as (sink, address),
        mixers(redis_url, table, address, 1, shards=SHARDS) as m,
    ):
        [pool] = m.pools
        await pool.add({window: sealed_reports(299)}, {window})
        await pool.close_windows()
        await until_empty(m, window)
        assert not sink.delivered
        assert (await law_of(pool, window))["withheld"] == 299


async def test_no_part_of_a_crowd_is_sent_while_a_node_lacks_its_part(
    table: StreamTable, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others' parts have been set apart, and wait; then all of them leave."""
    set_apart, away = crowds_module.Crowds._set_apart, True

    async def third_is_away(crowds: crowds_module.Crowds, place: object, *arguments: object) -> int:
        if away and place == places(window_of_today(), SHARDS)[2]:
            raise StoreUnavailable("away")
        return await set_apart(crowds, place, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(crowds_module.Crowds, "_set_apart", third_is_away)
    window, reports = window_of_today(), sealed_reports(600)
    async with (
        a_sink() as (sink, address),
        mixers(redis_url, table, address, 2, shards=SHARDS) as m,
    ):
        pool = m.pools[0]
        await pool.add({window: reports}, {window})
        await pool.close_windows()

        async def gathering() -> bool:
            return bool(await pool.crowds.ids(window, "gathering"))

        await m.until(gathering)
        for _ in range(30):
            await m.turn(1.0)
        assert not sink.delivered
        law = await law_of(pool, window)
        assert law["pooled"] + law["in_flight"] == 600
        assert law["withheld"] == 0, "what waits for the others is no rest"
        away = False
        await until_empty(m, window)
        assert sink.sealed == Counter(reports)


async def _gather_and_cut(pool: Pool) -> None:
    """What a mixer does of a window that is over, once."""
    levels = await pool.levels(WINDOW, SHARDS)
    gathering = await pool.crowds.ids(WINDOW, "gathering")
    crowd = CrowdTake(300, 20)
    if not gathering and sum(level.reports for level in levels) >= 300:
        await pool.crowds.leave(WINDOW, crowd, levels[0], shards=SHARDS)
        gathering = await pool.crowds.ids(WINDOW, "gathering")
    for crowd_id in gathering:
        await pool.crowds.gather(WINDOW, crowd, levels, crowd_id)
    ids_by_place = [(place, await pool.crowds.ids(place)) for place in places(WINDOW, SHARDS)]
    gathering = await pool.crowds.ids(WINDOW, "gathering")
    for place, ids in ids_by_place:
        for crowd_id in ids:
            while crowd_id not in gathering and await pool.crowds.cut(place, crowd_id):
                pass


async def _in_flight(pool: Pool) -> Counter[bytes]:
    """All that is in batches of processes that live no more."""
    sealed: Counter[bytes] = Counter()
    for place in places(WINDOW, SHARDS):
        for batch_id, owner in (await pool.batches(place)).items():
            sealed.update(await pool.claim(place, batch_id, owner))
    return sealed


@pytest.mark.parametrize("step", ["_LEAVE", "_CUT"])
async def test_torn_after_any_write_no_shard_is_left_behind(
    server: RedisServer, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every write of every second call, in turn; another process goes on each time."""
    whole: str = getattr(crowds_module, step)

    async def torn_at(pools: list[Pool], writes: int) -> int:
        often = 0
        for turn in range(60):
            with monkeypatch.context() as once:
                if turn % 2 == 0:
                    once.setattr(crowds_module, step, torn(whole, writes))
                try:
                    await _gather_and_cut(pools[turn % 2])
                except StoreUnavailable:
                    often += 1
            law = await law_of(pools[0], WINDOW)
            # What is half moved is in both places; it is in none at no time.
            assert law["pooled"] + law["in_flight"] >= law["acknowledged"] == 320
            crowd_ids = [await pools[0].crowds.ids(place) for place in places(WINDOW, SHARDS)]
            if law["pooled"] == 0 and not any(crowd_ids):
                break
        return often

    pools, reports = [Pool(server, SHARDS) for _ in range(2)], sealed_reports(320)
    for writes in count():
        await server.client.flushdb()
        await pools[0].add({WINDOW: reports}, {WINDOW})
        often = await torn_at(pools, writes)
        assert await _in_flight(pools[0]) == Counter(reports), f"torn after {writes} writes"
        law = await law_of(pools[0], WINDOW)
        assert (law["pooled"], law["in_flight"]) == (0, 320)
        if not often:
            break
    assert writes >= 4, "so many places to die at, at least"


async def test_a_real_cluster_keeps_the_shards_of_one_epoch_on_all_its_nodes(
    table: StreamTable, cluster_url: str
) -> None:
    window, reports = window_of_today(), sealed_reports(600)
    async with a_sink() as (sink, address), mixers(cluster_url, table, address, 2, shards=16) as m:
        await m.pools[0].add({window: reports}, {window})
        slots = {key_slot(place.key("shuffler:pool").encode()) for place in places(window, 16)}
        assert {slot // 5462 for slot in slots} == {0, 1, 2}, "every node has some"
        await m.pools[0].close_windows()
        await until_empty(m, window)
        assert sink.sealed == Counter(reports)
        assert set(sink.delivered.values()) == {1}
