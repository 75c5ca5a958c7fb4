"""Finished answers in Redis: those that the engine gives, of exactly what is counted."""

import json
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis.asyncio

from hubbub.aggregator.publishing.answer_refresher import EstimateKeeper
from hubbub.aggregator.query import EpochRange, EstimateQuery, Page, QueryEngine
from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.store.redis import RedisStore
from hubbub.aggregator.totals_deletion import delete_totals
from hubbub.catalog import epoch_at
from hubbub.conservation import Window
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import MemoryServer, RedisServer
from tests.conftest import CatalogFiles
from tests.support.servers import redis_server
from tests.support.stores import commit_of

NOW = 1_760_000_000.0
ROOT = Path(__file__).parents[2]


@dataclass
class StoreView:
    """One aggregator's view: its engine, and what it keeps answers in."""

    server: RedisServer
    store: RedisStore
    answers: RedisServer | MemoryServer
    query: QueryEngine
    keeper: EstimateKeeper
    changed: set[str]

    async def count(self, name: str, back: int = 0, each: int = 40) -> None:
        """So many reports in every cell of a metric's epoch."""
        metric = self.query.collected.bundle.metric(name)
        window = Window(name, epoch_at(NOW, metric.epoch) - back)
        await self.store.shards(window)
        size = metric.randomizer.layout.size
        tags = [secrets.token_bytes(16) for _ in range(each * size)]
        cells = np.full(size, each, dtype=np.int64)
        commit = commit_of(tags, cells, batch_reports=500)
        await self.store.add(window, commit)
        self.changed.add(name)

    @property
    def client(self) -> Any:
        """Redis itself."""
        return self.server.client


def _store_view(
    catalog_files: CatalogFiles, server: RedisServer, *, memory: bool = False
) -> StoreView:
    store = RedisStore(server)
    answers = MemoryServer() if memory else server
    query = QueryEngine(catalog_files.bundle, store, clock=lambda: NOW, server=answers)
    changed = set[str]()
    keeper = EstimateKeeper(
        query=query, answers=AnswerStore(answers), changed=changed, epochs=3, clock=lambda: NOW
    )
    return StoreView(server, store, answers, query, keeper, changed)


class _Broken(RedisStore):
    """Knows how much there is, and cannot read it."""

    async def read(self, windows: object) -> Any:
        raise AssertionError(f"nobody works anything out: {windows}")


@pytest.mark.parametrize("memory", [True, False], ids=["memory", "redis"])
async def test_a_stored_answer_equals_the_computed_one(
    catalog_files: CatalogFiles, server: RedisServer, memory: bool
) -> None:
    setup = _store_view(catalog_files, server, memory=memory)
    await setup.count("theme")
    await setup.count("theme", back=1)
    await setup.count("crashed")
    questions = [EstimateQuery(), EstimateQuery(range=EpochRange(last="7d"))]
    worked = [await setup.query.estimate("theme", question) for question in questions]
    mean = await setup.query.estimate("crashed", EstimateQuery())
    assert await setup.keeper.look() > 4
    assert await setup.keeper.look() == 0, "nothing changed since"
    again = QueryEngine(
        catalog_files.bundle,
        _Broken(setup.server),
        clock=lambda: NOW,
        server=setup.answers,
    )
    for question, answer in zip(questions, worked, strict=True):
        assert await again.estimate("theme", question) == answer
    assert await again.estimate("crashed", EstimateQuery()) == mean
    page = await again.estimate("theme", EstimateQuery(), Page(1, 1, "rank"))
    assert [value.rank for value in page.values] == [2]
    other = EstimateQuery(confidence=0.9)
    with pytest.raises(AssertionError, match="nobody works"):
        await again.estimate("theme", other)
    await setup.count("theme")
    with pytest.raises(AssertionError, match="nobody works"):  # that is out of date
        await again.estimate("theme", EstimateQuery())
    newer = await setup.query.estimate("theme", EstimateQuery())
    assert newer.reports == 2 * worked[0].reports


async def test_another_definition_of_a_metric_has_other_answers(
    catalog_files: CatalogFiles, server: RedisServer
) -> None:
    setup = _store_view(catalog_files, server)
    await setup.count("theme")
    await setup.keeper.look()
    metrics = dict(catalog_files.bundle.metrics)
    metrics["theme"] = replace(metrics["theme"], description="something else")
    changed = replace(catalog_files.bundle, metrics=metrics)
    other = QueryEngine(changed, setup.store, clock=lambda: NOW, server=setup.answers)
    answer = await other.estimate("theme", EstimateQuery())
    assert answer.description == "something else"


