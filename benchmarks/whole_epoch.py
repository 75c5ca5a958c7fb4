"""A crowd of a million whose reports all leave as one permutation: how fast, in how much memory.

What counts is the processor time of all services and both Redis servers, beside that of opening
alone, which goes on meanwhile in small parts: other work on the machine makes both as much slower.

By hand, with a number of reports: python -m benchmarks.whole_epoch 10000000
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import redis

from benchmarks.measure import Row
from benchmarks.overload import Measured
from benchmarks.own import times
from benchmarks.stock import METRIC, Opening, opening, sealed_stock
from benchmarks.sustained import Devices
from hubbub.authoring import read_with_promises
from hubbub.cli.commands.demo import close_epochs
from hubbub.conservation import balances, sum_terms
from hubbub.installation.local_run import Ports
from tests.support.law_terms import report_counts

_REPORTS: Final = 1_000_000
_OPENED_AT_ONCE: Final = 100
_PAUSE_SECONDS: Final = 0.2
_CATALOG: Final = """
shuffler = "127.0.0.1:1"

[metrics.{metric}]
description = "Sixteen values in one crowd"
owner = "benchmarks"
expires = 2099-12-31
epoch = "day"
mechanism = "auto"
values = [{values}]
central_epsilon = 1.0
crowd = {crowd}
honest = 1.0
max_local_epsilon = 16.0
limits = {{ reports_per_epoch = 1, lifetime_epsilon = 500.0 }}
"""


def whole_epoch(reports: int = _REPORTS) -> Iterator[Row]:
    """From Submit to counted, what Redis holds meanwhile, and that the shuffler holds nothing."""
    everywhere = os.sched_getaffinity(0)
    cores = sorted(everywhere)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.toml"
        values = ", ".join(f'"value {n}"' for n in range(16))
        path.write_text(_CATALOG.format(metric=METRIC, values=values, crowd=min(reports, 10**6)))
        os.sched_setaffinity(0, cores[:2])
        catalog = read_with_promises(path)
        with Measured(Path(folder) / "home", catalog, Ports.free(), max_pool=2 * reports) as run:
            os.sched_setaffinity(0, everywhere)
            opener = opening(run.home)
            stock = sealed_stock(run.bundle_path, reports)
            os.sched_setaffinity(0, cores[2:] or cores)
            devices, alone = Devices(run, stock, float("inf")), Alone(opener)
            yield from asyncio.run(_leaves(run, devices, alone))
    os.sched_setaffinity(0, everywhere)


class Alone:
    """Opens a report over and over, some at a time with pauses, and knows what that takes."""

    def __init__(self, opener: Opening) -> None:
        self._opener = opener
        self._number, self._seconds = 0, 0.0

    @property
    def micros(self) -> float:
        """Of processor, a report."""
        return 1e6 * self._seconds / self._number

    async def go_on(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.to_thread(self._some)
            await asyncio.sleep(_PAUSE_SECONDS)

    def _some(self) -> None:
        began = time.thread_time()
        self._number += times(_OPENED_AT_ONCE, *self._opener)
        self._seconds += time.thread_time() - began


async def _leaves(run: Measured, devices: Devices, alone: Alone) -> list[Row]:
    """All submit, the epoch ends, all are counted."""
    before, used = run.resident_bytes()["shuffler"], run.processor_seconds()
    opens = asyncio.create_task(alone.go_on())
    began = time.perf_counter()
    await devices.submit()
    submitted = time.perf_counter()
    with redis.Redis.from_url(run.shuffler_redis) as client:
        pooled = client.info("memory")["used_memory"]
    await asyncio.to_thread(close_epochs, run.shuffler_redis)
    first, most = 0.0, 0
    while True:
        counts = await asyncio.to_thread(report_counts, run.endpoints)
        terms, now = sum_terms(counts.values()), time.perf_counter()
        most = max(most, run.resident_bytes()["shuffler"])
        if sys.stderr.isatty():
            print(f"\r\033[K{terms['counted']:,} counted", end="", file=sys.stderr)
        first = first or (now if terms["counted"] else 0.0)
        if terms["counted"] == devices.sent:
            break
        await asyncio.sleep(0.2)
    opens.cancel()
    micros = {
        name: 1e6 * (seconds - used[name]) / devices.sent
        for name, seconds in run.processor_seconds().items()
    }
    if not all(map(balances, counts.values())):
        raise AssertionError("a report was lost or counted twice")
    size = f"{devices.sent:,}"
    return [
        Row(
            f"a crowd of {size}, sealed to counted",
            f"{sum(micros.values()):.1f} us of processor a report: "
            + ", ".join(f"{name} {of:.1f}" for name, of in micros.items())
            + f"; {submitted - began:.0f} s to submit, {first - submitted:.0f} s to mix, "
            f"{now - first:.0f} s to count",
            f"opening alone, meanwhile: {alone.micros:.1f} us",
            alone.micros / sum(micros.values()),
            ">= .6",
            more=True,
        ),
        Row(
            f"a crowd of {size}, memory of the shuffler",
            f"{most / 1e6:.0f} MB while it leaves",
            f"{before / 1e6:.0f} MB before it came; Redis held {pooled / 1e6:,.0f} MB, "
            f"{pooled / devices.sent:.0f} bytes a report",
            most / before,
            "<= 2",
        ),
    ]


if __name__ == "__main__":
    for row in whole_epoch(int(sys.argv[1]) if len(sys.argv) > 1 else _REPORTS):
        print(row)
