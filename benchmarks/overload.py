"""Overload: ten times what the whole path takes, for a while; what is taken meanwhile, and after.

By hand: python -m benchmarks.overload 60
"""

import asyncio
import json
import os
import secrets
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from benchmarks.measure import Row
from benchmarks.stock import sealed_stock
from hubbub.authoring import Catalog
from hubbub.cli.commands.demo import close_epochs
from hubbub.cli.commands.up import demo_catalog
from hubbub.conservation import balances
from hubbub.installation.local_run import LocalRun, Ports
from tests.support.law_terms import total_counts

_REPORTS_A_CALL = 500  # as the SDK sends what has waited
_TIMES = 10
_MAX_HELD = 30_000
_UNLOADED_SECONDS = 15.0
_SUBMIT = "/hubbub.wire.v1.Shuffler/Submit"
_PUSHBACK = "grpc-retry-pushback-ms"


class Measured(LocalRun):
    """Whose memory is looked at; the shuffler holds so many reports, by default soon refuses."""

    def __init__(
        self, home: Path, catalog: Catalog, ports: Ports, *, max_pool: int = _MAX_HELD
    ) -> None:
        super().__init__(home, catalog, ports)
        self._max_pool = max_pool

    def _service(self, role: str, *arguments: str, redis_url: str) -> None:
        if role == "shuffler":
            arguments += ("--max-pool", str(self._max_pool))
        super()._service(role, *arguments, redis_url=redis_url)

    def resident_bytes(self) -> dict[str, int]:
        """What each service holds in memory now, with the processes that it started."""
        sizes = {}
        for child in self.children:
            pid = child.process.pid
            others = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            pages = [
                Path(f"/proc/{process_id}/statm").read_text().split()[1]
                for process_id in (pid, *others)
            ]
            sizes[child.name] = sum(map(int, pages)) * os.sysconf("SC_PAGE_SIZE")
        return sizes

    def processor_seconds(self) -> dict[str, float]:
        """What each service and each Redis has had of all processors, with what it started."""
        roles = {
            "shuffler's Redis": self.redis_servers[0].child,
            "aggregator's Redis": self.redis_servers[1].child,
        }
        children = {**{child.name: child for child in self.children}, **roles}
        return {name: processor_seconds(child.process.pid) for name, child in children.items()}


