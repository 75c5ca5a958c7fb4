"""Noise dummies: each value has a secret number of them, drawn once, whatever dies when."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from hubbub.conservation import Window, balances
from hubbub.errors import BadPayload
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer
from hubbub.sealing.dummy_laws import CountNoise, ValueNoise
from hubbub.sealing.hpke import open_sealed, seal_info
from hubbub.shuffler import crowd_release as departures_module
from hubbub.shuffler.crowd_release import Departures, SideTasks, sealed_dummies
from hubbub.shuffler.grpc_door import OperatorService, ShownCounts
from hubbub.shuffler.mixing_policy import Policy
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.stream_table import StreamTable
from hubbub.wire.v1.services_pb2 import StatusRequest
from tests.conftest import CatalogFiles
from tests.support.clocks import FakeClock
from tests.support.mixing import (
    a_sink,
    crowd_table,
    law_of,
    mixers,
    sealed_reports,
    until_empty,
    window_of_today,
)

DAY = 86_400
VALUES = 5
LAW = CountNoise(6 << 30, 7)
OF_SUM = CountNoise(5 << 30, 40)
NOISE = CountNoise(3 << 31, 20)
CROWD = 100
UNCOUNTED = dict.fromkeys(("counted", "duplicate", "rejected", "fillers"), 0)


@pytest.fixture(scope="module", params=[{}, {"sum_noise": [OF_SUM.odds, OF_SUM.reach]}])
def table(
    catalog_files: CatalogFiles,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> StreamTable:
    """As `hubbub catalog build` writes it of a metric with noise dummies, or of a fixed sum."""
    folder = tmp_path_factory.mktemp("noise")
    own = {"min_batch": CROWD, "value_noise": [LAW.odds, LAW.reach], "values": VALUES}
    return crowd_table(catalog_files.streams, catalog_files.bundle, folder, **own, **request.param)


def _law(table: StreamTable) -> ValueNoise:
    law = table.streams["theme"].value_law
    assert law
    return law


def _values(catalog_files: CatalogFiles, window: Window, sealed: Iterable[bytes]) -> Counter[int]:
    """Which values those name that can be opened: made-up reports cannot."""
    start = window.epoch * DAY
    [period] = [key for key in catalog_files.bundle.keys if key.start <= start < key.end]
    [key] = [key for key in catalog_files.opening if key.id == period.id]
    names: Counter[int] = Counter()
    for report in sealed:
        try:
            payload = open_sealed(report, key.load(), seal_info(window.stream, window.epoch))
        except BadPayload:
            continue
        names[int.from_bytes(payload, "little")] += 1
    return names


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("noise", [None, NOISE])
async def test_the_drawn_dummies_of_each_value_leave_and_only_their_mean_is_shown(
    table: StreamTable,
    catalog_files: CatalogFiles,
    redis_url: str,
    processes: int,
    noise: CountNoise | None,
) -> None:
    """Beside those that hide the number of reports, each of any value."""
    more = noise.most if noise else 0
    stream = replace(table.streams["theme"], noise=noise, min_batch=CROWD + more)
    new_table = replace(table, streams={"theme": stream})
    window, reports = window_of_today(), sealed_reports(300)
    async with a_sink() as (sink, address), mixers(redis_url, new_table, address, processes) as m:
        pool = m.pools[0]
        await pool.add({window: reports})
        await m.turn()
        named = await pool.hidden.draw_by_value(window, _law(table))
        evenly = await pool.hidden.draw_number(window, noise) if noise else 0
        await pool.close_windows()
        await until_empty(m, window)
        total = sum(named) + evenly
        law = await law_of(pool, window)
        assert (law["acknowledged"], law["dummies"]) == (300 + total, 0)
        assert set(sink.sealed.values()) == {1}
        assert set(reports) < set(sink.sealed)
        names = _values(catalog_files, window, sink.sealed)
        assert names.total() == total
        assert all(names[value] >= number for value, number in enumerate(named))
        assert noise or [names[value] for value in range(VALUES)] == named
        expected = _law(table).expected + (noise.reach if noise else 0)
        assert sum(share for _, share in sink.sizes.values()) == expected
        service = OperatorService(ShownCounts(pool, lambda: new_table.streams))
        status = await service.Status(StatusRequest(), None)  # type: ignore[arg-type]  # not used
        [terms] = [dict(shown.terms) for shown in status.windows]
        assert terms["dummies"] == expected
        assert terms["acknowledged"] == 300 + total - expected
        assert balances({**UNCOUNTED, **terms, "counted": sink.sealed.total()})


@pytest.mark.parametrize("reports", [CROWD + 2 * LAW.reach, CROWD, CROWD - 1])
async def test_the_minimum_uses_the_estimated_number_of_reports(
    table: StreamTable, redis_url: str, reports: int
) -> None:
    window = window_of_today()
    async with a_sink() as (sink, address), mixers(redis_url, table, address, 1) as m:
        pool = m.pools[0]
        await pool.add({window: sealed_reports(reports)})
        total = reports + sum(await pool.hidden.draw_by_value(window, _law(table)))
        await pool.close_windows()
        await until_empty(m, window)
        leaves = min(reports, total - _law(table).expected) >= CROWD
        assert sink.sealed.total() == (total if leaves else 0)
        assert (await law_of(pool, window))["withheld"] == (0 if leaves else total)


async def test_number_and_time_of_sealed_dummies_of_a_value_are_independent_of_the_secret(
    table: StreamTable, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that `/metrics` and traces show ends before the drawn ones are stored."""
    sealed: list[tuple[int, int]] = []
    timed: list[bool] = []

    def counting(*arguments: Any) -> list[bytes]:
        sealed.append(arguments[-2:])
        return sealed_dummies(*arguments)

    monkeypatch.setattr(departures_module, "sealed_dummies", counting)
    async with a_sink() as (_, address), mixers(redis_url, table, address, 1) as m:
        hidden, [seconds, _] = m.pools[0].hidden, m.mixers[0]._stages.histograms
        keep = hidden.keep

        async def observed(*arguments: Any) -> None:
            [family] = seconds.collect()
            timed.append(any(s.value for s in family.samples if s.name.endswith("_count")))
            await keep(*arguments)

        monkeypatch.setattr(hidden, "keep", observed)
        await m.pools[0].add({window_of_today(): sealed_reports(CROWD)})
        await m.pools[0].close_windows()
        await until_empty(m, window_of_today())
    assert sealed == [(most, value) for value, most in enumerate(_law(table).most)]
    assert timed == [True]


