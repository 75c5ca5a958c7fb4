"""A day of a fleet, in as long as there is: everything at once, on a Redis Cluster of six nodes.

Devices visit the HTTP door, each on a fresh TLS 1.3 connection with the reports of one visit, one
after the other as fast as they are served; pool, mixer, opening and commit follow; an analyst asks
all the time. Everything runs on this machine's processors, the devices too.

The hour that RESULTS.md keeps: python -m benchmarks day. As long as wanted, printed alone:
python -m benchmarks.day --seconds 120 --per-visit 1. SIGTERM and Ctrl-C end the load early, and the
rest goes as after its time; build/day.json has every look so far, whatever becomes of it.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.day_load import Load, Supply
from benchmarks.measure import Row
from benchmarks.overload import Measured, processor_seconds
from hubbub.authoring import Catalog
from hubbub.cli.commands.demo import close_epochs
from hubbub.cli.commands.up import demo_catalog
from hubbub.conservation import balances
from hubbub.installation.local_run import Ports
from hubbub.simulation.load_devices import Times
from tests.support.cluster import Cluster, redis_cluster
from tests.support.law_terms import total_counts
from tests.support.prometheus_scrape import scraped

_SECONDS: Final = 3480.0  # an hour, with its start and its end
_PER_VISIT: Final = 10
_VISITORS: Final = 16
_TAG_BYTES: Final = 12  # what a counted report may keep of Redis
_ALONE: Final = 100  # visits and questions before the load
_LOOKS: Final = 120
_DRAIN_SECONDS: Final = 600.0
_RESULT_FILE: Final = Path("build/day.json")
_STAGES: Final = {
    "shuffler": ("add", "deliver"),
    "aggregator": ("batch", "open", "fold", "commit"),
}
_SERVICES: Final = ("shuffler", "aggregator")


class OnCluster(Measured):
    """Both roles on one Cluster."""

    def __init__(self, home: Path, catalog: Catalog, ports: Ports, cluster: Cluster) -> None:
        super().__init__(home, catalog, ports, max_pool=1_000_000)
        self._cluster = cluster
        self.ports = ports

    def _start_redis(self) -> None:
        """It runs already."""

    @property
    def shuffler_redis(self) -> str:
        """The Cluster."""
        return self._cluster.url

    @property
    def aggregator_redis(self) -> str:
        """The same."""
        return self._cluster.url

    def check(self) -> None:
        """Raises ServiceUnavailable if any process has ended, a node's too."""
        super().check()
        for node in self._cluster.nodes:
            node.child.check()

    def redis_bytes(self, what: str = "used_memory") -> int:
        """What its masters hold, by their own word."""
        info_texts = (node.ask("INFO", "memory").decode() for node in self._cluster.masters())
        return sum(int(text.partition(f"\n{what}:")[2].split()[0]) for text in info_texts)

    def processor_seconds(self) -> dict[str, float]:
        """What each service, the Cluster, and devices and analyst have had of all processors."""
        cpu_seconds = {child.name: processor_seconds(child.process.pid) for child in self.children}
        cpu_seconds["Cluster"] = sum(
            processor_seconds(n.child.process.pid) for n in self._cluster.nodes
        )
        return {
            **cpu_seconds,
            "devices": processor_seconds(os.getpid()) - sum(cpu_seconds.values()),
        }

    def stage_ms(self) -> dict[str, float]:
        """What a stage of each service took on average, so far."""
        stage_times = {}
        for role, port in (
            ("shuffler", self.ports.shuffler_metrics),
            ("aggregator", self.ports.aggregator_metrics),
        ):
            metrics = scraped(self, port)
            for stage in _STAGES[role]:
                name = 'hubbub_stage_seconds_{}{{stage="' + stage + '"}}'
                calls = metrics.get(("", name.format("count")), 0.0)
                if calls:
                    took = 1000 * metrics["", name.format("sum")] / calls
                    stage_times[f"{role}: {stage}"] = round(took, 2)
        return stage_times


