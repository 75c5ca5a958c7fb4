"""The stages behind the device: fold, pool, commit, and the whole path."""

import asyncio
import os
import secrets
import time
from collections.abc import Iterator
from functools import partial
from typing import Final

import grpc
import numpy as np
import numpy.typing as npt

from benchmarks.measure import Row, rate
from benchmarks.own import counted, own_hubbub, own_redis, times
from hubbub.aggregator.fold import fold
from hubbub.aggregator.redis_store import RedisStore
from hubbub.aggregator.store import Commit
from hubbub.catalog import (
    epoch_at,
    epoch_start,
    key_at,
    open_sealed,
    read_opening_keys,
    seal,
    seal_info,
)
from hubbub.cli.demo import close_epochs
from hubbub.cli.remote import law
from hubbub.mechanisms import BitVector, CohortBits, OneHot, SystemBits
from hubbub.serving import Window, connect_redis
from hubbub.shuffler.batch import Take
from hubbub.shuffler.pool import Pool
from hubbub.wire.v1.report_pb2 import SealedReport
from hubbub.wire.v1.services_pb2 import SubmitRequest
from hubbub.wire.v1.services_pb2_grpc import ShufflerStub

__all__ = ["folding", "path", "storing"]

_PATH_REPORTS: Final = 100_000


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
        await pool.hold(window, batch_id, None)
        await pool.delivered(window, batch_id)
    through = number / (time.perf_counter() - start)
    rows = [
        Row(
            "pool, in and out",
            f"{through:,.0f}/s",
            f"SADD {raw:,.0f}/s",
            through / raw,
            ">= 100k/s",
        )
    ]
    cells = np.ones(8192, dtype=np.int64)
    durations = []
    for _ in range(9):
        tags = [secrets.token_bytes(16) for _ in range(5000)]
        commit = Commit(secrets.token_bytes(16), tags, cells, 0, {}, 4 * 10**9)
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


def path() -> Iterator[Row]:
    """Sealed reports from Submit to counted, all processes on this machine, TLS."""
    with own_hubbub() as run:
        metric, epoch = run.bundle.metric("education"), epoch_at(time.time(), "day")
        key = key_at(run.bundle.keys, epoch_start(epoch, "day"))
        if key is None:
            raise AssertionError("keys of today")
        info, coins = seal_info("education", epoch), SystemBits()
        opening = read_opening_keys(run.home / "keys" / "opening.keys.json")
        private = next(k for k in opening if k.id == key.id).load()
        requests = []
        for _ in range(_PATH_REPORTS // 1000):
            payloads = (metric.randomizer.randomize(3, coins) for _ in range(1000))
            requests.append(
                SubmitRequest(
                    reports=[
                        SealedReport(
                            stream="education",
                            epoch=epoch,
                            key_id=key.id,
                            sealed=seal(payload, key.key, info),
                        )
                        for payload in payloads
                    ]
                )
            )
        sealed = requests[0].reports[0].sealed
        limit = rate(lambda: times(2000, open_sealed, sealed, private, info)) * 2
        credentials = grpc.ssl_channel_credentials((run.bundle.roots or "").encode())
        start = time.perf_counter()
        with grpc.secure_channel(run.bundle.shuffler, credentials) as channel:
            for request in requests:
                ShufflerStub(channel).Submit(request, timeout=60)
        close_epochs(run.shuffler_redis)
        while sum(window["counted"] for window in law(run.endpoints).values()) < _PATH_REPORTS:
            time.sleep(0.05)
        ours = _PATH_REPORTS / (time.perf_counter() - start)
        yield Row(
            "the whole path, sealed to counted",
            f"{ours:,.0f}/s",
            f"library open x 2: {limit:,.0f}/s",
            ours / limit,
            ">= .6",
        )


def _unpack(payloads: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    sums: npt.NDArray[np.int64] = np.unpackbits(payloads, axis=1).sum(axis=0, dtype=np.int64)
    return sums
