"""How the totals' Redis grows: commits of exact totals, from ten thousand reports on.

What devices and doors would do is left out: tags are drawn, and cells are what one draw of the
exact law gives. What every window has once, however few reports, is told apart from what a report
adds. By hand, to 10^8 (half an hour to an hour, 4 GB of memory and as much disk), telling every
million: python -m benchmarks.growth 8
"""

import asyncio
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.measure import Row
from benchmarks.own import own_redis
from hubbub.aggregator.store.contract import Commit, WindowTotals
from hubbub.aggregator.store.redis import RedisStore
from hubbub.analysis.families import draw
from hubbub.analysis.families.draw_totals import Counts
from hubbub.conservation import Window
from hubbub.mechanisms import build
from hubbub.runtime.redis.client import connect_redis
from hubbub.runtime.redis.command_sender import RedisServer

_BATCH: Final = 5000
_TAG_BYTES: Final = 16
_CATEGORIES: Final = 128
_UNTIL: Final = 4 * 10**9
# So many reports at least are counted for a figure, in several windows if one has fewer.
_MEASURED: Final = 10**6
_REPORTS_PER_LINE: Final = 10**6
_BATCHES: Final = (10, 10**4, 10**6)
_CELLS: Final = (10**2, 10**3, 10**4, 10**5, 10**6)


@dataclass(frozen=True, slots=True)
class _Filled:
    """A window's bytes, and the seconds of its commits: of Redis' processor, ours, and the clock's.

    Where several windows were filled, their means.
    """

    held: float
    redis: float
    ours: float
    clock: float


def growth(most: int = 7) -> Iterator[Row]:
    """Processor time and memory of a report in windows of 10^4 to 10^most."""
    sizes = [10**power for power in range(4, most + 1)]
    with own_redis() as url:
        once, fills = asyncio.run(_growing(url, sizes))
    whole = [1e6 * (fill.redis + fill.ours) for fill in fills]
    clock = ", ".join(f"{1e6 * fill.clock / n:.2f}" for fill, n in zip(fills, sizes, strict=True))
    for what, unit, wholes, besides in (
        ("memory", "bytes", [fill.held for fill in fills], f"; once a window {once:,.0f} bytes"),
        ("processor time", "us", [1e6 * fill.redis for fill in fills], ""),
        ("processor time with the aggregator's", "us", whole, f"; by the clock {clock}"),
    ):
        figures = [whole / size for whole, size in zip(wholes, sizes, strict=True)]
        slope = 1 + float(np.polyfit(np.log(sizes), np.log(figures), 1)[0])
        points = ", ".join(
            f"{n:.0e}: {figure:.2f}" for n, figure in zip(sizes, figures, strict=True)
        )
        yield Row(
            f"growth of the totals' Redis to {sizes[-1]:.0e}, slope of log {what} by log reports",
            f"{slope:.3f} ({unit} a report of {points}{besides})",
            "linear: 1",
            slope,
            "1.0 +- .05",
        )


def commits() -> Iterator[Row]:
    """Bytes to the append-only file for a batch of one report, in windows small and large."""
    with own_redis() as url:
        result = asyncio.run(_writing(url))
    for what, sizes in (("batches", _BATCHES), ("cells", _CELLS)):
        byte_counts = [result[what, size] for size in sizes]
        points = ", ".join(
            f"{n:.0e}: {byte_count:,.0f}" for n, byte_count in zip(sizes, byte_counts, strict=True)
        )
        yield Row(
            f"bytes to the append-only file for a commit that touches one cell, by {what}",
            points,
            f"{sizes[0]:.0e}: {byte_counts[0]:,.0f}",
            byte_counts[-1] / byte_counts[0],
            "flat" if what == "batches" else "a chunk of 4 KiB at most",
        )


async def _writing(url: str) -> dict[tuple[str, int], float]:
    server, costs = await connect_redis(url), {}
    await server.client.config_set("auto-aof-rewrite-percentage", 0)
    for batches in _BATCHES:
        costs["batches", batches] = await _bytes_of_commit(server, batches, _CATEGORIES)
    for cells in _CELLS:
        costs["cells", cells] = await _bytes_of_commit(server, 0, cells)
    await server.close()
    return costs


