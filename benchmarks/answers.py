"""The stages of an answer: a year of ten thousand values, and many who look at once."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

import httpx2
import numpy as np

from benchmarks.measure import Row
from hubbub.aggregator.store.contract import Commit
from hubbub.aggregator.store.redis import RedisStore
from hubbub.conservation import Window
from hubbub.installation.child_process import free_port
from hubbub.installation.embedded_redis import EmbeddedRedis
from hubbub.runtime.redis.client import connect_redis
from tests.support.bundles import DAY, make_signed

EPOCHS: Final = 365
VALUES: Final = 10_000
VIEWERS: Final = 200
SECONDS: Final = 30.0
_QUERIES: Final = 20
# Of processor a second: what a service takes that has nothing to do.
_QUIET_MS: Final = 60
CATALOG = f"""
shuffler = "127.0.0.1:7070"
[metrics.wide]
description = "One of ten thousand"
owner = "bench@example.org"
expires = 2099-01-01
epoch = "day"
mechanism = "unary.oue"
epsilon = 1.0
min_batch = 1000
limits = {{ reports_per_epoch = 1, lifetime_epsilon = 50.0 }}
values = {json.dumps([f"value {n}" for n in range(VALUES)])}
"""


def answering() -> Iterator[Row]:
    """Asked over HTTP of an aggregator's own process; its limit is reading the totals alone."""
    with tempfile.TemporaryDirectory() as folder, _aggregator(Path(folder)) as (page, url, process):
        ask = f"{page}/v1/metrics/wide/estimates"
        limit = asyncio.run(_median_reading_seconds(url))
        with httpx2.Client(timeout=60) as client:

            def timed(**parameters: str) -> float:
                start = time.perf_counter()
                response = client.get(
                    ask, params={"epochs": "all", "number": "10000", **parameters}
                )
                assert response.json()["total"] == VALUES
                return time.perf_counter() - start

            cold = timed()
            warm = median(timed() for _ in range(9))
            other = median(timed(confidence=f"0.9{n}") for n in range(9))
            asyncio.run(_add(url, EPOCHS - 1, np.random.default_rng(2)))
            renewed = timed()
        for what, seconds, reach in (
            ("the same question again", warm, "<= 300 ms"),
            ("another question of the same totals", other, "<= 300 ms"),
            ("after one more batch", renewed, ""),
            ("the first time", cold, ""),
        ):
            yield Row(
                f"answer, 365 epochs x 10,000 values, {what}",
                f"{1000 * seconds:.0f} ms",
                f"reading them from Redis {1000 * limit:.0f} ms",
                seconds / limit,
                reach,
            )
        yield asyncio.run(_viewers(page, process))


def stored_answer() -> Iterator[Row]:
    """What an answer that another aggregator has kept in Redis costs one that never worked it out.

    Of its processor, beside what the other one paid, since who asks runs beside them.
    """
    parameters = {"last": "30d", "number": "100"}
    with tempfile.TemporaryDirectory() as folder, _filled_store(Path(folder)) as (options, url):
        costs = list[float]()
        for repeats in (1, _QUERIES):
            with _serving(options, url) as (page, process), httpx2.Client(timeout=600) as client:
                if costs:
                    _until_quiet(process)
                began = _processor_ms(process)
                for _ in range(repeats):
                    response = client.get(f"{page}/v1/metrics/wide/estimates", params=parameters)
                    assert response.json()["total"] == VALUES
                costs.append((_processor_ms(process) - began) / repeats)
                _until_quiet(process)  # by then it has kept what it works out at its start
    worked_out, cache_ms = costs
    yield Row(
        "a kept answer of 30 epochs x 10,000 values, by another aggregator, 365 epochs in Redis",
        f"{cache_ms:.1f} ms of processor",
        f"the first time {worked_out:.0f} ms",
        cache_ms / worked_out,
        "<= 20 ms",
    )


def _until_quiet(pid: int) -> None:
    while True:
        began = _processor_ms(pid)
        time.sleep(1)
        if _processor_ms(pid) - began < _QUIET_MS:
            return


