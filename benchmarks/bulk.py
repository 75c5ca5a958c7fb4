"""Millions of reports: through the aggregator, through two of them, and through everything.

They are sealed beforehand, once for all three. By hand: python -m benchmarks.bulk 300
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
import numpy as np
import redis

from benchmarks.measure import Row
from benchmarks.overload import Measured
from benchmarks.stock import Stock, library_rate, sealed_stock
from benchmarks.sustained import sustained
from hubbub.cli.commands.up import demo_catalog
from hubbub.installation.child_process import Child, free_port
from hubbub.installation.embedded_redis import EmbeddedRedis
from hubbub.installation.local_run import Ports
from hubbub.runtime.tls import TlsFolder

_SUSTAINED_SECONDS: Final = 300.0
_SIZES: Final = (10_000, 100_000, 1_000_000, 10_000_000)
_BATCH: Final = 5000
_AT_ONCE: Final = 3  # batches under way, as a shuffler has them
_ROUNDS: Final = 3  # the median, but of the largest
_EACH: Final = 150_000  # for each aggregator, where one and two are compared
_APPLY: Final = "/hubbub.wire.v1.Ingest/Apply"


def bulk(seconds: float = _SUSTAINED_SECONDS) -> Iterator[Row]:
    """The whole path for so long, growth, two aggregators beside one."""
    everywhere = os.sched_getaffinity(0)
    cores = sorted(everywhere)
    with tempfile.TemporaryDirectory() as home:
        # What is measured has two cores; what feeds it has the others, where there are any.
        os.sched_setaffinity(0, cores[:2])
        with Measured(Path(home), demo_catalog(), Ports.free()) as run:
            os.sched_setaffinity(0, everywhere)
            opening = library_rate(run.home)
            stock = sealed_stock(run.bundle_path, max(_SIZES))
            os.sched_setaffinity(0, cores[2:] or cores)
            yield from asyncio.run(sustained(run, stock, 2 * opening, seconds))
        os.sched_setaffinity(0, everywhere)
        with ExitStack() as stack:
            yield from _growing(Path(home), stack, stock)
        with ExitStack() as stack:
            yield from _side_by_side(Path(home), stack, stock, cores)
    os.sched_setaffinity(0, everywhere)


class _Aggregator:
    """One aggregator of its own, fed as a shuffler feeds it."""

    def __init__(self, home: Path, url: str, cores: Sequence[int], processes: int) -> None:
        self._home = home
        self.address = f"127.0.0.1:{free_port()}"
        arguments = ["--bundle", str(home / "app.hubbub"), "--processes", str(processes)]
        arguments += [
            "--keys",
            str(home / "keys" / "opening.keys.json"),
            "--tls",
            str(home / "tls"),
        ]
        arguments += ["--listen", self.address]
        arguments += ["--metrics-listen", f"127.0.0.1:{free_port()}"]
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)  # what is started inherits it
        self.child = Child(
            "aggregator",
            [sys.executable, "-m", "hubbub.aggregator", *arguments],
            {**os.environ, "HUBBUB_REDIS_URL": url},
            home / "log" / "aggregator-of-its-own.log",
        )
        os.sched_setaffinity(0, before)

    async def feed(self, stock: Stock, first: int, number: int) -> None:
        """Apply these reports in batches, a few at a time."""
        credentials = TlsFolder(self._home / "tls", "shuffler").channel_credentials("aggregator")
        options = [("grpc.max_send_message_length", 64 << 20)]
        async with grpc.aio.secure_channel(self.address, credentials, options) as channel:
            apply: Any = channel.unary_unary(_APPLY)
            places = iter(range(first, first + number, _BATCH))

            async def feeder() -> None:
                for place in places:
                    await apply(stock.batch(place, _BATCH), timeout=120, wait_for_ready=True)

            await asyncio.gather(*(feeder() for _ in range(_AT_ONCE)))

    def cpu_seconds(self) -> float:
        """Of it and its opening processes, so far."""
        pid = self.child.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ticks = 0
        for process_id in (str(pid), *children):
            fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


def _growing(home: Path, stack: ExitStack, stock: Stock) -> Iterator[Row]:
    """The time that so many reports take, on a log-log line."""
    server = EmbeddedRedis(home / "redis-growth")
    stack.callback(server.stop)
    cores = sorted(os.sched_getaffinity(0))
    aggregator = _Aggregator(home, server.url, cores, len(cores))
    stack.callback(aggregator.child.stop)
    asyncio.run(aggregator.feed(stock, 0, 8 * _BATCH))  # its processes start with the first batches
    seconds = []
    for size in _SIZES:
        durations = []
        for _ in range(_ROUNDS if size < max(_SIZES) else 1):
            with redis.Redis.from_url(server.url) as client:
                client.flushall()
            began = time.perf_counter()
            asyncio.run(aggregator.feed(stock, 0, size))
            durations.append(time.perf_counter() - began)
        seconds.append(statistics.median(durations))
    slope, _ = np.polyfit(np.log(_SIZES), np.log(seconds), 1)
    points = ", ".join(f"{size:.0e}: {t:.2f}" for size, t in zip(_SIZES, seconds, strict=True))
    yield Row(
        "growth, slope of log time by log reports",
        f"{slope:.3f} (seconds of {points})",
        "linear: 1",
        float(slope),
        "1.0 +- .05",
    )


def _side_by_side(
    home: Path, stack: ExitStack, stock: Stock, cores: Sequence[int]
) -> Iterator[Row]:
    """Two aggregators beside one, each with a core of its own where there are enough."""
    apart = len(cores) >= 4  # noqa: PLR2004 one each, one for Redis, one for who feeds them
    everywhere = os.sched_getaffinity(0)
    if apart:
        os.sched_setaffinity(0, cores[2:3])
    server = EmbeddedRedis(home / "redis-two")
    stack.callback(server.stop)
    if apart:
        os.sched_setaffinity(0, cores[3:4])
    two = [_Aggregator(home, server.url, cores[n : n + 1] if apart else cores, 1) for n in range(2)]
    for aggregator in two:
        stack.callback(aggregator.child.stop)
        asyncio.run(aggregator.feed(stock, 0, _BATCH))
    rates, cpu = [], []
    for used in (two[:1], two):
        with redis.Redis.from_url(server.url) as client:
            client.flushall()
        before = sum(aggregator.cpu_seconds() for aggregator in used)
        began = time.perf_counter()

        async def all_of_them(used: Sequence[_Aggregator] = used) -> None:
            await asyncio.gather(
                *(aggregator.feed(stock, n * _EACH, _EACH) for n, aggregator in enumerate(used))
            )

        asyncio.run(all_of_them())
        rates.append(len(used) * _EACH / (time.perf_counter() - began))
        cpu.append(
            (sum(aggregator.cpu_seconds() for aggregator in used) - before) / (len(used) * _EACH)
        )
    os.sched_setaffinity(0, everywhere)
    spent = " and ".join(f"{1e6 * seconds:.1f}" for seconds in cpu)
    # With fewer cores than parts they share them; then what a report costs says it.
    ratio = rates[1] / rates[0] if apart else 2 * cpu[0] / cpu[1]
    sharing = (
        "a core each, Redis and the feeder on others" if apart else "by processor time a report"
    )
    yield Row(
        f"two aggregators beside one, {sharing}",
        f"{rates[1]:,.0f}/s ({spent} us of processor a report)",
        f"one: {rates[0]:,.0f}/s",
        ratio,
        ">= 1.8",
        more=True,
    )


if __name__ == "__main__":
    for row in bulk(float(sys.argv[1]) if len(sys.argv) > 1 else _SUSTAINED_SECONDS):
        print(row)