async def test_no_answer_from_deleted_totals_stays_whenever_they_are_deleted(
    catalog_files: CatalogFiles, server: RedisServer
) -> None:
    """Also while the answer is being worked out, and where the process ended after that."""
    home = _store_view(catalog_files, server)
    name, former = "theme", home.query._whole_estimate

    async def stored() -> set[bytes]:
        keys = await home.client.keys("aggregator:estimates:*")
        return {key.rpartition(b":")[2] for key in keys}

    await home.count(name, back=40)
    await home.count(name)
    assert await home.keeper.look() > 0
    before = await stored()
    old = home.query.collected
    every = await old.find(name, EpochRange(epochs="all"))
    date = every.date(every.epochs[0]).encode()
    assert date in before

    async def deleted_meanwhile(*arguments: Any) -> Any:
        answer = await former(*arguments)
        window = Window(name, every.epochs[0])
        await delete_totals([window], home.store, AnswerStore(home.answers))
        return answer

    await home.count(name, back=40)  # so that its answer is worked out anew
    home.query._whole_estimate = deleted_meanwhile  # type: ignore[assignment]
    home.keeper._not_before.clear()
    await home.keeper.look()
    assert await stored() == set()
    home.query._whole_estimate = former  # type: ignore[method-assign]
    home.keeper._not_before.clear()
    await home.keeper.look()
    assert await stored() == before - {date}
    # Of a process that ended before it looked again.
    await home.client.hset(f"aggregator:estimates:{name}:{date.decode()}", "version", "1")
    listed = json.dumps([date.decode()])
    await home.client.hset("aggregator:estimates", name, listed)
    home.changed.add(name)
    home.keeper._not_before.clear()
    await home.keeper.look()
    assert await stored() == before - {date}


async def test_the_viewer_user_reads_finished_answers_and_nothing_else(
    catalog_files: CatalogFiles, tmp_path: Path
) -> None:
    """As the user that ships for it."""
    users = (ROOT / "deploy/hubbub/installation/redis/users.acl").read_text()
    (tmp_path / "users.acl").write_text(users)
    with redis_server(tmp_path / "redis", aclfile=f'"{tmp_path}/users.acl"') as port:
        url = f"redis://aggregator:CHANGE-ME-AGGREGATOR@127.0.0.1:{port}/0"
        aggregator = await connect_redis(url)
        setup = _store_view(catalog_files, aggregator)
        await setup.count("theme")
        await setup.keeper.look()
        worked = await setup.query.estimate("theme", EstimateQuery())
        await aggregator.close()
        viewer: Any = redis.asyncio.Redis.from_url(
            f"redis://viewer:CHANGE-ME-VIEWER@127.0.0.1:{port}/0", decode_responses=True
        )
        ranges = json.loads(await viewer.hget("aggregator:estimates", "theme"))
        assert ranges[0] == "newest"
        for range_ in ranges:
            entries = await viewer.hgetall(f"aggregator:estimates:theme:{range_}")
            fields = {name: json.loads(text) for name, text in entries.items()}
            assert fields["reports"] == worked.reports
            assert fields["written"] == "2025-10-09T08:53:20+00:00"
            values = [(row["value"], row["estimate"], row["low"]) for row in fields["values"]]
            assert values == [(row.value, row.estimate, row.low) for row in worked.values]
            assert 0 < await viewer.ttl(f"aggregator:estimates:theme:{range_}") <= 3 * 86_400
        for command in (
            ("HGETALL", "aggregator:windows"),
            ("HSET", "aggregator:estimates:theme:newest", "reports", "1"),
            ("SCAN", "0"),
            ("HGETALL", "shuffler:windows"),
        ):
            with pytest.raises(redis.ResponseError):
                await viewer.execute_command(*command)
        await viewer.aclose()


@pytest.mark.parametrize("garbage", [b"{", b"null", b"[1]", b'{"a": 1}', b"\xff", b"[" * 100_000])
async def test_an_unreadable_stored_answer_is_computed_again(
    catalog_files: CatalogFiles, server: RedisServer, garbage: bytes
) -> None:
    setup = _store_view(catalog_files, server)
    await setup.count("theme")
    await setup.keeper.look()
    worked = await setup.query.estimate("theme", EstimateQuery())
    date = worked.dates
    for field in ("values", "promised", "twins", "unknown"):
        key = f"aggregator:estimates:theme:{date}"
        former = await setup.client.hget(key, field)
        await setup.client.hset(key, field, garbage)
        other = QueryEngine(
            catalog_files.bundle, setup.store, clock=lambda: NOW, server=setup.server
        )
        assert await other.estimate("theme", EstimateQuery()) == worked
        await setup.client.hdel(key, field)
        if former is not None:
            await setup.client.hset(key, field, former)
