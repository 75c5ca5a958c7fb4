"""What hiding how many reports there are costs the shuffler and its Redis, once an epoch."""

import asyncio
import secrets
import time
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Final

from benchmarks.measure import Row, rate
from benchmarks.own import own_redis, times
from hubbub.bundles import OpeningKey
from hubbub.conservation import Window
from hubbub.mechanisms.probability import exp_at_most
from hubbub.runtime.redis.client import connect_redis
from hubbub.sealing.dummy_laws import CountNoise
from hubbub.sealing.hpke import seal, seal_info
from hubbub.shuffler.pool import Pool

_EPSILONS: Final = (0.5, 0.1)
_DELTA: Final = 1e-8
_REPORTS: Final = 30_000
_CALL: Final = 500
_SEALED_BYTES: Final = 49
_TURNS: Final = 7


def hidden() -> Iterator[Row]:
    """The draw, the seals of as many dummies as may be drawn, and what Redis holds of them."""
    public = OpeningKey(1, secrets.token_bytes(32)).load().public_key()
    info = seal_info("theme", 1)
    for epsilon in _EPSILONS:
        noise = CountNoise.least(exp_at_most(epsilon), _DELTA)
        drawn = 1e6 / rate(partial(times, 200, noise.draw), _TURNS)
        seals = partial(times, noise.most, seal, bytes(1), public, info)
        sealed = 1e3 * noise.most / rate(seals, _TURNS)
        with own_redis() as url:
            steps = asyncio.run(_pool_costs(url, noise))
        took, memory_bytes = (median(column) for column in zip(*steps, strict=True))
        crowd = _REPORTS * _SEALED_BYTES
        yield Row(
            f"a hidden number of reports, epsilon {epsilon:g}, of an epoch",
            f"{drawn:.0f} us to draw, {sealed:.0f} ms to seal, {took:.1f} ms and "
            f"{memory_bytes:,.0f} bytes of Redis for {noise.reach} dummies",
            f"a crowd of {_REPORTS:,}: {crowd:,} bytes of seals",
            memory_bytes / crowd,
            "what it costs",
        )


async def _pool_costs(url: str, noise: CountNoise) -> list[tuple[float, float]]:
    """Of some epochs with as many dummies as is likeliest: ms until pooled, and bytes of Redis."""
    server = await connect_redis(url)
    pool, costs = Pool(server), list[tuple[float, float]]()
    for epoch in range(_TURNS):
        window = Window("theme", epoch)
        for _ in range(0, _REPORTS, _CALL):
            await pool.add({window: [secrets.token_bytes(_SEALED_BYTES) for _ in range(_CALL)]})
        before = (await server.client.info("memory"))["used_memory"]
        start = time.perf_counter()
        await server.durable([("HSET", window.key("shuffler:law"), "noise", noise.reach)])
        await pool.hidden.keep(
            window, [secrets.token_bytes(_SEALED_BYTES) for _ in range(noise.reach)]
        )
        await pool.hidden.move_to_pool(window, _SEALED_BYTES)
        took = time.perf_counter() - start
        after = (await server.client.info("memory"))["used_memory"]
        costs.append((1e3 * took, after - before))
    await server.close()
    return costs
