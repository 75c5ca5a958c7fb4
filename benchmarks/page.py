"""A page that reports: how long it is held up, what it loads, and when the first report leaves.

Each visit is of a browser that has seen nothing. Beside ours are others' SDKs for pages, which send
one value of one question each, in the same run and by turns, bundled by the same program (`web/`).

What is timed of a first report, of all three alike: from where the page begins to load the bundled
SDK until the first byte of its server's answer is there. Page, SDK and collector are of one origin
over HTTP/1.1 and TLS, so nobody asks first whether another origin may send. Ours does in that time
what no other does: it fetches the catalog's bundle and checks its signature, and before anything is
sent it has written the device's state down three times and told its witness twice.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

from playwright.sync_api import Browser, Page

from benchmarks.measure import Row
from hubbub.authoring import read_catalog
from hubbub.installation.local_run import LocalRun, Ports
from hubbub.runtime.tls import TlsFolder
from tests.interfaces.browser import CHROMIUM, OPTIONS, chromium

_ROOT: Final = Path(__file__).parents[1]
_WEB: Final = Path(__file__).with_name("web")
_PEERS: Final = _ROOT / "build" / "web"
_QUEUED: Final = 100
_VISITS: Final = 5
_FIRST: Final = 20
_LONG_MS: Final = 50  # a task that is longer is a long task to browsers
_SLOW: Final = 4  # a phone's processor, as browsers' own tools slow theirs
_ANY: Final = "https://127.0.0.1:1"  # nobody listens: what is entered waits
_CATALOG: Final = f"""
shuffler = "127.0.0.1:1"

[metrics.theme]
description = "Colour theme"
owner = "bench@example.org"
expires = 2099-06-30
epoch = "day"
mechanism = "unary.oue"
epsilon = 1.0
values = ["light", "dark", "system"]
min_batch = 20
limits = {{ reports_per_epoch = {_QUEUED}, lifetime_epsilon = 1e6 }}
"""
# Where nobody listens they wait; the next visit finds them, sends them all, and goes away.
_QUEUE: Final = """
async ([shuffler, queued]) => {
  const { open } = await import("/hubbub/hubbub.js");
  const client = await open({ bundle: "/app.hubbub", shuffler, holdSeconds: null });
  for (let number = 0; number < queued; number += 1) client.report("theme", "dark");
  await client.settled();
  client.leave();
  return client.waiting();
}
"""
_SEND: Final = """
async ([shuffler]) => {
  const { open } = await import("/hubbub/hubbub.js");
  const client = await open({ bundle: "/app.hubbub", shuffler, holdSeconds: null });
  await client.flush(600);
  return client.waiting();
}
"""
# When the first byte of the answer came: the request is at the server just before.
_ARRIVAL: Final = """
async (name) => {
  const begun = performance.now();
  const arrived = new Promise((resolve) => {
    new PerformanceObserver((list) => {
      for (const { name, responseStart } of list.getEntries()) {
        if (/[/](reports|submit|envelope)[/?]|[/]reports$/.test(name)) resolve(responseStart);
      }
    }).observe({ type: "resource" });
  });
  const { send } = await import(`/${name}/${name}.js`);
  await send(location.origin);
  return (await arrived) - begun;
}
"""


def page() -> Iterator[Row]:
    """In chromium; without it, or without npm, nothing is measured, and that is said."""
    if CHROMIUM is None or shutil.which("npm") is None:
        print("No chromium or no npm here: pages are not measured.", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as name, chromium("--ignore-certificate-errors") as browser:
        home = Path(name)
        catalog = home / "metrics.toml"
        catalog.write_text(_CATALOG)
        peers = _peers()
        sizes = _bundled(home, ["hubbub", *peers])
        with (
            LocalRun(home / "up", read_catalog(catalog), Ports.free()) as run,
            _site(home, run.home / "tls") as site,
        ):
            shutil.copy(run.bundle_path, home / "app.hubbub")
            yield from _tasks(browser, site, f"https://{run.http_door}")
            first = _median_milliseconds(browser, site, list(sizes))
            on_disk = _first_on_disk(browser, home, run.home / "tls", list(sizes))
    for peer in peers:
        yield Row(
            f"a page loads, beside {peer}",
            f"{sizes['hubbub']:,} bytes",
            f"{peer} {sizes[peer]:,} bytes",
            sizes["hubbub"] / sizes[peer],
            "<= 25,000 bytes",
        )
        yield Row(
            f"a page's first report is at the server, beside {peer}",
            f"{first['hubbub']:.0f} ms",
            f"{peer} {first[peer]:.0f} ms",
            first["hubbub"] / first[peer],
            "",
        )
        yield Row(
            f"a page's first report, what is kept on a disk, beside {peer}",
            f"{on_disk['hubbub']:.0f} ms",
            f"{peer} {on_disk[peer]:.0f} ms",
            on_disk["hubbub"] / on_disk[peer],
            "",
        )


def _tasks(browser: Browser, site: str, door: str) -> Iterator[Row]:
    """The longest task of the page's thread, and the most work in one; medians of some visits."""
    for slower, processor in ((1, ""), (_SLOW, f", a processor {_SLOW} times slower")):
        queueing, sending = list[tuple[float, float]](), list[tuple[float, float]]()
        for _ in range(_VISITS):
            context = browser.new_context(ignore_https_errors=True)
            for longest, script, where in ((queueing, _QUEUE, _ANY), (sending, _SEND, door)):
                tab = context.new_page()
                tab.goto(site)
                tab.evaluate("0")  # what drives the page is in it before anything is timed
                context.new_cdp_session(tab).send(
                    "Emulation.setCPUThrottlingRate", {"rate": slower}
                )
                browser.start_tracing(
                    page=tab, categories=["disabled-by-default-devtools.timeline"]
                )
                backlog = tab.evaluate(script, [where, _QUEUED])
                longest.append(_longest_ms(browser.stop_tracing(), site))
                if backlog != (_QUEUED if longest is queueing else 0):
                    raise AssertionError(f"{backlog} reports wait")
                tab.close()
            context.close()
        for what, timings in (("queued and sealed", queueing), ("sent", sending)):
            longest_ms, worked_ms = map(statistics.median, zip(*timings, strict=True))
            yield Row(
                f"a page's longest task, {_QUEUED} reports {what}{processor}",
                f"{longest_ms:.1f} ms ({worked_ms:.1f} of processor)",
                f"a long task {_LONG_MS} ms",
                longest_ms / _LONG_MS,
                "" if processor else "<= 1",
            )