class _Killed(BaseException):
    """A process ends here."""


def _dying(server: RedisServer, commands: int) -> RedisServer:
    """As a process has it that does not live to hear of what comes after so many commands."""
    dying, whole, number = copy(server), server._execute, count()

    async def execute(*arguments: Any, **more: Any) -> list[Any]:
        replies = await whole(*arguments, **more)
        if next(number) >= commands:
            raise _Killed
        return replies

    dying._execute = execute  # type: ignore[method-assign]  # as a test may
    return dying


async def _cut_up(server: RedisServer, table: StreamTable, window: Window) -> None:
    """What a process does of an epoch that is over, until all of it is in batches."""
    pool, tasks = Pool(server), SideTasks()
    departures = Departures(
        pool,
        table,
        Policy(max_batch=50),
        tasks,
        stages=Stages(),
        clock=FakeClock(),
        landed=asyncio.Event(),
    )
    while (await pool.level(window)).reports or await pool.crowds.ids(window):
        await departures.look(window, 1, table.streams[window.stream], is_over=True)
        await asyncio.gather(*tasks._running)


async def test_a_crowd_leaves_once_with_its_first_numbers_after_any_kill(
    table: StreamTable, catalog_files: CatalogFiles, redis_url: str
) -> None:
    """While it draws, seals, adds, sets apart or cuts; another process goes on each time."""
    window, reports = window_of_today(), sealed_reports(CROWD + 30)

    async def numbers_after(server: RedisServer, drawn: bytes | None) -> list[int]:
        pool, sealed, shares = Pool(server), Counter[bytes](), 0
        assert await pool.hidden.draw_by_value(window, _law(table)) == [], "they are deleted"
        for batch_id, owner in (await pool.batches(window)).items():
            sealed.update(await pool.claim(window, batch_id, owner))
            shares += await pool.share(window, batch_id)
        assert set(sealed.values()) == {1}
        assert set(reports) < set(sealed)
        names, law = _values(catalog_files, window, sealed), await law_of(pool, window)
        named = [names[value] for value in range(VALUES)]
        assert drawn in {None, b"", ",".join(map(str, named)).encode()}, "b'' once it has left"
        total = len(reports) + sum(named)
        assert (law["acknowledged"], law["in_flight"], law["dummies"]) == (total, total, 0)
        assert shares == _law(table).expected
        assert balances({**law, **UNCOUNTED})
        return named

    server, has_died, seen = await connect_redis(redis_url), True, list[list[int]]()
    while has_died:
        await server.client.flushdb()
        await Pool(server).add({window: reports})
        try:
            await _cut_up(_dying(server, len(seen)), table, window)
            has_died = False
        except _Killed:
            pass
        drawn = await server.ask("HGET", window.key("shuffler:law"), "named")
        await _cut_up(server, table, window)
        seen.append(await numbers_after(server, drawn))
    assert len(seen) >= 10, "so many places to die at, at least"
    assert len(set(map(tuple, seen))) > len(seen) / 2, "every epoch has numbers of its own"
    await server.client.flushdb()
    await server.close()