async def _bytes_of_commit(server: RedisServer, batches: int, cells: int) -> float:
    """On average of 64 commits, after which ids have moved on to their set."""
    client, window = server.client, Window("bench", 1)
    await client.flushall()
    for first in range(0, batches, 10_000):
        ids = [secrets.token_bytes(8) for _ in range(min(10_000, batches - first))]
        await client.sadd(window.key("aggregator:batches"), *ids)
    store, increments = RedisStore(server), np.zeros(cells, dtype=np.int64)
    increments[cells // 2] = 1
    await store.add(window, _commit(1, increments))  # the first writes all cells
    before = (await client.info("persistence"))["aof_current_size"]
    for _ in range(64):
        await store.add(window, _commit(1, increments))
    return float((await client.info("persistence"))["aof_current_size"] - before) / 64


async def _growing(url: str, sizes: list[int]) -> tuple[float, list[_Filled]]:
    """Bytes of a window of one report; then of each size what a window took, and held beyond."""
    server, fills = await connect_redis(url), []
    await _fill_window(server, 0)  # the first loads the script
    once = (await _fill_window(server, 0)).held
    for size in sizes:
        rounds = [await _fill_window(server, size) for _ in range(max(_MEASURED // size, 1))]
        memory, *took = np.mean(
            [(fill.held, fill.redis, fill.ours, fill.clock) for fill in rounds], axis=0
        )
        fills.append(_Filled(memory - once, *took))
    await server.close()
    return once, fills


async def _fill_window(server: RedisServer, reports: int) -> _Filled:
    """A window of so many reports and one more.

    The epoch before had as many, as that of a fleet has. The last batch is of one report, so that
    the journal of the batch under way, 16 bytes of each of its reports, is told by nobody's size.
    """
    await server.client.flushall()
    store = RedisStore(server)
    former = WindowTotals(
        cells=np.zeros(1, dtype=np.int64), counted=reports, batch_reports=_BATCH, at=0
    )
    await store.restore(Window("bench", 0), former)
    bytes_before = await _used_bytes(server)
    window, began = Window("bench", 1), await _processor(server)
    ours = clock = 0.0
    for done, cells in enumerate(_totals(reports)):
        if done and done * _BATCH % _REPORTS_PER_LINE == 0:
            used = await _processor(server) - began, await _used_bytes(server) - bytes_before
            _say_progress(reports, done * _BATCH, *used)
        commit = _commit(_BATCH, cells)
        busy, now = time.process_time(), time.perf_counter()
        await store.add(window, commit)
        ours += time.process_time() - busy
        clock += time.perf_counter() - now
    took = await _processor(server) - began
    await store.add(window, _commit(1, np.ones(_CATEGORIES, dtype=np.int64)))
    return _Filled(await _used_bytes(server) - bytes_before, took, ours, clock)


def _say_progress(reports: int, done: int, processor: float, memory_bytes: int) -> None:
    """What there is so far of a large window: who ends it early has this."""
    print(
        f"{reports:.0e}: {done:,} reports, {1e6 * processor / done:.2f} us and "
        f"{memory_bytes / done:.1f} bytes each",
        file=sys.stderr,
    )


def _commit(reports: int, cells: Counts) -> Commit:
    drawn = secrets.token_bytes(_TAG_BYTES * reports)
    tags = [drawn[at : at + _TAG_BYTES] for at in range(0, len(drawn), _TAG_BYTES)]
    return Commit(
        batch_id=secrets.token_bytes(16),
        tags=tags,
        cells=cells,
        duplicates=0,
        rejected={},
        seen_until=_UNTIL,
    )


async def _processor(server: RedisServer) -> float:
    [info] = await server.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


async def _used_bytes(server: RedisServer) -> int:
    [info] = await server.info("memory")
    return int(info["used_memory"] - info["mem_clients_normal"] - info["mem_aof_buffer"])


def _totals(reports: int) -> Iterator[Counts]:
    """The cells of one batch after the other, of values that all are held alike."""
    generator = np.random.default_rng(secrets.randbits(64))  # noqa: TID251 a simulation
    mechanism = build("unary.oue", epsilon=1.0, categories=_CATEGORIES)
    counts = [_BATCH // _CATEGORIES] * _CATEGORIES
    counts[0] += _BATCH - sum(counts)
    for _ in range(reports // _BATCH):
        yield np.array(draw(mechanism, range(_CATEGORIES), counts, generator).cells)


if __name__ == "__main__":
    for row in growth(int(sys.argv[1]) if len(sys.argv) > 1 else 7):
        print(row)
