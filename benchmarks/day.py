"""A day of a fleet, in as long as there is: everything at once, on a Redis Cluster of six nodes.

Devices visit the HTTP door, each on a fresh TLS 1.3 connection with the reports of one visit, one
after the other as fast as they are served; pool, mixer, opening and commit follow; an analyst asks
all the time. Everything runs on this machine's processors, the devices too.

By hand: python -m benchmarks.day --seconds 3600 --per-visit 10
"""

import argparse
import asyncio
import json
import socket
import ssl
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.overload import Measured
from benchmarks.stock import METRIC, Stock, sealed_stock
from hubbub.catalog import Catalog
from hubbub.cli.commands.demo import close_epochs
from hubbub.cli.commands.up import demo_catalog
from hubbub.cli.local.load_devices import Times
from hubbub.cli.local.local_run import Ports
from hubbub.cli.terminal.service_client import report_counts
from hubbub.conservation import balances, sum_terms
from tests.support.cluster import Cluster, redis_cluster
from tests.support.scraping import scraped

_VISITORS: Final = 16
_PORTION: Final = 40_000  # reports that are sealed at a time, beside everything else
_LOOKS: Final = 120
_DRAIN_SECONDS: Final = 600.0
_ALL_OPEN_SECONDS: Final = 5.0
_STAGES: Final = {
    "shuffler": ("add", "deliver"),
    "aggregator": ("batch", "open", "fold", "commit"),
}


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

    def redis_bytes(self) -> int:
        """What its masters hold, by their own word."""
        told = (node.ask("INFO", "memory").decode() for node in self._cluster.masters())
        return sum(int(one.partition("used_memory:")[2].split()[0]) for one in told)

    def stage_ms(self) -> dict[str, float]:
        """What a stage of each service took on average, so far."""
        found = {}
        for role, port in (
            ("shuffler", self.ports.shuffler_metrics),
            ("aggregator", self.ports.aggregator_metrics),
        ):
            told = scraped(self, port)
            for stage in _STAGES[role]:
                name = 'hubbub_stage_seconds_{}{{stage="' + stage + '"}}'
                calls = told.get(("", name.format("count")), 0.0)
                if calls:
                    found[f"{role}: {stage}"] = 1000 * told["", name.format("sum")] / calls
        return found


class Supply:
    """Sealed reports, a portion ahead of who sends them: no two are the same."""

    def __init__(self, bundle: Path) -> None:
        self._bundle = bundle
        self._lock = threading.Lock()
        self._stock, self._next = self._sealed(), 0
        self._ahead = ThreadPoolExecutor(1)
        self._coming = self._ahead.submit(self._sealed)

    def visit(self, reports: int) -> bytes:
        """What one visit says."""
        with self._lock:
            if self._next + reports > len(self._stock):
                self._stock, self._next = self._coming.result(), 0
                self._coming = self._ahead.submit(self._sealed)
            self._next += reports
            return self._stock.submission(self._next - reports, reports)

    def _sealed(self) -> Stock:
        return sealed_stock(self._bundle, _PORTION)

    def close(self) -> None:
        """No more."""
        self._ahead.shutdown()


