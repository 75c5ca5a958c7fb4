"""client/typescript in real pages of chromium, against `hubbub up --dev`."""

import http.server
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from hubbub.cli.local.ports import free_port
from hubbub.errors import HubbubError
from hubbub.wire.v1.services_pb2 import Estimated
from tests.interfaces.browser import HANG_MS, chromium, needs_browser
from tests.support import asking
from tests.support.developing import Developing, developing
from tests.support.waiting import eventually
from tests.system.test_typescript import PACKAGE, needs_node

LIMIT_BYTES = 25_000
CATALOG = """
shuffler = "127.0.0.1:1"

[metrics.theme]
description = "Colour theme"
owner = "you@example.org"
expires = 2099-12-31
epoch = "day"
mechanism = "grr"
epsilon = 4.0
values = ["light", "dark", "system"]
min_batch = 1000
limits = { reports_per_epoch = 1, lifetime_epsilon = 50.0 }

[metrics.stays]
description = "A value that stays"
owner = "you@example.org"
expires = 2099-12-31
epoch = "day"
mechanism = "long.grr"
epsilon = 1.0
permanent_epsilon = 2.0
values = ["a", "b"]
min_batch = 1000
limits = { reports_per_epoch = 3, lifetime_epsilon = 50.0 }
"""
ONE = """
[metrics.{name}]
description = "A value"
owner = "you@example.org"
expires = 2099-12-31
epoch = "day"
mechanism = "grr"
epsilon = 1.0
values = ["a", "b", "dark"]
min_batch = 1000
limits = {{ reports_per_epoch = {reports}, lifetime_epsilon = 500.0 }}
"""
OPEN = """
async (shuffler) => {
  const { open } = await import("/hubbub.js");
  window.client = await open({ bundle: "/app.hubbub", shuffler, holdSeconds: null });
}
"""

MANY = """
async ([shuffler, metric, values]) => {
  const { open } = await import("/hubbub.js");
  const tried = values.map(async (value, number) => {
    const options = { bundle: "/app.hubbub", shuffler, holdSeconds: null, app: `device ${number}` };
    const client = await open(options);
    const said = client.report(metric, value);
    return [said, await client.flush(60) ? "sent" : "waits"];
  });
  const counts = {};
  for (const one of (await Promise.all(tried)).flat()) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
}
"""
HUNDRED = """
async () => {
  const said = Array.from({ length: 100 }, () => client.report("many", "a"));
  await client.settled();
  return said;
}
"""

pytestmark = [needs_node, needs_browser]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("site")
    packages = "client/typescript/node_modules/ready"
    subprocess.run(["make", packages], cwd=PACKAGE.parents[1], check=True, capture_output=True)
    done = subprocess.run(
        ["node", "bundle.js", str(folder)], cwd=PACKAGE, check=True, capture_output=True, text=True
    )
    (folder / "loaded").write_text(done.stdout)
    (folder / "index.html").write_text("<!doctype html><title>An app</title>")
    return folder


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Developing]:
    ones = {"raced": 1, "killed": 3, "many": 100}
    catalog = CATALOG + "".join(ONE.format(name=n, reports=most) for n, most in ones.items())
    with developing(tmp_path_factory.mktemp("up"), catalog) as own:
        yield own


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as own:
        yield own


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_words: object) -> None:
        """Nothing."""


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """A page's origin: chromium takes this machine's for as safe as HTTPS."""
    port = free_port()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", port), partial(_Quiet, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def origin(site: Path, up: Developing) -> Iterator[str]:
    (site / "app.hubbub").write_bytes(up.bundle.read_bytes())
    with _served(site) as address:
        yield address


@pytest.fixture
def door(up: Developing) -> str:
    [found] = re.findall(r"over HTTP to +(\S+)", up.said)
    return str(found)


