"""What is kept at hand: bounded, never out of date, made once for all who ask."""

import asyncio
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from hubbub.aggregator.query import QueryEngine
from hubbub.aggregator.query.answer_store import AnswerStore
from hubbub.aggregator.query.answer_types import Estimated
from hubbub.aggregator.query.cache import (
    CoalescedRead,
    LruCache,
    SingleFlightCache,
    TotalsCache,
    sum_totals,
)
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.conservation import Window
from hubbub.errors import BadParameter
from hubbub.runtime.redis.command_sender import MemoryServer
from tests.support.bundles import DAY, make_signed
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.fakes import MemoryStore
from tests.support.stores import commit_of


def test_the_cache_drops_the_oldest_entry_and_stores_none_that_is_too_large() -> None:
    recent: LruCache[str, str] = LruCache(10)
    for key, size in (("a", 4), ("b", 4)):
        recent.keep(key, key, size)
    assert recent.get("a") == "a"
    recent.keep("c", "c", 4)
    assert [recent.get(key) for key in "abc"] == ["a", None, "c"]
    assert recent.size == 8
    recent.keep("d", "d", 11)
    assert (recent.get("d"), recent.size) == (None, 8)
    recent.keep("a", "new", 6)
    assert (recent.get("a"), recent.size) == ("new", 10)


async def test_an_answer_is_computed_once_for_all_callers_and_again_after_a_failure() -> None:
    call_count = 0
    gate = asyncio.Event()

    async def make() -> str:
        nonlocal call_count
        call_count += 1
        await gate.wait()
        if call_count == 2:
            raise BadParameter("no")
        return "answer"

    once = SingleFlightCache[str](100)
    tasks = [asyncio.create_task(once.get("key", (1,), make, len)) for _ in range(50)]
    await asyncio.sleep(0)
    tasks[0].cancel()  # one who leaves does not take it from the others
    gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert results[1:] == ["answer"] * 49
    assert await once.get("key", (1,), make, len) == "answer"
    assert call_count == 1
    with pytest.raises(BadParameter):
        await once.get("other", (1,), make, len)
    assert await once.get("other", (1,), make, len) == "answer"


class Held:
    """What can be looked for."""


def _of_eight(_: Held) -> int:
    return 8


async def test_an_answer_of_former_totals_is_deleted_for_a_newer_one() -> None:
    cache = SingleFlightCache[Held](1000)
    references = list[weakref.ref[Held]]()

    async def make() -> Held:
        references.append(weakref.ref(answer := Held()))
        return answer

    for version in range(50):
        await cache.get("question", (version,), make, _of_eight)
        await cache.get("question", (version,), make, _of_eight)
    assert len(references) == 50, "each version is made once"
    assert sum(reference() is not None for reference in references) == 1
    for number in range(100):
        await cache.get(number, (0,), make, _of_eight)
    assert sum(reference() is not None for reference in references) <= 1000 / (8 + 10 + 2)
    for number in range(100):
        await cache.get(number, tuple(range(91)), make, _of_eight)
    assert sum(reference() is not None for reference in references) == 1000 // (8 + 10 + 2 * 91)


async def test_an_answer_overtaken_by_another_is_not_stored() -> None:
    cache = SingleFlightCache[str](1000)
    gates = {"old": asyncio.Event(), "new": asyncio.Event()}
    versions = list[str]()

    async def ask(version: str) -> str:
        async def make() -> str:
            versions.append(version)
            await gates[version].wait()
            return f"of {version}"

        return await cache.get("question", (version,), make, len)

    asking = {}
    for version in ("old", "new"):
        asking[version] = asyncio.create_task(ask(version))
        await asyncio.sleep(0)
    for version in ("new", "old"):
        gates[version].set()
        assert await asking[version] == f"of {version}", "who asked has it all the same"
    assert await ask("new") == "of new"
    assert versions == ["old", "new"]


