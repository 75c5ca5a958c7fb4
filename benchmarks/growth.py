"""How the totals' Redis grows: commits of exact totals, from ten thousand reports on.

What devices and doors would do is left out: tags are drawn, and cells are what one draw of the
exact law gives. By hand, to 10^8 (a quarter of an hour, and 1.5 GB): python -m benchmarks.growth 8
"""

import asyncio
import secrets
import sys
from collections.abc import Iterator
from typing import Final

import numpy as np

from benchmarks.measure import Row
from benchmarks.own import own_redis
from hubbub.accounting import Window
from hubbub.aggregator.store.contract import Commit
from hubbub.aggregator.store.redis import RedisStore
from hubbub.mechanisms import build
from hubbub.privacy.draws import Counts, draw
from hubbub.runtime import RedisServer, connect_redis

_BATCH: Final = 5000
_TAG_BYTES: Final = 16
_CATEGORIES: Final = 128
_UNTIL: Final = 4 * 10**9


def growth(most: int = 7) -> Iterator[Row]:
    """Processor time and memory of 10^4 to 10^most reports of one window."""
    sizes = [10**power for power in range(4, most + 1)]
    with own_redis() as url:
        found = asyncio.run(_growing(url, sizes))
    for what, unit, figures in (
        ("processor time", "s", [took for took, _ in found]),
        ("memory", "MB", [held / 1e6 for _, held in found]),
    ):
        slope, _ = np.polyfit(np.log(sizes), np.log(figures), 1)
        shown = ", ".join(f"{n:.0e}: {one:.2f}" for n, one in zip(sizes, figures, strict=True))
        yield Row(
            f"growth of the totals' Redis, slope of log {what} by log reports",
            f"{slope:.3f} ({unit} of {shown})",
            "linear: 1",
            float(slope),
            "1.0 +- .05",
        )


async def _growing(url: str, sizes: list[int]) -> list[tuple[float, int]]:
    server, found = await connect_redis(url), []
    await _commit(server, sizes[0])  # the first loads the scripts
    for size in sizes:
        await server.client.flushall()
        before = await _used(server)
        began = await _processor(server)
        await _commit(server, size)
        found.append((await _processor(server) - began, await _used(server) - before))
    await server.close()
    return found


async def _processor(server: RedisServer) -> float:
    [told] = await server.info("cpu")
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


async def _used(server: RedisServer) -> int:
    [told] = await server.info("memory")
    return int(told["used_memory"])


async def _commit(server: RedisServer, reports: int) -> None:
    store, window = RedisStore(server), Window("bench", 1)
    for cells in _totals(reports):
        drawn = secrets.token_bytes(_TAG_BYTES * _BATCH)
        tags = [drawn[at : at + _TAG_BYTES] for at in range(0, len(drawn), _TAG_BYTES)]
        await store.add(window, Commit(secrets.token_bytes(16), tags, cells, 0, {}, _UNTIL))


def _totals(reports: int) -> Iterator[Counts]:
    """The cells of one batch after the other, of values that all are held alike."""
    generator = np.random.default_rng(secrets.randbits(64))  # noqa: TID251 a simulation
    mechanism = build("unary.oue", epsilon=1.0, categories=_CATEGORIES)
    held = [_BATCH // _CATEGORIES] * _CATEGORIES
    held[0] += _BATCH - sum(held)
    for _ in range(reports // _BATCH):
        yield np.array(draw(mechanism, range(_CATEGORIES), held, generator).cells)


if __name__ == "__main__":
    for row in growth(int(sys.argv[1]) if len(sys.argv) > 1 else 7):
        print(row)
