"""client/typescript in pages of every engine, against `hubbub up --dev`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interfaces.browser import HANG_MS
from tests.interfaces.browser_drivers import DRIVEN, driven
from tests.interfaces.tab import Tab
from tests.interfaces.webkit import needs_webkit, webkit
from tests.support.development_server import Developing
from tests.support.node import needs_node
from tests.system.typescript.pages import FULL, OPEN, REPORT, Pages, counted, served

REPORTS = 20
# Nobody listens there: who is offline hears as much.
OFFLINE = "https://127.0.0.1:1"
HEAR = "() => { window.said = []; console.warn = (...words) => said.push(words.join(' ')); }"
# The client is opened anew in the same page: a private window of WebKit, as every session of
# WebDriver's is, forgets an origin's caches with its last page.
CLEAR = """
async () => {
  await client.close(0);
  await new Promise((resolve, reject) => {
    const gone = indexedDB.deleteDatabase("hubbub:app");
    [gone.onsuccess, gone.onerror] = [resolve, reject];
  });
}
"""
WORKER = """
async ([shuffler, metric]) => {
  const work = `
    import { open } from "${location.origin}/hubbub.js";
    const bundle = "${location.origin}/app.hubbub";
    const client = await open({ bundle, shuffler: "${shuffler}", holdSeconds: null });
    postMessage([client.report("${metric}", "dark"), await client.flush()]);
  `;
  const address = URL.createObjectURL(new Blob([work], { type: "text/javascript" }));
  const worker = new Worker(address, { type: "module" });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
  });
}
"""
OLD = "this browser is too old, or hides navigator.locks, caches, crypto.subtle or Object.hasOwn"
# As in Safari 15, or where an extension or a WebView refuses access.
REMOVALS = {
    "Object.defineProperty(window, 'caches', { value: undefined })": "TypeError",
    "Object.defineProperty(window, 'crypto', { get() { throw new Error('no'); } })": OLD,
    "Object.defineProperty(crypto, 'subtle', { value: undefined })": OLD,
    "delete Object.hasOwn": OLD,
    "delete window.isSecureContext": OLD,
    "delete window.origin; delete Navigator.prototype.locks": OLD,
    "IDBFactory.prototype.open = () => { throw new DOMException('no', 'SecurityError'); }": (
        "the spent budget cannot be stored: SecurityError"
    ),
}
LOADED = "() => performance.getEntriesByType('resource').map((one) => one.name).join()"

pytestmark = needs_node


@dataclass(frozen=True)
class Engine:
    """A browser, and what it is called in the names of its metrics."""

    name: str
    tab: Tab

    def own(self, metric: str) -> str:
        return f"{metric}_{self.name}"

    def open(self, origin: str, door: str) -> None:
        """A page in which `client` reports."""
        self.tab.goto(origin)
        self.tab.evaluate(OPEN, door)

    def report(self, metric: str, value: str) -> str:
        """What report() says, once it is kept."""
        return str(self.tab.evaluate(REPORT, [self.own(metric), value]))

    def flush(self) -> bool:
        return bool(self.tab.evaluate("() => client.flush()"))

    def attempt(self) -> bool:
        """As flush, where nothing can leave: once."""
        return bool(self.tab.evaluate("() => client.flush(0.1)"))

    def dropped(self) -> dict[str, int]:
        return dict(self.tab.evaluate("() => client.dropped"))


@pytest.fixture(scope="module", params=["chromium", *DRIVEN])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    if request.param == "chromium":
        with request.getfixturevalue("browser").new_context(ignore_https_errors=True) as context:
            context.set_default_timeout(HANG_MS)
            yield Engine(request.param, Pages(context))
        return
    with driven(request.param, tmp_path_factory.mktemp(request.param)) as tab:
        yield Engine(request.param, tab)


@pytest.fixture
def origin(origin: str, site: Path) -> Iterator[str]:
    """One that this browser has not seen: in it, this is a device of its own."""
    with served(site) as fresh:
        assert fresh != origin
        yield fresh


@pytest.mark.thorough
def test_reports_are_opened_and_limits_outlive_the_page(
    engine: Engine, up: Developing, origin: str, door: str
) -> None:
    for outcome in ("queued", "already_reported"):
        engine.open(origin, door)
        assert [engine.report("page", "dark") for _ in range(REPORTS)] == [outcome] * REPORTS
        assert engine.flush() is True
        assert engine.dropped() == {}
    counted(up, engine.own("page"), REPORTS)


def test_tabs_share_one_limit_and_one_consent(
    engine: Engine, up: Developing, origin: str, door: str
) -> None:
    tab, first = engine.tab, engine.tab.name
    engine.open(origin, door)
    other = tab.another()
    engine.open(origin, door)
    # Both have a copy of the ledger in which nothing was said: one report alone may leave.
    for name in (first, other):
        tab.front(name)
        assert engine.report("raced", "dark") == "queued"
    for name, dropped in ((first, {}), (other, {"already_reported": 1})):
        tab.front(name)
        assert engine.flush() is True
        assert engine.dropped() == dropped
    tab.front(first)
    engine.open(origin, door)
    assert engine.report("raced", "dark") == "already_reported"
    tab.evaluate("() => client.disable({ forget: true })")
    tab.front(other)
    assert engine.report("page", "a") == "queued"  # it has not heard of it, but nothing leaves
    assert engine.flush() is True
    assert engine.dropped() == {"already_reported": 1, "disabled": 1}
    tab.front(first)
    tab.evaluate("() => client.enable()")
    assert engine.report("raced", "dark") == "already_reported"  # the sums outlive forgetting
    tab.front(other)
    tab.close()
    tab.front(first)
    counted(up, engine.own("raced"), 1)


def test_waiting_reports_survive_a_killed_tab_and_are_counted_once(
    engine: Engine, up: Developing, origin: str, door: str
) -> None:
    tab, first = engine.tab, engine.tab.name
    tab.another()
    engine.open(origin, OFFLINE)
    assert engine.report("killed", "a") == "queued"
    assert engine.attempt() is False
    # In the middle of a report: its transaction has begun, and may or may not have ended.
    tab.evaluate("(metric) => { client.report(metric, 'b') }", engine.own("killed"))
    tab.close()
    tab.front(first)
    engine.open(origin, door)
    waits = tab.evaluate("() => client.waiting()")
    assert waits in (1, 2)
    assert engine.flush() is True
    # Sent again as the same bytes, as a page does that goes away: it counts once.
    tab.evaluate("() => client.leave()")
    outcomes = [engine.report("killed", "a") for _ in range(3)]
    assert outcomes == ["queued"] * (3 - waits) + ["already_reported"] * waits
    assert engine.flush() is True
    counted(up, engine.own("killed"), 3)


@pytest.mark.thorough
def test_storage_that_is_cleared_in_part_is_known_to_the_witness(
    engine: Engine, origin: str
) -> None:
    engine.open(origin, OFFLINE)
    assert engine.report("raced", "dark") == "queued"
    engine.tab.evaluate(CLEAR)
    engine.tab.evaluate(OPEN, OFFLINE)
    assert engine.report("raced", "dark") == "already_reported"
    counts = engine.tab.evaluate("() => client.ledger().then((ledger) => ledger.counts)")
    assert counts == {"state_lost": 1}


@pytest.mark.thorough
def test_a_worker_and_a_page_are_one_device(
    engine: Engine, up: Developing, origin: str, door: str
) -> None:
    engine.open(origin, door)
    assert engine.tab.evaluate(WORKER, [door, engine.own("worker")]) == ["queued", True]
    assert engine.report("worker", "dark") == "queued"  # it has not heard of the worker's
    assert engine.flush() is True
    assert engine.dropped() == {"already_reported": 1}
    counted(up, engine.own("worker"), 1)


@pytest.mark.thorough
def test_a_quota_that_is_full_lets_nothing_leave_and_loses_nothing(
    engine: Engine, up: Developing, origin: str, door: str
) -> None:
    engine.open(origin, door)
    assert engine.report("full", "a") == "queued"
    engine.tab.evaluate(FULL)
    assert engine.report("full", "a") == "queued"  # in memory: nobody has tried to keep it yet
    assert engine.report("full", "a") == "no_state"
    assert engine.attempt() is False
    engine.tab.evaluate("() => { full = false }")
    assert engine.flush() is True
    assert [engine.report("full", "a") for _ in range(2)] == ["queued", "already_reported"]
    assert engine.flush() is True
    counted(up, engine.own("full"), 3)


@pytest.mark.parametrize(("removal", "why"), REMOVALS.items())
def test_a_page_without_a_needed_api_reports_nothing_and_throws_nothing(
    engine: Engine, origin: str, removal: str, why: str
) -> None:
    engine.tab.goto(origin)
    engine.tab.evaluate(HEAR)
    engine.tab.evaluate(f"() => {{ {removal}; }}")
    engine.tab.evaluate(OPEN, OFFLINE)
    assert engine.report("page", "dark") == "no_state"
    assert engine.tab.evaluate("() => said") == [f"hubbub: nothing is reported: {why}"]
    # Without its storage a client cannot know that nothing waits.
    assert engine.tab.evaluate("() => client.close()") is ("IDBFactory" not in removal)


@pytest.mark.thorough
def test_a_closing_page_sends_waiting_reports_by_itself(
    engine: Engine, up: Developing, origin: str, door: str
) -> None:
    engine.open(origin, door)
    assert engine.report("left", "a") == "queued"
    engine.tab.goto("about:blank")
    # Nobody has flushed, and no page of this origin is open.
    counted(up, engine.own("left"), 1)
    # It is sent again by the next one, which has not heard of it: as the same bytes.
    engine.open(origin, door)
    assert engine.tab.evaluate("() => client.waiting()") == 1
    assert engine.flush() is True
    assert engine.report("left", "a") == "already_reported"
    counted(up, engine.own("left"), 1)


@needs_webkit
@pytest.mark.thorough
def test_a_private_window_of_webkit_is_detected_where_possible(tmp_path: Path, origin: str) -> None:
    with webkit(tmp_path, "+StorageAPI,+FileSystem") as tab:
        tab.goto(origin)
        tab.evaluate(HEAR)
        tab.evaluate(OPEN, OFFLINE)
        assert tab.evaluate(REPORT, ["theme", "dark"]) == "no_state"
        assert tab.evaluate("() => said") == [
            "hubbub: nothing is reported: a private window stores no spent budget",
        ]


@needs_webkit
@pytest.mark.thorough
def test_a_webkit_without_new_curves_loads_them(
    tmp_path: Path, up: Developing, origin: str, door: str
) -> None:
    with webkit(tmp_path, "-WebCryptoX25519,-WebCryptoSafeCurves") as tab:
        tab.goto(origin)
        tab.evaluate(OPEN, door)
        assert tab.evaluate(REPORT, ["old_webkit", "dark"]) == "queued"
        assert tab.evaluate("() => client.flush()") is True
        assert "fallback" in tab.evaluate(LOADED)
        counted(up, "old_webkit", 1)
