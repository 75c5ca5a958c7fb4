"""The stages behind the device: open, fold, pool and commit."""

import asyncio
import os
import secrets
import statistics
import time
from collections.abc import Iterator
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from benchmarks.measure import ROUNDS, Row, rate
from benchmarks.own import counted, own_hubbub, own_redis
from benchmarks.stock import METRIC, Stock, library_rate, sealed_stock
from hubbub.aggregator.ingest.fold import fold
from hubbub.aggregator.ingest.intake import Intake
from hubbub.aggregator.ingest.opener import Opener
from hubbub.aggregator.store.contract import Commit
from hubbub.aggregator.store.redis import RedisStore
from hubbub.conservation import Window
from hubbub.installation.local_run import LocalRun
from hubbub.keys.opening_key_files import read_opening_keys
from hubbub.mechanisms import BitVector, CohortBits, OneHot
from hubbub.runtime.monitoring.stages_and_traces import Stages
from hubbub.runtime.redis.client import connect_redis
from hubbub.shuffler.mixing_policy import Take
from hubbub.shuffler.pool import Pool

_BATCH: Final = 5000
_BATCHES: Final = 24


def folding() -> Iterator[Row]:
    """Adding payloads up, beside looking at every bit (unpackbits)."""
    rows = 1_000_000
    for name, layout in (
        ("index of 128", OneHot(128)),
        ("128 bits", BitVector(128)),
        ("128 bits, 64 cohorts", CohortBits(64, 128)),
    ):
        raw = np.frombuffer(os.urandom(rows * layout.payload_bytes), dtype=np.uint8)
        payloads = raw.reshape(rows, layout.payload_bytes).copy()
        if isinstance(layout, CohortBits):
            payloads[:, :2] = np.stack([payloads[:, 0] % 64, np.zeros(rows, np.uint8)], axis=1)
        if isinstance(layout, OneHot):
            payloads %= 128
        ours = rate(partial(counted, rows, partial(fold, layout, payloads)))
        peer = rate(partial(counted, rows, partial(_unpack, payloads)))
        yield Row(
            f"fold, {name}",
            f"{ours / 1e6:,.1f}M/s",
            f"unpackbits {peer / 1e6:,.1f}M/s",
            ours / peer,
            ">= 15M/s",
            more=True,
        )


def storing() -> Iterator[Row]:
    """The pool and the commit, on a Redis of their own."""
    with own_redis() as url:
        yield from asyncio.run(_storing(url))


async def _storing(url: str) -> list[Row]:
    server = await connect_redis(url)
    client, pool, store = server.client, Pool(server), RedisStore(server)
    number = 40_000
    reports = [secrets.token_bytes(66) for _ in range(number)]
    start = time.perf_counter()
    for first in range(0, number, 4000):
        await client.sadd("raw", *reports[first : first + 4000])
    raw = number / (time.perf_counter() - start)
    window = Window("bench", 1)
    start = time.perf_counter()
    for first in range(0, number, 1000):
        await pool.add({window: reports[first : first + 1000]})
    while batch_id := await pool.take(window, Take(5000, 5000), await pool.level(window)):
        await pool.claim(window, batch_id, None)
        await pool.delivered(window, batch_id)
    through = number / (time.perf_counter() - start)
    rows = [
        Row(
            "pool, in and out",
            f"{through:,.0f}/s",
            f"SADD {raw:,.0f}/s",
            through / raw,
            ">= 100k/s",
            more=True,
        )
    ]
    cells = np.ones(8192, dtype=np.int64)
    durations = []
    for _ in range(9):
        tags = [secrets.token_bytes(16) for _ in range(5000)]
        commit = Commit(
            batch_id=secrets.token_bytes(16),
            tags=tags,
            cells=cells,
            duplicates=0,
            rejected={},
            seen_until=4 * 10**9,
        )
        start = time.perf_counter()
        await store.add(window, commit)
        durations.append(1000 * (time.perf_counter() - start))
    start = time.perf_counter()
    await client.sadd("tags", *(secrets.token_bytes(16) for _ in range(5000)))
    floor = 1000 * (time.perf_counter() - start)
    median = sorted(durations)[4]
    rows.append(
        Row(
            "commit, 5,000 tags and 8,192 cells",
            f"{median:.1f} ms",
            f"SADD of the tags {floor:.1f} ms",
            median / floor,
            "<= 15 ms",
        )
    )
    await server.close()
    return rows


def opening() -> Iterator[Row]:
    """An aggregator's work on batches, on two cores; its Redis and what feeds it on others."""
    everywhere = os.sched_getaffinity(0)
    cores = sorted(everywhere)
    with own_hubbub() as run, own_redis() as url:
        limit = 2 * library_rate(run.home)
        stock = sealed_stock(run.bundle_path, _BATCHES * _BATCH)
        opener = Opener(read_opening_keys(run.home / "keys" / "opening.keys.json"), 2)
        os.sched_setaffinity(0, cores[:2])  # the opening processes start with the first batch
        rates = asyncio.run(_opening(run, url, stock, opener, cores))
        opener.close()
    os.sched_setaffinity(0, everywhere)
    ours = statistics.median(rates)
    yield Row(
        "open, fold and commit, 2 processes",
        f"{ours:,.0f}/s",
        f"library x 2: {limit:,.0f}/s",
        ours / limit,
        ">= .9",
        more=True,
    )


async def _opening(
    run: LocalRun, url: str, stock: Stock, opener: Opener, cores: list[int]
) -> list[float]:
    server = await connect_redis(url)
    intake = Intake(run.bundle, opener, RedisStore(server), Stages())
    window = Window(METRIC, stock.epoch)

    async def apply(batches: Iterator[list[bytes]]) -> None:
        for sealed in batches:
            await intake.apply(window, secrets.token_bytes(16), stock.key_id, sealed)

    rates = []
    for turn in range(ROUNDS + 1):
        batches = iter([stock.reports(n * _BATCH, _BATCH) for n in range(_BATCHES)])
        start = time.perf_counter()
        # So many under way at once as a shuffler has.
        await asyncio.gather(*(apply(batches) for _ in range(3)))
        if turn:  # the processes start with the first
            rates.append(_BATCHES * _BATCH / (time.perf_counter() - start))
        else:
            os.sched_setaffinity(0, cores[2:] or cores)
        await server.client.flushdb()
    await server.close()
    return rates


def _unpack(payloads: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    sums: npt.NDArray[np.int64] = np.unpackbits(payloads, axis=1).sum(axis=0, dtype=np.int64)
    return sums