def _processor_ms(pid: int) -> float:
    """Of all threads of a process, since it began."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e6


async def _viewers(page: str, process: int) -> Row:
    """Each asks, reads, and asks again; what they see is what the page asks for."""
    paths = ["/v1/metrics", "/v1/metrics/wide", "/v1/metrics/wide/estimates?last=30d", "/"]
    paths += ["/v1/metrics/wide/top?epochs=all", "/v1/status"]
    seconds: list[float] = []
    wrong = 0

    async def view(client: httpx2.AsyncClient, number: int, until: float) -> None:
        nonlocal wrong
        while time.monotonic() < until:
            start = time.perf_counter()
            response = await client.get(page + paths[(number + len(seconds)) % len(paths)])
            seconds.append(time.perf_counter() - start)
            wrong += response.status_code != 200  # noqa: PLR2004 OK

    limits = httpx2.Limits(max_connections=VIEWERS, max_keepalive_connections=VIEWERS)
    async with httpx2.AsyncClient(limits=limits, timeout=60) as client:
        await asyncio.gather(*(view(client, n, time.monotonic() + 3) for n in range(VIEWERS)))
        before, began = _rss(process), len(seconds)
        until = time.monotonic() + SECONDS
        await asyncio.gather(*(view(client, n, until) for n in range(VIEWERS)))
    after = _rss(process)
    done = sorted(seconds[began:])
    return Row(
        f"{VIEWERS} viewers for {SECONDS:.0f} s",
        f"{len(done) / SECONDS:,.0f} answers/s, p99 {1000 * done[int(0.99 * len(done))]:.0f} ms, "
        f"{wrong} errors, RSS {before >> 20} to {after >> 20} MB",
        f"no error; RSS before {before >> 20} MB",
        after / before,
        "<= 1.05, 0 errors",
    )


def _rss(process: int) -> int:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def _median_reading_seconds(url: str) -> float:
    server = await connect_redis(url)
    store = RedisStore(server)
    windows = [Window("wide", _first_epoch() + n) for n in range(EPOCHS)]
    await store.read(windows)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        await store.read(windows)
        seconds.append(time.perf_counter() - start)
    await server.close()
    return median(seconds)


def _first_epoch() -> int:
    return int(time.time()) // DAY - EPOCHS + 1


async def _add(url: str, number: int, chance: np.random.Generator) -> None:
    server = await connect_redis(url)
    await _commit(RedisStore(server), number, chance)
    await server.close()


async def _commit(store: RedisStore, number: int, chance: np.random.Generator) -> None:
    """A batch of 5,000 in one epoch."""
    window = Window("wide", _first_epoch() + number)
    tags = [secrets.token_bytes(16) for _ in range(5000)]
    cells = chance.binomial(5000, 0.27, VALUES)
    await store.shards(window)
    until = int(time.time()) + DAY
    batch = Commit(
        batch_id=secrets.token_bytes(16),
        tags=tags,
        cells=cells,
        duplicates=0,
        rejected={},
        seen_until=until,
        batch_reports=5000,
    )
    await store.add(window, batch)


@contextmanager
def _aggregator(folder: Path) -> Iterator[tuple[str, str, int]]:
    """Its page, its Redis, its process id."""
    with _filled_store(folder) as (options, url), _serving(options, url) as (page, process):
        yield page, url, process


@contextmanager
def _filled_store(folder: Path) -> Iterator[tuple[tuple[str, ...], str]]:
    """What an aggregator is told of its catalog and keys, and a Redis with the totals of a year."""
    signed = make_signed(folder, CATALOG, start=(int(time.time()) // DAY - 21) * DAY)
    server = EmbeddedRedis(folder / "redis")

    async def fill() -> None:
        connected, chance = await connect_redis(server.url), np.random.default_rng(1)
        for number in range(EPOCHS):
            await _commit(RedisStore(connected), number, chance)
        await connected.close()

    asyncio.run(fill())
    keys = str(signed.keys / "opening.keys.json")
    try:
        yield ("--bundle", str(signed.path), "--keys", keys), server.url
    finally:
        server.stop()


@contextmanager
def _serving(arguments: tuple[str, ...], url: str) -> Iterator[tuple[str, int]]:
    """An aggregator's page, and its process id."""
    listen = [f"127.0.0.1:{free_port()}" for _ in range(3)]
    names = ("--listen", "--metrics-listen", "--http-listen")
    options = [part for pair in zip(names, listen, strict=True) for part in pair]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "hubbub.aggregator",
            *arguments,
            "--processes",
            "1",
            *options,
            "--http-rate",
            "0",
            "--insecure",
        ],
        env={**os.environ, "HUBBUB_REDIS_URL": url},
    )
    page = f"http://{listen[2]}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                if httpx2.get(f"{page}/ready").status_code == 200:  # noqa: PLR2004 OK
                    break
            except httpx2.TransportError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        yield page, process.pid
    finally:
        process.terminate()
        process.wait()