@pytest.fixture
def device(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that has seen nothing."""
    context = browser.new_context(ignore_https_errors=True)
    context.set_default_timeout(HANG_MS)
    yield context
    context.close()


def _page(device: BrowserContext, origin: str, door: str) -> Page:
    page = device.new_page()
    page.goto(origin)
    page.evaluate(OPEN, door)
    return page


def _report(page: Page, value: str, metric: str = "theme") -> str:
    return str(
        page.evaluate(
            "async ([metric, value]) => {"
            " const said = client.report(metric, value); await client.settled(); return said; }",
            [metric, value],
        )
    )


def _counted(up: Developing, metric: str, reports: int) -> Estimated:
    """What is answered once so many reports of a metric are counted; then the law is balanced."""

    def answered() -> Estimated | None:
        found = asking.estimate(up.endpoints, metric)
        return found if found.reports >= reports else None

    found = eventually(answered, although=(HubbubError,))
    assert found is not None
    assert found.reports == reports
    law = json.loads(up.run("status", "--format", "json"))
    assert law["balanced"], law
    return found


def test_a_page_loads_little(site: Path) -> None:
    assert 10_000 < int((site / "loaded").read_text()) <= LIMIT_BYTES


def test_many_devices_are_counted_as_they_are(
    browser: Browser, up: Developing, origin: str, door: str
) -> None:
    held = {"light": 180, "dark": 90, "system": 30}
    values = [value for value, many in held.items() for _ in range(many)]
    # Devices are isolated: in browsers that have seen nothing, and by name within one.
    for part in range(3):
        context = browser.new_context(ignore_https_errors=True)
        page = context.new_page()
        page.goto(origin)
        said = page.evaluate(MANY, [door, "theme", values[part::3]])
        assert said == {"queued": 100, "sent": 100}
        context.close()
    found = _counted(up, "theme", len(values))
    for one in found.values:
        # Six of the standard errors that are claimed: a false alarm in less than 1e-8.
        assert abs(one.estimate - held[one.value]) <= 6 * one.stderr


def test_tabs_share_one_limit_and_one_consent(
    device: BrowserContext, up: Developing, origin: str, door: str
) -> None:
    one, other = _page(device, origin, door), _page(device, origin, door)
    # Both have a copy of the ledger in which nothing was said: one report alone may leave.
    said = [_report(page, "dark", "raced") for page in (one, other)]
    assert said == ["queued", "queued"]
    assert [page.evaluate("client.flush()") for page in (one, other)] == [True, True]
    assert [page.evaluate("client.dropped") for page in (one, other)] == [
        {},
        {"already_reported": 1},
    ]
    one.reload()
    one.evaluate(OPEN, door)
    assert _report(one, "dark", "raced") == "already_reported"
    one.evaluate("client.disable({ forget: true })")
    assert _report(other, "a", "stays") == "queued"  # it has not heard of it, but nothing leaves
    assert other.evaluate("client.flush()") is True
    assert other.evaluate("client.dropped") == {"already_reported": 1, "disabled": 1}
    one.evaluate("client.enable()")
    assert _report(one, "dark", "raced") == "already_reported"  # the sums outlive forgetting
    _counted(up, "raced", 1)


def test_what_waits_outlives_a_tab_that_is_killed_and_is_counted_once(
    device: BrowserContext, up: Developing, origin: str, door: str
) -> None:
    page = _page(device, origin, door)
    device.set_offline(True)
    assert _report(page, "a", "killed") == "queued"
    assert page.evaluate("client.flush(0.1)") is False
    # In the middle of a report: its transaction has begun, and may or may not have ended.
    page.evaluate("() => { client.report('killed', 'b') }")
    page.close()
    device.set_offline(False)
    next_page = _page(device, origin, door)
    waits = next_page.evaluate("client.waiting()")
    assert waits in (1, 2)
    assert next_page.evaluate("client.flush()") is True
    # Sent again as the same bytes, as a page does that goes away: it counts once.
    next_page.evaluate("client.leave()")
    said = [_report(next_page, "a", "killed") for _ in range(3)]
    assert said == ["queued"] * (3 - waits) + ["already_reported"] * waits
    assert next_page.evaluate("client.flush()") is True
    _counted(up, "killed", 3)


def test_storage_that_is_cleared_in_part_is_known_to_the_witness(
    device: BrowserContext, origin: str, door: str
) -> None:
    page = _page(device, origin, door)
    assert _report(page, "dark") == "queued"
    page.evaluate(
        "async () => { await client.close(0); await new Promise((resolve, reject) => {"
        " const gone = indexedDB.deleteDatabase('hubbub:app');"
        " gone.onsuccess = resolve; gone.onerror = reject; }); }"
    )
    page.reload()
    page.evaluate(OPEN, door)
    assert _report(page, "dark") == "already_reported"
    assert page.evaluate("client.ledger().then((ledger) => ledger.counts)") == {"state_lost": 1}


def test_where_nothing_can_be_kept_nothing_is_reported(
    device: BrowserContext, origin: str, door: str
) -> None:
    page = device.new_page()
    page.add_init_script(
        "IDBFactory.prototype.open = () => { throw new DOMException('no', 'SecurityError') }"
    )
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(origin)
    page.evaluate(OPEN, door)
    assert _report(page, "dark") == "no_state"
    assert said == [
        "hubbub: nothing is reported: what is spent cannot be kept: SecurityError",
    ]


def test_a_hundred_reports_leave_the_page_free(
    device: BrowserContext, origin: str, door: str
) -> None:
    page = _page(device, origin, door)
    page.evaluate(
        "() => { window.long = []; new PerformanceObserver((list) => window.long.push("
        "...list.getEntries().map((one) => one.duration))).observe({ type: 'longtask' }); }"
    )
    assert page.evaluate(HUNDRED) == ["queued"] * 100
    # How long tasks are is measured elsewhere; that none holds the page for a second is seen here.
    assert all(length < 1000 for length in page.evaluate("long"))
