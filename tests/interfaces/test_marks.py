"""Marks: the same in memory and in Redis; what cannot be is refused, what cannot be read is not."""

import json
from dataclasses import asdict

import pytest

from hubbub.aggregator.query.marked_days import Mark, Marks, check_mark
from hubbub.errors import BadParameter, UnknownMark, UnknownMetric
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import MemoryServer
from tests.interfaces.running_aggregator import House
from tests.support import web


@pytest.mark.parametrize("backend", ["memory", "redis"])
async def test_marks_are_kept_by_name(home: House, backend: str) -> None:
    async def body(marks: Marks) -> None:
        late, early = Mark("late", "2026-03-01", metric="theme"), Mark("early", "2026-01-01", "é")
        for mark in (late, early):
            assert await marks.save(mark) == mark
        assert await marks.visible_marks() == await marks.visible_marks("theme") == [early, late]
        assert await marks.visible_marks("launches") == [early]
        moved = Mark("late", "2025-12-31")
        await marks.save(moved)
        assert await marks.visible_marks() == [moved, early, late], "a name is free in every metric"
        await marks.save(Mark("late", "2026-02-01", metric="launches"))
        with pytest.raises(UnknownMark):
            await marks.remove("late", "homepage")
        await marks.remove("late", "theme")
        await marks.remove("late")
        assert [mark.metric for mark in await marks.visible_marks()] == ["", "launches"]
        await marks.remove("early")
        with pytest.raises(UnknownMark, match='no mark is called "early"; there are: late'):
            await marks.remove("early")
        with pytest.raises(UnknownMark, match='; did you mean "late"'):
            await marks.remove("lates")
        await marks.save(late)
        with pytest.raises(BadParameter, match="name the metric: launches, theme"):
            await marks.remove("late")
        await marks.remove("late", "launches")
        await marks.remove("late")
        assert await marks.visible_marks() == []

    if backend == "memory":
        await body(Marks(MemoryServer()))
        return
    server = await connect_redis(home.redis_url)
    marks = Marks(server)
    await server.ask("HSET", "aggregator:marks", "torn", b"{")
    await server.ask("HSET", "aggregator:marks", "odd", b'["name"]')
    await body(marks)
    await server.ask("HDEL", "aggregator:marks", "torn", "odd")
    await server.close()


async def test_marks_of_an_earlier_version_are_read_replaced_and_removed(home: House) -> None:

    server = await connect_redis(home.redis_url)
    marks = Marks(server)
    for name in ("first", "second"):
        mark = Mark(name, "2026-01-01", metric="theme")
        await server.ask("HSET", "aggregator:marks", name, json.dumps(asdict(mark)))
    other = await marks.save(Mark("first", "2026-01-02"))
    newer = await marks.save(Mark("first", "2026-01-03", metric="theme"))
    await marks.remove("second")
    assert await marks.visible_marks() == [other, newer]
    for mark in (other, newer):
        await marks.remove(mark.name, mark.metric)
    assert not await server.ask("EXISTS", "aggregator:marks")
    await server.close()


async def test_the_number_of_marks_is_limited() -> None:
    server = MemoryServer()
    marks = Marks(server)
    for number in range(999):  # saving reads all of them
        mark = Mark(f"m{number}", "2026-01-01")
        await server.ask("HSET", "aggregator:marks", f"/{mark.name}", json.dumps(asdict(mark)))
    await marks.save(Mark("m999", "2026-01-01"))
    await marks.save(Mark("m7", "2026-01-02"))
    with pytest.raises(BadParameter, match="1000 marks exist"):
        await marks.save(Mark("more", "2026-01-01"))


def test_an_invalid_mark_is_refused(home: House) -> None:
    bundle = home.signed.bundle
    check_mark(Mark("release_2", "2026-11-22", "said", "theme"), bundle)
    for wrong, message in (
        (Mark("Big News", "2026-11-22"), "name must match"),
        (Mark("x", "2026-02-30"), "2026-02-30 does not exist in the calendar; write"),
        (Mark("x", "20261122"), "'20261122' is not a date; write it as 2026-11-22"),
        (Mark("x", "2026-11-22", "\x1b[2J"), "control or invalid characters"),
        (Mark("x", "2026-11-22", "y" * 401), "401 characters"),
    ):
        with pytest.raises(BadParameter, match=message):
            check_mark(wrong, bundle)
    with pytest.raises(UnknownMetric):
        check_mark(Mark("x", "2026-11-22", metric="nosuch"), bundle)
    url = f"{home.page}/v1/marks/x"
    assert web.put(url, json={"date": "2026-11-22", "metric": "nosuch"}).status_code == 404
    assert web.put(url, json={"date": "2026-11-22", "when": 1}).status_code == 422
    assert web.delete(url).status_code == 404
    assert web.get(f"{home.page}/v1/marks", params={"metric": "theme"}).json() == {"marks": []}