@contextmanager
def _ended_by_signals(over: threading.Event) -> Iterator[None]:
    """What would end the program ends the load, and the rest goes as after its time."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    former = [signal.signal(number, lambda *_: over.set()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, former, strict=True):
            signal.signal(number, handler)


def measure(seconds: float, per_visit: int, idle: int = 0) -> dict[str, Any]:
    """Figures by name; an AssertionError if a report was lost or counted twice."""
    over = threading.Event()
    with (
        _ended_by_signals(over),
        tempfile.TemporaryDirectory() as home,
        redis_cluster(Path(home) / "cluster") as cluster,
        OnCluster(Path(home) / "run", demo_catalog(), Ports.free(), cluster) as run,
        closing(Supply(run.bundle_path)) as supply,
    ):
        load = Load(run, supply, per_visit, over)
        alone, question_times = Times(), Times()
        for _ in range(_ALONE):
            alone.add(load.visit())
            question_times.add(load.ask())
        figures = {
            "reports_a_visit": per_visit,
            "acknowledged_alone_ms": _shares(alone),
            "question_alone_ms": _shares(question_times),
        }
        figures |= _under_load(run, load, seconds, idle)
        figures["law"] = _terms_when_drained(run, load)
        _keep({**figures, "looks": load.seen.looks})
        return figures


def _under_load(run: OnCluster, load: Load, seconds: float, idle: int) -> dict[str, Any]:
    """Look at everything from time to time until the time is over, or somebody has failed."""
    began, used, before = time.monotonic(), run.processor_seconds(), load.seen.acknowledged

    def look() -> dict[str, Any]:
        took = time.monotonic() - began
        load.seen.looks.append({"seconds": round(took, 1), **_measure_once(run, load)})
        figures = _figures(run, load, took, load.seen.acknowledged - before, used)
        _keep({**figures, "looks": load.seen.looks})
        _say_progress(load, took)
        return figures

    with ThreadPoolExecutor(_VISITORS + 2) as everybody:
        work = [everybody.submit(load.devices) for _ in range(_VISITORS)]
        work.append(everybody.submit(load.analyst))
        if idle:
            work.append(everybody.submit(load.strangers, idle))
        try:
            while (remaining := began + seconds - time.monotonic()) > 0:
                if load.over.wait(min(remaining, max(1.0, seconds / _LOOKS))):
                    break
                look()
                for future in work:
                    if future.done():
                        future.result()
        finally:
            load.over.set()
        for future in work:
            future.result()
    return look()


def _measure_once(run: OnCluster, load: Load) -> dict[str, float]:
    run.check()
    memory = {name: size / 1e6 for name, size in run.resident_bytes().items()}
    memory |= {
        "Cluster's masters": run.redis_bytes() / 1e6,
        "Cluster's masters, resident": run.redis_bytes("used_memory_rss") / 1e6,
    }
    terms = total_counts(run.endpoints)
    return {
        **{name: round(megabytes, 2) for name, megabytes in memory.items()},
        "acknowledged": load.seen.acknowledged,
        "counted": terms["counted"],
        "idle": load.seen.idle,
    }


def _terms_when_drained(run: OnCluster, load: Load) -> dict[str, int]:
    """The law's terms, once everything that was acknowledged is counted."""
    close_epochs(run.shuffler_redis)
    deadline = time.monotonic() + _DRAIN_SECONDS
    while True:
        terms = total_counts(run.endpoints)
        if terms["counted"] == load.seen.acknowledged and balances(terms):
            return dict(terms)
        if time.monotonic() > deadline:
            raise AssertionError(
                f"{load.seen.acknowledged} were acknowledged, and it does not drain: {terms}"
            )
        time.sleep(0.5)


