"""What it costs to trust fewer: each option's bytes and time, beside a report without it."""

import asyncio
import secrets
import time
from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import Final

from benchmarks.measure import Row, rate
from benchmarks.own import own_redis, times
from hubbub.accounting import Window
from hubbub.catalog import SEAL_BYTES, X25519, X_WING, Kem, OpeningKey, open_sealed, seal
from hubbub.runtime import connect_redis
from hubbub.shuffler.pool import Pool

__all__ = ["seals"]

_PAYLOAD_BYTES: Final = 18
_REPORTS: Final = 20_000
_CALL: Final = 500
_TURNS: Final = 25


def seals() -> Iterator[Row]:
    """X-Wing beside X25519: on a device, at the shuffler and its Redis, at the aggregator."""
    halves = OpeningKey(1, secrets.token_bytes(32)).with_x_wing().halves()
    sealed: dict[Kem, list[float]] = {kem: [] for kem in halves}
    opened: dict[Kem, list[float]] = {kem: [] for kem in halves}
    payload, info = bytes(_PAYLOAD_BYTES), b"benchmark"
    for _ in range(_TURNS):  # by turns, so that a busy moment of the machine is both's
        for kem, private in halves.items():
            public = private.public_key()
            one = seal(payload, public, info)
            sealed[kem].append(rate(partial(times, 300, seal, payload, public, info), 1))
            opened[kem].append(rate(partial(times, 300, open_sealed, one, private, info), 1))
    for what, turns in (("seal", sealed), ("open", opened)):
        by = {kem: median(rates) for kem, rates in turns.items()}
        yield Row(
            f"{what} by X-Wing, one core",
            f"{by[X_WING]:,.0f}/s",
            f"by X25519 {by[X25519]:,.0f}/s",
            by[X_WING] / by[X25519],
            ">= .4",
            more=True,
        )
    lengths = {kem: _PAYLOAD_BYTES + SEAL_BYTES[kem] for kem in halves}
    yield Row(
        "a report by X-Wing on the wire",
        f"{lengths[X_WING]:,} bytes",
        f"by X25519 {lengths[X25519]} bytes",
        lengths[X_WING] / lengths[X25519],
        "what it costs",
    )
    with own_redis() as url:
        costs = asyncio.run(_pooled(url, lengths))
    (us, held), (own_us, own_held) = costs[X_WING], costs[X25519]
    yield Row(
        "a report by X-Wing into the pool",
        f"{us:.1f} us",
        f"by X25519 {own_us:.1f} us",
        us / own_us,
        "what it costs",
    )
    yield Row(
        "a report by X-Wing in the pool's Redis",
        f"{held:,.0f} bytes",
        f"by X25519 {own_held:,.0f} bytes",
        held / own_held,
        "what it costs",
    )


async def _pooled(url: str, lengths: dict[Kem, int]) -> dict[Kem, tuple[float, float]]:
    """Of a report of each length: microseconds until the pool has it, and bytes of Redis."""
    server = await connect_redis(url)
    pool, found = Pool(server), dict[Kem, tuple[float, float]]()
    for number, (kem, length) in enumerate(lengths.items()):
        reports = [secrets.token_bytes(length) for _ in range(_REPORTS)]
        before = (await server.client.info("memory"))["used_memory"]
        start = time.perf_counter()
        for first in range(0, _REPORTS, _CALL):
            await pool.add({Window("bench", number): reports[first : first + _CALL]})
        took = time.perf_counter() - start
        after = (await server.client.info("memory"))["used_memory"]
        found[kem] = 1e6 * took / _REPORTS, (after - before) / _REPORTS
    await server.close()
    return found