def processor_seconds(pid: int) -> float:
    """Of a process, those that it started, and those of them that have ended."""
    try:
        path = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        others = [int(process_id) for task in tasks for process_id in task.read_text().split()]
    except OSError:  # it has ended meanwhile, and its parent has its time
        return 0.0
    ticks = sum(map(int, path[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(processor_seconds, others))


@dataclass
class _Load:
    """Calls that wait to be made, as bytes; and what became of those that were."""

    waiting: deque[bytes]
    taken: int = 0
    refused: int = 0
    hinted: int = 0
    other: dict[str, int] = field(default_factory=dict)

    async def call(self, channel: grpc.aio.Channel) -> float:
        """Make one call; put it back if it was refused, and answer the hint in seconds."""
        request = self.waiting.popleft()
        try:
            submit: Any = channel.unary_unary(_SUBMIT)
            await submit(request, timeout=30)
        except grpc.aio.AioRpcError as error:
            self.waiting.append(request)
            hint = dict(error.trailing_metadata() or ()).get(_PUSHBACK)
            if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED:
                self.refused += 1
                self.hinted += hint is not None
            else:
                self.other[error.code().name] = self.other.get(error.code().name, 0) + 1
            return int(hint or 100) / 1000
        self.taken += 1
        return 0.0


def overload(seconds: float = 20.0) -> Iterator[Row]:
    """The rate at which reports are counted under ten times the load, beside that without."""
    figures = measure(seconds)
    yield Row(
        f"taken under {_TIMES} times the load, {seconds:.0f} s",
        f"{figures['taken_overloaded']:,.0f}/s",
        f"taken without it {figures['taken_unloaded']:,.0f}/s",
        figures["ratio"],
        ">= .8",
        more=True,
    )


def measure(seconds: float) -> dict[str, float]:
    """Figures by name; an AssertionError if a report was lost or counted twice."""
    with (
        tempfile.TemporaryDirectory() as home,
        Measured(Path(home), demo_catalog(), Ports.free()) as run,
    ):
        return asyncio.run(_measure(run, seconds))


async def _measure(run: LocalRun, seconds: float) -> dict[str, float]:
    credentials = grpc.ssl_channel_credentials((run.bundle.roots or "").encode())
    channels = [grpc.aio.secure_channel(run.bundle.shuffler, credentials) for _ in range(4)]
    # Enough for both phases at twice the rate that this machine opens reports at.
    load = _Load(deque(_requests(run, 200)))
    while not _counted(run):  # the processes that open reports start with the first batch
        await load.call(channels[0])
    trial = await _steady_rate(run, load, channels, 4.0)
    needed = 1.3 * max(trial, 2000) * (_UNLOADED_SECONDS + seconds) / _REPORTS_A_CALL
    load.waiting.extend(_requests(run, int(needed)))
    unloaded = await _steady_rate(run, load, channels, _UNLOADED_SECONDS)
    taken_before = load.taken
    counted_before, began = _counted(run), time.perf_counter()
    calls: set[asyncio.Task[float]] = set()
    offered = 0
    chance = secrets.SystemRandom()
    while (now := time.perf_counter() - began) < seconds:
        due = int(_TIMES * unloaded * now / _REPORTS_A_CALL) - offered
        for _ in range(min(due, len(load.waiting))):
            calls.add(asyncio.create_task(load.call(chance.choice(channels))))
        offered += max(due, 0)
        calls = {call for call in calls if not call.done()}
        await asyncio.sleep(0.01)
    await asyncio.gather(*calls)
    took = time.perf_counter() - began
    overloaded = (load.taken - taken_before) * _REPORTS_A_CALL / took
    counting = (_counted(run) - counted_before) / took
    refused, hinted = load.refused, load.hinted
    while load.waiting:  # the overload is over: devices come back as they were told
        await asyncio.sleep(await load.call(channels[0]))
    sent = load.taken * _REPORTS_A_CALL
    await asyncio.to_thread(close_epochs, run.shuffler_redis)
    deadline = time.perf_counter() + 300
    while True:
        terms = total_counts(run.endpoints)
        if terms["counted"] == sent and balances(terms):
            break
        if time.perf_counter() > deadline:
            raise AssertionError(f"{sent} were acknowledged, and it does not drain: {terms}")
        await asyncio.sleep(0.2)
    for channel in channels:
        await channel.close()
    return {
        "seconds": seconds,
        "taken_unloaded": unloaded,
        "offered": offered * _REPORTS_A_CALL / took,
        "taken_overloaded": overloaded,
        "counted_overloaded": counting,
        "ratio": overloaded / unloaded,
        "calls_refused": refused,
        "refused_with_a_hint": hinted / max(refused, 1),
        "other_answers": sum(load.other.values()),
        "reports_taken": sent,
        "counted": terms["counted"],
        "duplicate": terms["duplicate"],
    }


async def _steady_rate(
    run: LocalRun, load: _Load, channels: list[grpc.aio.Channel], seconds: float
) -> float:
    """Reports counted a second when devices send as much as is taken, and wait when told."""
    began, before = time.perf_counter(), _counted(run)
    until = began + seconds

    async def device(channel: grpc.aio.Channel) -> None:
        while time.perf_counter() < until and load.waiting:
            await asyncio.sleep(0.05 * bool(await load.call(channel)))

    await asyncio.gather(*(device(channel) for channel in channels))
    # What is counted, not what the pool took ahead of it, is what can be sustained.
    return (_counted(run) - before) / (time.perf_counter() - began)


def _counted(run: LocalRun) -> int:
    return total_counts(run.endpoints)["counted"]


def _requests(run: LocalRun, number: int) -> list[bytes]:
    """So many calls of fresh reports, sealed by all cores."""
    stock = sealed_stock(run.bundle_path, number * _REPORTS_A_CALL)
    return [stock.submission(n * _REPORTS_A_CALL, _REPORTS_A_CALL) for n in range(number)]


if __name__ == "__main__":
    print(json.dumps(measure(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0), indent=1))