@pytest.mark.parametrize("noise", [None, NOISE])
@pytest.mark.parametrize("reports", [300, CROWD - 1])
async def test_after_a_crowd_left_or_was_withheld_redis_and_log_have_no_drawn_number(
    table: StreamTable,
    redis_url: str,
    caplog: pytest.LogCaptureFixture,
    noise: CountNoise | None,
    reports: int,
) -> None:
    """Nor does anything of it come back when reports come too late."""
    more = noise.most if noise else 0
    stream = replace(table.streams["theme"], noise=noise, min_batch=CROWD + more)
    new_table = replace(table, streams={"theme": stream})
    caplog.set_level("INFO")
    window = window_of_today()
    server = await connect_redis(redis_url)
    async with a_sink() as (sink, address), mixers(redis_url, new_table, address, 1) as m:
        pool = m.pools[0]
        await pool.add({window: sealed_reports(reports)})
        await pool.close_windows()
        await until_empty(m, window)
        sent = sink.sealed.total()
        await pool.add({window: sealed_reports(77)})
        await until_empty(m, window)
        assert sink.sealed.total() == sent
        await m.turn()
        law = await server.client.hgetall(window.key("shuffler:law"))
        assert (law[b"noise"], law[b"named"], law[b"dummies:noise"]) == (b"", b"", b"0")
        gone = sent + int(law[b"withheld"])
        assert int(law[b"acknowledged"]) == gone
        assert not await server.client.exists(window.key("shuffler:noise"))
    await server.close()
    texts = [record.getMessage() for record in caplog.records if "withheld" in record.getMessage()]
    assert set(texts) == {f"theme epoch {window_of_today().epoch}: reports withheld"}


@pytest.mark.parametrize("mix", ["pool", "rolling"])
def test_numbers_that_would_be_seen_more_than_once_are_refused(
    table: StreamTable, mix: str
) -> None:
    with pytest.raises(ValueError, match=r"must not have mix|needs mix"):
        replace(table.streams["theme"], mix=mix)
