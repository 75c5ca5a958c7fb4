"""Storage that dies or does not answer, locks that are never given back, workers and frames."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route

from tests.interfaces.browser import CHROMIUM, HANG_MS, OPTIONS
from tests.support.development_server import Developing
from tests.support.node import PACKAGE, needs_node, run
from tests.system.typescript.pages import OPEN, counted, report, tab_of

pytestmark = needs_node

# Limits pass twenty times as fast as they do, so that a test of them takes as long.
FAST = """
const after = AbortSignal.timeout.bind(AbortSignal);
AbortSignal.timeout = (milliseconds) => after(milliseconds / 20);
"""
# The same in browsers without AbortSignal.timeout, as Safari 15.
FAST_WITHOUT_TIMEOUT = """
delete AbortSignal.timeout;
const later = window.setTimeout;
window.setTimeout = (work, milliseconds, ...rest) => later(work, milliseconds / 20, ...rest);
"""
# Connections to IndexedDB, so that they can be closed as a browser does that says nothing of it.
REMEMBER = """
window.connections = [];
const open = IDBFactory.prototype.open;
IDBFactory.prototype.open = function (...given) {
  const request = open.apply(this, given);
  request.addEventListener("success", () => connections.push(request.result));
  return request;
};
"""
HOLD_LOCK = """
() => new Promise((resolve) => {
  void navigator.locks.request("hubbub:app", () => {
    resolve();
    return new Promise(() => undefined);
  });
})
"""
NEVER_ANSWERS = "IDBFactory.prototype.open = () => new EventTarget();"
WITHOUT_BUNDLE = """
const fetched = fetch;
window.fetch = (url, how) => url === "/app.hubbub" ? FAULT : fetched(url, how);
"""
UNFETCHED = (
    "Promise.resolve(new Response(new ReadableStream()))",
    "Promise.resolve(new Response('', { status: 503 }))",
    "Promise.reject(new TypeError('Failed to fetch'))",
)
FRAME = """
(script) => new Promise((resolve) => {
  window.onmessage = ({ data }) => resolve(data);
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.srcdoc = `<script type=module>${script}</script>`;
  document.body.append(frame);
})
"""
IN_FRAME = """
const said = [];
console.warn = (text) => said.push(text);
const {{ open }} = await import("{origin}hubbub.js");
const client = await open({{ bundle: "{origin}app.hubbub" }});
parent.postMessage([client.report("theme", "dark"), await client.close(), said], "*");
"""
SERVICE = """
import {{ open }} from "{entry}";
self.onmessage = async ({{ data: shuffler, ports: [port] }}) => {{
  try {{
    const client = await open({{ bundle: "/app.hubbub", shuffler, holdSeconds: null }});
    port.postMessage([client.report("service", "dark"), await client.close(60)]);
  }} catch (error) {{
    port.postMessage([error.name, error.message]);
  }}
}};
"""
ASK_SERVICE = """
async ([script, type, shuffler]) => {
  const own = await navigator.serviceWorker.register(script, { type });
  const worker = own.installing ?? own.waiting ?? own.active;
  const { port1, port2 } = new MessageChannel();
  const answer = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)));
  worker.postMessage(shuffler, [port2]);
  const said = await answer;
  await own.unregister();
  return said;
}
"""


@pytest.mark.thorough
def test_a_silently_dead_connection_is_opened_again(
    device: BrowserContext, up: Developing, origin: str, door: str
) -> None:
    device.add_init_script(REMEMBER)
    page = tab_of(device, origin, door)
    for expected in (1, 2, 3):
        page.evaluate("() => connections.forEach((one) => one.close())")
        assert report(page, "a", "reopened") == "queued"
        assert page.evaluate("client.waiting()") == expected
    assert page.evaluate("client.dropped") == {}
    assert page.evaluate("client.flush()") is True
    counted(up, "reopened", 3)


@pytest.mark.thorough
def test_a_lock_that_is_never_released_blocks_no_call_and_no_opt_out(
    device: BrowserContext, origin: str, door: str
) -> None:
    other = device.new_page()
    device.add_init_script(FAST)
    page = tab_of(device, origin, door)
    other.goto(origin)
    other.evaluate(HOLD_LOCK)
    assert report(page, "dark") == "queued"
    assert report(page, "dark", "stays") == "no_state"  # it has heard that nothing can be kept
    assert page.evaluate("client.flush(1)") is False
    with pytest.raises(Exception, match="StateUnusable"):
        page.evaluate("client.enable()")
    page.evaluate("client.disable({ forget: true })")
    assert page.evaluate("client.close(1)") is False
    other.close()
    page.reload()
    page.evaluate(OPEN, door)
    assert report(page, "dark") == "disabled"


@pytest.mark.thorough
def test_a_page_that_waits_for_a_lock_reports_after_its_release(
    device: BrowserContext, origin: str, door: str
) -> None:
    other = device.new_page()
    device.add_init_script(FAST)
    other.goto(origin)
    other.evaluate(HOLD_LOCK)
    page = tab_of(device, origin, door)
    assert report(page, "dark") == "no_state"
    other.close()
    assert page.evaluate("client.flush()") is True
    assert report(page, "dark") == "queued"


@pytest.mark.parametrize("fast", [FAST, FAST_WITHOUT_TIMEOUT], ids=["native", "substitute"])
def test_storage_that_never_answers_is_waited_for_no_longer_than_a_limit(
    device: BrowserContext, origin: str, door: str, fast: str
) -> None:
    device.add_init_script(fast + NEVER_ANSWERS)
    page = tab_of(device, origin, door)
    assert report(page, "dark") == "no_state"
    assert page.evaluate("client.flush(1)") is False
    with pytest.raises(Exception, match="StateUnusable"):
        page.evaluate("client.disable()")
    assert page.evaluate("client.close(1)") is False


@pytest.mark.parametrize("fault", UNFETCHED, ids=["endless", "error 503", "offline"])
def test_a_page_without_its_bundle_reports_nothing_and_only_strict_rejects(
    device: BrowserContext, origin: str, door: str, fault: str
) -> None:
    device.add_init_script(FAST + WITHOUT_BUNDLE.replace("FAULT", fault))
    page = device.new_page()
    page.goto(origin)
    with page.expect_console_message(lambda line: "the bundle cannot be fetched" in line.text):
        page.evaluate(OPEN, door)
    assert page.evaluate("[client.report('theme', 'dark'), client.outcomes]") == [
        "no_state",
        {"no_state": 1},
    ]
    assert page.evaluate("client.close()") is True
    with pytest.raises(Exception, match=r"/app\.hubbub: the bundle cannot be fetched"):
        page.evaluate(OPEN.replace("shuffler,", "shuffler, strict: true,"), door)


def test_a_sandboxed_frame_is_called_one_and_nothing_is_thrown(
    device: BrowserContext, origin: str
) -> None:
    page = device.new_page()
    page.goto(origin)
    outcome, sent, console_lines = page.evaluate(FRAME, IN_FRAME.format(origin=origin))
    assert (outcome, sent) == ("no_state", True)
    words = "a sandboxed frame cannot store the spent budget; allow it: allow-same-origin"
    assert console_lines == [f"hubbub: nothing is reported: {words}"]


def _service_answer(page: Page, script: str, kind: str, door: str) -> Any:
    return page.evaluate(ASK_SERVICE, [script, kind, door])


def test_service_workers_need_their_own_entry_and_the_pages_names_it(
    device: BrowserContext, site: Path, up: Developing, origin: str, door: str
) -> None:
    (site / "module.js").write_text(SERVICE.format(entry="/worker.js"))
    (site / "page_entry.js").write_text(SERVICE.format(entry="/hubbub.js"))
    source = site / "classic_source.js"
    source.write_text(SERVICE.format(entry=str(PACKAGE / "dist/src/worker.js")))
    build = ("node_modules/.bin/esbuild", str(source), "--bundle", "--log-level=error")
    run(*build, "--format=iife", f"--outfile={site / 'classic.js'}")
    page = device.new_page()
    page.goto(origin)
    name, error_text = _service_answer(page, "/page_entry.js", "module", door)
    assert name == "NotLoaded"
    assert "disallowed on ServiceWorkerGlobalScope" in error_text
    assert "hubbub-client/worker" in error_text
    assert _service_answer(page, "/module.js", "module", door) == ["queued", True]
    assert _service_answer(page, "/classic.js", "classic", door) == ["queued", True]
    counted(up, "service", 2)


def test_a_page_without_https_reports_nothing_and_throws_nothing(
    device: BrowserContext, site: Path
) -> None:
    page = device.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    folder = str(site)

    def answer(route: Route) -> None:
        route.fulfill(path=folder + urlsplit(route.request.url).path)

    page.route("http://app.example/**", answer)
    page.goto("http://app.example/index.html")
    assert page.evaluate("[isSecureContext, typeof crypto.subtle]") == [False, "undefined"]
    with page.expect_console_message(lambda line: "without HTTPS" in line.text):
        page.evaluate(OPEN, "https://reports.example.org:443")
    assert page.evaluate("client.report('theme', 'dark')") == "no_state"
    assert page.evaluate("client.close()") is True
    assert errors == []


@pytest.mark.thorough
def test_a_page_that_comes_back_from_the_back_forward_cache_goes_on(
    browser: Browser, site: Path, up: Developing, origin: str, door: str
) -> None:
    (site / "next.html").write_text("<!doctype html><title>Next</title>")
    caching = browser.browser_type.launch(
        executable_path=CHROMIUM,
        args=[*OPTIONS, "--ignore-certificate-errors"],
        ignore_default_args=["--disable-back-forward-cache"],
        timeout=HANG_MS,
    )
    page = tab_of(caching.new_context(ignore_https_errors=True), origin, door)
    page.evaluate(
        "() => addEventListener('pageshow', ({ persisted }) => (window.cached = persisted))"
    )
    assert report(page, "a", "cached") == "queued"
    page.goto(f"{origin}next.html")
    counted(up, "cached", 1)  # sent while the page went away
    page.go_back(wait_until="commit")  # a page from this cache is not loaded again
    page.wait_for_function("window.cached")
    assert report(page, "a", "cached") == "queued"
    assert page.evaluate("client.flush()") is True
    caching.close()
    counted(up, "cached", 2)