async def test_a_shared_read_begins_after_all_its_requests() -> None:
    now, readings = 0, 0

    async def look() -> int:
        nonlocal readings
        readings += 1
        moment = now
        for _ in range(20):
            await asyncio.sleep(0)
        return moment

    fresh = CoalescedRead(look)

    async def ask() -> None:
        start = now
        assert await fresh.get() >= start

    asking = []
    for _ in range(200):
        asking += [asyncio.create_task(ask()) for _ in range(5)]
        await asyncio.sleep(0)
        now += 1
    await asyncio.gather(*asking)
    assert 2 <= readings < 200, "1,000 who ask share few readings"


async def test_totals_are_read_again_when_they_changed_and_not_otherwise() -> None:
    class Counting(MemoryStore):
        asked = 0

        async def read(self, windows: Sequence[Window]) -> list[WindowTotals]:
            self.asked += len(windows)
            return await super().read(windows)

    store = Counting()
    cache = TotalsCache(store)
    window = Window("theme", 7)

    async def add(number: int, dummies: int = 0) -> None:
        tags = [bytes([number]) * 16]
        added = commit_of(
            tags, np.array([1, 2]), batch_id=bytes([number]), seen_until=0, dummies=dummies
        )
        await store.add(window, added)

    async def look() -> list[int]:
        counted = await cache.counted(["theme"])
        [sums] = (await cache.read(counted)).values()
        cells: list[int] = sums.cells.tolist()
        return cells

    await add(1)
    assert await look() == await look() == [1, 2]
    assert store.asked == 1
    await add(2)
    assert await look() == [2, 4]
    assert store.asked == 2
    await add(3, dummies=1)
    assert await look() == [3, 6], "a batch of dummies alone changes the cells, too"


async def test_a_query_that_began_before_a_new_bundle_stores_no_old_answer(
    tmp_path: Path,
) -> None:
    class Waiting(AnswerStore):
        gate: asyncio.Event | None = None

        async def find(self, metric: str, range_: str, version: str) -> Estimated | None:
            if self.gate:
                await self.gate.wait()
            return await super().find(metric, range_, version)

    day, store, answer_store = 20_000, MemoryStore(), Waiting(MemoryServer())
    tags = [number.to_bytes(16, "big") for number in range(110)]
    added = commit_of(tags, np.array([100, 10]), batch_id=b"1" * 16, batch_reports=500)
    await store.add(Window("theme", day), added)
    bundles = []
    for values in (["light", "dark"], ["sun", "moon"]):
        folder = tmp_path / values[0]
        folder.mkdir()
        metric = metric_toml("theme", mechanism="grr", epsilon=2.0, values=values)
        signed = make_signed(folder, catalog_toml(metric), start=day * DAY)
        bundles.append(signed.bundle)
    engine = QueryEngine(bundles[0], store, clock=lambda: (day + 2) * DAY)
    engine.answers = answer_store
    answer_store.gate = gate = asyncio.Event()
    before = asyncio.create_task(engine.estimate("theme", EstimateQuery()))
    for _ in range(20):
        await asyncio.sleep(0)
    engine.use(bundles[1])
    answer_store.gate = None
    gate.set()
    assert [value.value for value in (await before).values] == ["light", "dark"]
    for _ in range(2):
        answer = await engine.estimate("theme", EstimateQuery())
        assert [value.value for value in answer.values] == ["sun", "moon"]


def test_sums_past_64_bits_are_refused() -> None:
    large = WindowTotals(cells=np.array([2**61]), counted=1, batch_reports=1, at=0)
    assert sum_totals([large], 1).cells == [2**61]
    with pytest.raises(BadParameter, match="exceed 64 bits"):
        sum_totals([large, large], 1)
    assert sum_totals(
        [WindowTotals(cells=np.zeros(0, dtype=np.int64), counted=0, batch_reports=0, at=0)], 2
    ).cells == [0, 0]