def _figures(
    run: OnCluster, load: Load, took: float, acknowledged: int, used: dict[str, float]
) -> dict[str, Any]:
    progress, now = load.seen, run.processor_seconds()
    # The first fifth is the start: opening processes, caches.
    looks = progress.looks[len(progress.looks) // 5 :]
    hours = [look["seconds"] / 3600 for look in looks]
    half, flat = len(looks) // 2, {}
    for name in _SERVICES if half else ():
        sizes = [look[name] for look in looks]
        flat[name] = {
            "mb": max(sizes[half:]),
            "mb_before": max(sizes[:half]),
            "mb_an_hour": round(float(np.polyfit(hours, sizes, 1)[0]), 2),
        }
    bytes_a_report = 0.0
    counted = [look["counted"] for look in looks]
    if len({*counted}) > 1:  # none is counted before the first pool is mixed
        bytes_a_report = (
            1e6 * np.polyfit(counted, [look["Cluster's masters"] for look in looks], 1)[0]
        )
    return {
        "seconds": round(took, 1),
        "reports_a_second": round(acknowledged / took, 1),
        "acknowledged": progress.acknowledged,
        "visits": progress.visits.counts.total(),
        "told_to_come_back": progress.refused,
        "cut_off": progress.failed,
        "idle_connections": max(look["idle"] for look in progress.looks),
        "acknowledged_ms": _shares(progress.visits),
        "questions": progress.questions.counts.total(),
        "question_ms": _shares(progress.questions),
        "stage_ms": run.stage_ms(),
        "processor_us_a_report": {
            name: round(1e6 * (now[name] - used[name]) / max(acknowledged, 1), 1) for name in now
        },
        "memory": flat,
        "redis_bytes_a_report": round(float(bytes_a_report), 1),
    }


def _shares(times: Times) -> dict[str, float]:
    shares = {"p50": 0.5, "p99": 0.99, "longest": 1.0}
    return {name: round(1000 * times.percentile(share), 1) for name, share in shares.items()}


def _keep(figures: dict[str, Any]) -> None:
    _RESULT_FILE.parent.mkdir(exist_ok=True)
    new = _RESULT_FILE.with_suffix(".new")
    new.write_text(json.dumps(figures, indent=1))
    new.replace(_RESULT_FILE)


def _say_progress(load: Load, elapsed: float) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{elapsed:.0f} s: {load.seen.acknowledged:,}", end="", file=sys.stderr)


def day() -> Iterator[Row]:
    """An hour of it, or until it is told to end."""
    yield from _rows(measure(_SECONDS, _PER_VISIT))


def _rows(figures: dict[str, Any]) -> Iterator[Row]:
    what = "a day at scale, everything on 2 cores and a Cluster of six nodes"
    spent = ", ".join(f"{name} {us:.0f}" for name, us in figures["processor_us_a_report"].items())
    stages = ", ".join(f"{name} {ms:.1f}" for name, ms in figures["stage_ms"].items())
    counted, acknowledged = figures["law"]["counted"], figures["acknowledged"]
    yield Row(
        f"{what}: counted",
        f"{counted:,} in {figures['seconds']:,.0f} s, {figures['reports_a_second']:,.0f}/s in "
        f"visits of {figures['reports_a_visit']} (processor us a report: {spent}; ms a call: "
        f"{stages})",
        f"acknowledged: {acknowledged:,}, and the law balances",
        counted / acknowledged,
        "1",
        more=True,
    )
    for name in ("acknowledged", "question"):
        loaded, alone = figures[f"{name}_ms"]["p99"], figures[f"{name}_alone_ms"]["p99"]
        yield Row(
            f"{what}: {name}, p99",
            f"{loaded:.0f} ms (p50 {figures[f'{name}_ms']['p50']:.0f}, "
            f"longest {figures[f'{name}_ms']['longest']:,.0f})",
            f"alone: {alone:.0f} ms",
            loaded / alone,
            "<= 1,000 ms",
        )
    for name, usage in figures["memory"].items():
        yield Row(
            f"{what}: memory of the {name}",
            f"{usage['mb']:.0f} MB in the second half, {usage['mb_an_hour']:+.1f} MB an hour",
            f"in the first, past its start: {usage['mb_before']:.0f} MB",
            usage["mb"] / usage["mb_before"],
            "<= 1.05",
        )
    if figures["memory"]:
        grown = figures["redis_bytes_a_report"]
        yield Row(
            f"{what}: memory of the Cluster's masters",
            f"{grown:.1f} bytes a counted report",
            f"a tag of a full bucket: {_TAG_BYTES}",
            grown / _TAG_BYTES,
            "<= 2.5",
        )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.day", description=__doc__)
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="for so long (%(default)s)")
    parser.add_argument("--per-visit", type=int, default=_PER_VISIT, help="reports (%(default)s)")
    parser.add_argument("--idle", type=int, default=0, help="connections of strangers (none)")
    args = parser.parse_args()
    figures = measure(args.seconds, args.per_visit, args.idle)
    print(json.dumps(figures, indent=1))
    for row in _rows(figures):
        print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
