"""A crowd leaves whole: one permutation, fixed before any of it is sent, each report once."""

import hashlib
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import chi2

from hubbub.conservation import Window
from hubbub.errors import BadParameter
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.shuffler.mixing_policy import CrowdTake, Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import Stream, StreamTable, read_stream_table
from tests.conftest import CatalogFiles
from tests.support.mixing import (
    Sink,
    a_sink,
    law_of,
    mixers,
    sealed_reports,
    until_empty,
    window_of_today,
)

DAY = 86_400
CUT = Policy().cut_reports(50)


def _table(catalog_files: CatalogFiles, mix: str, crowd: int) -> StreamTable:
    table = read_stream_table(catalog_files.streams)
    whole = replace(table.streams["theme"], mix=mix, min_batch=crowd)
    return replace(table, streams={**table.streams, "theme": whole})


def _check_delivered_once(sink: Sink, reports: list[bytes]) -> None:
    assert sink.sealed == Counter(reports), "each report once"
    assert set(sink.delivered.values()) == {1}, "each cut once"


@pytest.mark.parametrize("processes", [1, 3])
async def test_an_epoch_waits_until_it_is_over_and_leaves_whole(
    catalog_files: CatalogFiles, redis_url: str, processes: int
) -> None:
    table, window = _table(catalog_files, "epoch", 300), window_of_today()
    async with a_sink() as (sink, address), mixers(redis_url, table, address, processes) as m:
        reports = sealed_reports(900)
        await m.pools[0].add({window: reports[:600]})
        for _ in range(20):
            await m.turn()
        await m.pools[0].add({window: reports[600:]})
        for _ in range(20):
            await m.turn()
        assert not sink.delivered, "nothing leaves an open epoch"
        assert (await law_of(m.pools[0], window))["pooled"] == 900
        await m.pools[0].close_windows()
        await until_empty(m, window)
        _check_delivered_once(sink, reports)
        assert len(sink.delivered) == -(-900 // CUT)
        law = await law_of(m.pools[0], window)
        assert law == {
            "acknowledged": 900,
            "dummies": 0,
            "pooled": 0,
            "in_flight": 0,
            "withheld": 0,
        }


async def test_an_epoch_with_one_report_too_few_is_withheld(
    catalog_files: CatalogFiles, redis_url: str
) -> None:
    table, window = _table(catalog_files, "epoch", 300), window_of_today()
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 1) as m:
        await m.pools[0].add({window: sealed_reports(299)})
        await m.pools[0].close_windows()
        await until_empty(m, window)
        assert not sink.delivered
        assert (await law_of(m.pools[0], window))["withheld"] == 299


async def test_a_rolling_crowd_leaves_whenever_enough_reports_have_gathered(
    catalog_files: CatalogFiles, redis_url: str
) -> None:
    table, window = _table(catalog_files, "rolling", 300), window_of_today()
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 1) as m:
        [pool], reports = m.pools, sealed_reports(1000)

        async def until_pooled(number: int) -> None:
            async def has_pooled() -> bool:
                law = await law_of(pool, window)
                return (law["pooled"], law["in_flight"]) == (number, 0)

            await m.until(has_pooled)

        await pool.add({window: reports[:299]})
        for _ in range(20):
            await m.turn()
        assert not sink.delivered
        await pool.add({window: reports[299:320]})
        await until_pooled(0)
        _check_delivered_once(sink, reports[:320])
        await pool.add({window: reports[320:500]})
        for _ in range(20):
            await m.turn()
        assert sink.sealed.total() == 320, "the next crowd has not come together"
        await pool.add({window: reports[500:]})
        await until_pooled(0)
        _check_delivered_once(sink, reports)


async def test_a_crowd_cut_by_several_mixers_that_die_is_one_permutation(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step may be repeated, and be anybody's; the secret says which cut a report is in."""
    monkeypatch.setattr("hubbub.shuffler.crowd_pool._CUT_AT_ONCE", 70)
    secret = "5" * 64

    def batch_index_of(report: bytes, cuts: int) -> int:
        return int(hashlib.sha1(secret.encode() + report).hexdigest()[:12], 16) % cuts  # noqa: S324 as Redis has it

    pools, window = [Pool(server) for _ in range(3)], Window("theme", 7)
    reports, late = sealed_reports(1000), sealed_reports(40)
    await pools[0].add({window: reports})
    with monkeypatch.context() as fixed:
        fixed.setattr("secrets.token_hex", lambda _: secret)
        assert (
            await pools[0].crowds.leave(window, CrowdTake(1001, 20), await pools[0].level(window))
            == 0
        )
        level = await pools[0].level(window)
        assert await pools[0].crowds.leave(window, CrowdTake(1000, 20), level) == 1000
        assert await pools[1].crowds.leave(window, CrowdTake(1000, 20), level) == 0, "it has left"
    await pools[0].add({window: late})
    step = 0
    more: bytes | None = b"0"
    [crowd] = await pools[0].crowds.ids(window)
    while more is not None:
        assert not await pools[0].batches(window), "none is sent before all are cut"
        law = await law_of(pools[0], window)
        assert (law["pooled"], law["in_flight"]) == (40, 1000)
        more = await pools[step % 3].crowds.cut(window, crowd, more if step % 2 else b"0")
        step += 1
    assert step > len(pools), "every hand cuts"  # how many a step finds is Redis' own
    assert await pools[1].crowds.cut(window, crowd) is None, "asked once more, nothing happens"
    owner = pools[(step - 1) % 3]
    cuts = {}
    for batch_id, former in (await owner.batches(window)).items():
        cuts[batch_id] = await owner.claim(window, batch_id, former)
    assert Counter(report for cut in cuts.values() for report in cut) == Counter(reports)
    assert len(cuts) == 50
    for cut in cuts.values():
        assert len({batch_index_of(report, 50) for report in cut}) == 1
    law = await law_of(pools[0], window)
    assert (law["pooled"], law["in_flight"]) == (40, 1000)
    # Whether a report came early or late says nothing of where it leaves.
    place = {report: n for n, cut in enumerate(cuts.values()) for report in cut}
    early = Counter(place[report] for report in reports[:500])
    sizes = Counter(place.values())
    off = sum((early[n] - sizes[n] / 2) ** 2 / (sizes[n] / 4) for n in sizes)
    assert chi2.sf(off, len(sizes)) > 1e-6


async def test_a_mixer_that_died_while_cutting_is_followed_by_another(
    catalog_files: CatalogFiles, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.shuffler.crowd_pool._CUT_AT_ONCE", 100)
    table, window = _table(catalog_files, "epoch", 300), window_of_today()
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 1) as m:
        server = await connect_redis(redis_url)
        gone, reports = Pool(server), sealed_reports(1000)
        await gone.add({window: reports})
        await gone.crowds.leave(window, CrowdTake(300, 40), await gone.level(window))
        [crowd] = await gone.crowds.ids(window)
        assert await gone.crowds.cut(window, crowd)
        await m.pools[0].close_windows()
        await until_empty(m, window)
        _check_delivered_once(sink, reports)
        await server.close()


@pytest.mark.parametrize("settings", [{"mix": "whole"}, {"mix": None}, {"min_batch": 10**9}])
def test_a_stream_with_an_unknown_mix_is_refused(settings: dict[str, Any]) -> None:
    fields = {"sealed_bytes": 50, "min_batch": 100, "epoch_seconds": 60, "grace_seconds": 60}
    with pytest.raises((ValueError, BadParameter), match=next(iter(settings))):
        Stream(**{**fields, **settings})
