"""The app that hosts the client: what report() costs it, in time and in memory."""

import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final

from benchmarks.device import MECHANISMS
from benchmarks.measure import Row
from hubbub.catalog import Metric
from hubbub.catalog.limits_and_budgets import Limits
from hubbub.client import Client, FolderState, SystemClock
from hubbub.client.testing import FakeShuffler
from hubbub.signing.testing import TestBundle, make_bundle

_REPORTS: Final = 4000
_AN_HOUR: Final = 1000  # the most that a metric may have in an epoch
_WARM: Final = 300  # pages before the first counts: until then the app is still loading modules
_REQUESTS: Final = 690  # with the former fewer than one epoch's reports: every page draws
_ROUNDS: Final = 5
_METRIC: Final = """
[metrics.{name}]
description = "Reported by every page"
owner = "bench@example.org"
expires = 2099-06-30
epoch = "hour"
mechanism = "unary.oue"
epsilon = 1.0
values = ["light", "dark", "system"]
min_batch = 20
limits = {{ reports_per_epoch = {an_hour}, lifetime_epsilon = 1e6 }}
"""


def report() -> Iterator[Row]:
    """What the app's thread waits for: a client with its state on disk, reporting again."""
    with tempfile.TemporaryDirectory() as name:
        test_bundle = busy_bundle(Path(name))
        for mechanism, (parameters, value) in MECHANISMS.items():
            durations = _durations(
                Path(name) / mechanism, test_bundle, mechanism, parameters, value
            )
            median, p99 = (durations[len(durations) * part // 100] for part in (50, 99))
            yield Row(
                f"report(), {mechanism}, d = 128: p99",
                f"{p99:.0f} us (median {median:.0f})",
                f"one str(): p99 {_floor():.1f} us",
                p99 / _floor(),
                "<= 100 us",
            )


def memory() -> Iterator[Row]:
    """What a client holds when idle, and with ten thousand reports waiting."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "app.hubbub"
        path.write_bytes(busy_bundle(Path(name)).signed)
        bare, idle, full = (_rss_mb(path, Path(name) / what, what) for what in _HOLDING)
        yield Row(
            "client's memory, idle",
            f"{idle - bare:.1f} MB",
            f"Python {bare:.1f} MB",
            idle / bare,
            "",
        )
        yield Row(
            "client's memory, 10,000 reports waiting",
            f"{full - bare:.1f} MB",
            f"Python {bare:.1f} MB",
            full / bare,
            "",
        )
        files = (file for file in (Path(name) / "full").rglob("*") if file.is_file())
        each = sum(file.stat().st_size for file in files) / 10_000
        yield Row(
            "a report that waits, on the device's disk",
            f"{each:,.0f} bytes",
            "1 KiB",
            each / 1024,
            "<= 1",
        )


def latency() -> Iterator[Row]:
    """The app's p99 beside the same app without the client, whatever the server does."""
    with tempfile.TemporaryDirectory() as name, _server(0) as good, _server(3600) as hanging:
        path = Path(name) / "app.hubbub"
        path.write_bytes(busy_bundle(Path(name)).signed)
        apps = {"none": ["none"]} | {
            what: [metric, str(path), f"{name}/{what}", address]
            for what, metric, address in (
                ("a report an hour, server answers", "theme", good),
                ("a report an hour, server unreachable", "theme", "127.0.0.1:9"),
                ("a report an hour, server hangs", "theme", hanging),
                ("a report a page, server answers", "busy", good),
                ("a report a page, server unreachable", "busy", "127.0.0.1:9"),
                ("a report a page, server hangs", "busy", hanging),
            )
        }
        timings: dict[str, list[float]] = {what: [] for what in apps}
        for n in range(_ROUNDS):
            for what, arguments in apps.items():
                app_arguments = [f"{a}{n}" if a == f"{name}/{what}" else a for a in arguments]
                timings[what].append(_p99(app_arguments))
        without = sorted(timings.pop("none"))[_ROUNDS // 2]
        for what, all_p99 in timings.items():
            p99 = sorted(all_p99)[_ROUNDS // 2]
            yield Row(
                f"a web app's p99, {what}",
                f"{p99:.2f} ms",
                f"without the client {without:.2f} ms",
                p99 / without,
                "+ < 1 ms",
            )


@contextmanager
def _server(hang_seconds: int) -> Iterator[str]:
    """A shuffler of its own process, so that it takes no time of whoever measures."""
    code = (
        "import time; from hubbub.client.testing import FakeServer; server = FakeServer();"
        f"server.hang_seconds = {hang_seconds}; print(server.address, flush=True); time.sleep(3600)"
    )
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with server:
        yield server.stdout.readline().strip() if server.stdout is not None else ""
        server.kill()


_HOLDING: Final = ("bare", "idle", "full")
_HOLD: Final = """
import resource, sys
from pathlib import Path
what, path, folder = sys.argv[1:]
if what != "bare":
    from hubbub.client import Client
    client = Client.from_bundle(path, state_dir=folder, insecure=True, shuffler="127.0.0.1:9")
    import time
    start = time.time()
    client._reporter._clock = lambda: start - 3600 * (len(sent) // 1000)
    sent = []
    while what == "full" and len(sent) < 10_000:
        sent.append(client.report("busy", "light"))
        if len(sent) % 1000 == 0:
            client._sender.entering.enter()
with open("/proc/self/statm") as pages:
    print(int(pages.read().split()[1]) * resource.getpagesize() / 1e6)
"""


def _rss_mb(bundle: Path, folder: Path, what: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", _HOLD, what, str(bundle), str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def busy_bundle(folder: Path) -> TestBundle:
    metrics = _METRIC.format(name="busy", an_hour=1000) + _METRIC.format(name="theme", an_hour=1)
    (folder / "metrics.toml").write_text(f'shuffler = "127.0.0.1:1"\n{metrics}')
    return make_bundle(folder / "metrics.toml")


def _durations(
    folder: Path,
    test_bundle: TestBundle,
    mechanism: str,
    parameters: dict[str, Any],
    value: float | str,
) -> list[float]:
    """Of every report of one value, sorted, in microseconds."""
    options = {"categories": 2} | parameters if mechanism == "rr" else dict(parameters)
    categories, epsilon = options.pop("categories", None), options.pop("epsilon", 16.0)
    metric = Metric(
        name="asked",
        description="What is timed",
        owner="benchmarks",
        expires=date(2099, 1, 1),
        epoch="hour",
        mechanism=mechanism,
        epsilon=epsilon,
        min_batch=20,
        limits=Limits(_AN_HOUR, 1e9),
        values=tuple(map(str, range(categories))) if categories else None,
        parameters=options,
    )
    began, durations = time.time(), list[float]()
    client = Client(
        replace(test_bundle.bundle, metrics={"asked": metric}),
        FolderState(folder),
        FakeShuffler(),
        hold_seconds=None,
        clock=SystemClock(lambda: began + len(durations) // (_AN_HOUR - 1) * 3600),
    )
    answer = str(value) if categories else value
    client.report("asked", answer)  # permanent responses are drawn here
    for n in range(_REPORTS - 1):
        start = time.perf_counter_ns()
        client.report("asked", answer)
        durations.append((time.perf_counter_ns() - start) / 1000)
        if n % 1000 == 0:
            client.flush(5)
    client.close(0)
    return sorted(durations)


def _floor() -> float:
    durations = []
    for _ in range(_REPORTS):
        start = time.perf_counter_ns()
        str(start)
        durations.append((time.perf_counter_ns() - start) / 1000)
    return sorted(durations)[_REPORTS * 99 // 100]


def _p99(arguments: list[str]) -> float:
    """Of a request's duration in milliseconds, over a connection that is kept."""
    app = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.host_app", *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port = int(app.stdout.readline()) if app.stdout is not None else 0
        connection = http.client.HTTPConnection("127.0.0.1", port)
        durations = []
        for _ in range(_WARM + _REQUESTS):
            start = time.perf_counter_ns()
            connection.request("GET", "/")
            connection.getresponse().read()
            durations.append((time.perf_counter_ns() - start) / 1e6)
            time.sleep(0.002)
        connection.close()
        del durations[:_WARM]
    finally:
        app.kill()
        app.wait()
        if app.stdout is not None:
            app.stdout.close()
    return sorted(durations)[_REQUESTS * 99 // 100]