@dataclass
class Seen:
    """What devices and the analyst saw, and what was held at each look."""

    acknowledged: int = 0
    refused: int = 0
    idle: int = 0
    visits: Times = field(default_factory=Times)
    questions: Times = field(default_factory=Times)
    looks: list[dict[str, float]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def _visit(address: str, trust: ssl.SSLContext, body: bytes) -> bool:
    """One visit: whether its reports were acknowledged, or it is to come back."""
    host, _, port = address.rpartition(":")
    line = socket.create_connection((host, int(port)), timeout=60)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with trust.wrap_socket(line, server_hostname=host) as spoken:
        head = (
            f"POST /v1/reports HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n"
            f"content-type: application/protobuf\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        spoken.sendall(head.encode() + body)
        status = spoken.recv(1 << 16).split(b"\r\n")[0]
    if b" 200 " not in status and b" 429 " not in status:
        raise AssertionError(status)
    return b" 200 " in status


def _devices(run: OnCluster, supply: Supply, seen: Seen, per_visit: int, until: float) -> None:
    trust = ssl.create_default_context(cadata=run.bundle.roots)
    while time.monotonic() < until:
        body = supply.visit(per_visit)
        due = time.perf_counter()
        while not _visit(run.http_door, trust, body):
            with seen.lock:
                seen.refused += 1
            time.sleep(0.2)
        with seen.lock:
            seen.visits.add(time.perf_counter() - due)
            seen.acknowledged += per_visit


def _analyst(run: OnCluster, seen: Seen, until: float) -> None:
    url = f"{run.endpoints.page}v1/metrics/{METRIC}"
    while time.monotonic() < until:
        begun = time.perf_counter()
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 our own page
                answer.read()
        except urllib.error.HTTPError as error:
            if error.code not in {404, 409}:  # before the first batch there is no answer
                raise
        seen.questions.add(time.perf_counter() - begun)
        time.sleep(0.5)


async def _strangers(run: OnCluster, number: int, seen: Seen, until: float) -> None:
    """Connections that say nothing, opened again a second after they were ended."""
    host, _, port = run.http_door.rpartition(":")

    async def stranger(place: int) -> None:
        await asyncio.sleep(_ALL_OPEN_SECONDS * place / number)
        source = f"127.0.{2 + place // 200}.{1 + place % 200}"  # a limit by address is no help
        while time.monotonic() < until:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    reader, writer = await asyncio.open_connection(
                        host, int(port), local_addr=(source, 0)
                    )
                    seen.idle += 1
                    with suppress(OSError):
                        await reader.read()
                    seen.idle -= 1
                    writer.close()
            await asyncio.sleep(1)

    await asyncio.gather(*(stranger(place) for place in range(number)))


def measure(seconds: float, per_visit: int, idle: int = 0) -> dict[str, Any]:
    """Figures by name; an AssertionError if a report was lost or counted twice."""
    with (
        tempfile.TemporaryDirectory() as home,
        redis_cluster(Path(home) / "cluster") as cluster,
        OnCluster(Path(home) / "run", demo_catalog(), Ports.free(), cluster) as run,
    ):
        supply, seen, empty = Supply(run.bundle_path), Seen(), run.redis_bytes()
        began = time.monotonic()
        until = began + seconds
        with ThreadPoolExecutor(_VISITORS + 2) as everybody:
            work = [
                everybody.submit(_devices, run, supply, seen, per_visit, until)
                for _ in range(_VISITORS)
            ]
            work.append(everybody.submit(_analyst, run, seen, until))
            if idle:
                silent = _strangers(run, idle, seen, until)
                work.append(everybody.submit(asyncio.run, silent))
            while time.monotonic() < until:
                time.sleep(max(1.0, seconds / _LOOKS))
                seen.looks.append({**_look(run), "idle": seen.idle})
                _tell(seen, time.monotonic() - began)
            for one in work:
                one.result()
        supply.close()
        took = time.monotonic() - began
        stages = run.stage_ms()
        terms = _drained(run, seen.acknowledged)
        return _figures(seen, took, stages, terms, run.redis_bytes() - empty)


def _look(run: OnCluster) -> dict[str, float]:
    run.check()
    terms = sum_terms(report_counts(run.endpoints).values())
    held = {name: float(size) for name, size in run.resident_bytes().items()}
    return {**held, "redis": run.redis_bytes(), "counted": terms["counted"]}


def _drained(run: OnCluster, acknowledged: int) -> dict[str, int]:
    close_epochs(run.shuffler_redis)
    deadline = time.monotonic() + _DRAIN_SECONDS
    while True:
        terms = sum_terms(report_counts(run.endpoints).values())
        if terms["counted"] == acknowledged and balances(terms):
            return dict(terms)
        if time.monotonic() > deadline:
            raise AssertionError(
                f"{acknowledged} were acknowledged, and it does not drain: {terms}"
            )
        time.sleep(0.5)


def _figures(
    seen: Seen, took: float, stages: dict[str, float], terms: dict[str, int], redis_bytes: int
) -> dict[str, Any]:
    half = len(seen.looks) // 2
    flat = {}
    for name in ("shuffler", "aggregator"):
        # The first fifth is the start: opening processes, caches.
        early = max(look[name] for look in seen.looks[len(seen.looks) // 5 : half + 1])
        late = max(look[name] for look in seen.looks[half:])
        flat[name] = {"mb": round(late / 1e6, 1), "second_by_first_half": round(late / early, 3)}
    return {
        "seconds": round(took, 1),
        "reports_a_second": round(seen.acknowledged / took, 1),
        "visits": seen.visits.counts.total(),
        "told_to_come_back": seen.refused,
        "idle_connections": max(look["idle"] for look in seen.looks),
        "acknowledged": seen.acknowledged,
        "law": terms,
        "until_acknowledged_ms": _shares(seen.visits),
        "question_ms": _shares(seen.questions),
        "stage_ms": {name: round(ms, 2) for name, ms in stages.items()},
        "memory": flat,
        "redis_bytes_a_report": round(redis_bytes / max(seen.acknowledged, 1), 1),
    }


def _shares(times: Times) -> dict[str, float]:
    shares = {"p50": 0.5, "p99": 0.99, "longest": 1.0}
    return {name: round(1000 * times.percentile(share), 1) for name, share in shares.items()}


def _tell(seen: Seen, elapsed: float) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{elapsed:.0f} s: {seen.acknowledged:,}", end="", file=sys.stderr)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.day", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="for so long (%(default)s)")
    parser.add_argument("--per-visit", type=int, default=1, help="reports (%(default)s)")
    parser.add_argument("--idle", type=int, default=0, help="connections of strangers (none)")
    given = parser.parse_args()
    print(json.dumps(measure(given.seconds, given.per_visit, given.idle), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