def _longest_ms(trace: bytes, site: str) -> tuple[float, float]:
    """Of the thread that the page runs on; the browser has pages of its own beside it.

    By the clock, which others on this machine stop too, and of the thread's own work.
    """
    events = json.loads(trace)["traceEvents"]
    ours = {
        frame["processId"]
        for event in events
        if event["name"] == "TracingStartedInBrowser"
        for frame in event["args"]["data"]["frames"]
        if frame["url"].startswith(site)
    }
    pages = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name"
        and event["args"]["name"] == "CrRendererMain"
        and event["pid"] in ours
    }
    tasks = [
        event
        for event in events
        if event["name"] == "RunTask" and (event["pid"], event["tid"]) in pages
    ]
    # Neither is there yet of the one that runs.
    dur, tdur = (max(task.get(name, 0) / 1000 for task in tasks) for name in ("dur", "tdur"))
    return dur, tdur


def _median_milliseconds(browser: Browser, site: str, names: Sequence[str]) -> Mapping[str, float]:
    """Milliseconds, the median of some visits, in windows that keep what they keep in memory."""
    timings: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(_FIRST):
        for name in names:
            context = browser.new_context(ignore_https_errors=True)
            timings[name].append(_arrival(context.new_page(), site, name))
            context.close()
    return {name: statistics.median(visits) for name, visits in timings.items()}


def _first_on_disk(
    browser: Browser, folder: Path, tls: Path, names: Sequence[str]
) -> Mapping[str, float]:
    """The same in a browser with a profile on a disk; each visit is to an origin of its own."""
    timings: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as profile:
        context = browser.browser_type.launch_persistent_context(
            profile,
            executable_path=CHROMIUM,
            args=[*OPTIONS, "--ignore-certificate-errors"],
            ignore_https_errors=True,
        )
        for _ in range(_FIRST):
            for name in names:
                with _site(folder, tls) as site:
                    tab = context.new_page()
                    timings[name].append(_arrival(tab, site, name))
                    tab.close()
        context.close()
    return {name: statistics.median(visits) for name, visits in timings.items()}


def _arrival(tab: Page, site: str, name: str) -> float:
    tab.goto(site)
    return float(tab.evaluate(_ARRIVAL, name))


def _peers() -> Sequence[str]:
    """Those that could be installed, apart from what ours is built with."""
    _PEERS.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(_WEB / name, _PEERS)
    install = ["npm", "ci", "--silent", "--no-audit", "--no-fund", "--prefix", str(_PEERS)]
    if subprocess.run(install, check=False).returncode:
        print("The peers of pages could not be installed here.", file=sys.stderr)
        return []
    return ["glean", "sentry"]


def _bundled(folder: Path, names: Sequence[str]) -> Mapping[str, int]:
    """The bytes after gzip that a page loads of each."""
    ready = ["make", "--silent", "client/typescript/node_modules/ready"]
    subprocess.run(ready, cwd=_ROOT, check=True)
    (folder / "index.html").write_text("<!doctype html><html lang=en><title>A page</title>")
    process = subprocess.run(
        [
            shutil.which("node") or "node",
            "bundle.js",
            str(folder),
            str(_PEERS / "node_modules"),
            *names,
        ],
        cwd=_WEB,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: int(size) for name, size in json.loads(process.stdout).items()}


class _Site(SimpleHTTPRequestHandler):
    """Gives what is in its folder, and answers whatever is sent."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else what is longer than a packet waits 40 ms

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Nothing."""


@contextmanager
def _site(folder: Path, tls: Path) -> Iterator[str]:
    """Over HTTPS: one of the peers speaks nothing else."""
    trust = TlsFolder(tls, "shuffler").server_context(mutual=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Site, directory=str(folder))) as server:
        # Each connection shakes hands in its own thread, else all wait for the slowest.
        server.socket = trust.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
