"""client/typescript in real pages of chromium, against `hubbub up --dev`."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext
from scipy.stats import binom

from tests.interfaces.browser import HANG_MS
from tests.support.development_server import Developing
from tests.support.node import needs_node
from tests.system.typescript.pages import FALSE_ALARM, FULL, OPEN, counted, report, tab_of

LIMIT_BYTES = 25_000
DEVICES, AT_ONCE = 100, 50
QUESTIONS = [f"question_{number}" for number in range(5)]
# A device of each number, isolated by its name: its answers to all questions, sent at once.
MANY = """
async ([shuffler, first, after, atOnce, questions]) => {
  const { open } = await import("/hubbub.js");
  const bundle = new Uint8Array(await (await fetch("/app.hubbub")).arrayBuffer());
  const counts = {};
  const live = async (number) => {
    const app = `device ${number}`;
    const client = await open({ bundle, shuffler, holdSeconds: null, app });
    const said = questions.map((question, at) =>
      client.report(question, "aaaabbbccd"[(number + 3 * at) % 10]));
    said.push(await client.close(600) ? "sent" : "waits");
    for (const one of said) counts[one] = (counts[one] ?? 0) + 1;
  };
  for (let number = first; number < after; number += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, (_, at) => live(number + at)));
  }
  return counts;
}
"""
SCORED, SCORES = 100, (1.2, -0.6, 0.4)
# Each from a device of its own, which first says what is no such vector.
VECTOR_SCRIPT = """
async ([shuffler, devices, scores]) => {
  const { open } = await import("/hubbub.js");
  const bundle = new Uint8Array(await (await fetch("/app.hubbub")).arrayBuffer());
  const counts = {};
  const live = async (number) => {
    const own = { app: `scorer ${number}`, holdSeconds: null, strict: false };
    const client = await open({ bundle, shuffler, ...own });
    const said = [scores.slice(1), number % 2 ? scores : Float64Array.from(scores)]
      .map((value) => client.report("scores", value));
    said.push(await client.close(600) ? "sent" : "waits");
    for (const one of said) counts[one] = (counts[one] ?? 0) + 1;
  };
  for (let number = 0; number < devices; number += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, at) => live(number + at)));
  }
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
pytestmark = needs_node


def test_a_page_loads_little(site: Path) -> None:
    assert 10_000 < int((site / "loaded").read_text()) <= LIMIT_BYTES


@pytest.mark.thorough
def test_a_hundred_devices_are_counted_as_they_are(
    browser: Browser, up: Developing, origin: str, door: str
) -> None:
    # Devices are isolated: in browsers that have seen nothing, and by name within one.
    for first in range(0, DEVICES, DEVICES // 2):
        context = browser.new_context(ignore_https_errors=True)
        context.set_default_timeout(HANG_MS)
        page = context.new_page()
        page.goto(origin)
        after = first + DEVICES // 2
        value = page.evaluate(MANY, [door, first, after, AT_ONCE, QUESTIONS])
        assert value == {"queued": len(QUESTIONS) * DEVICES // 2, "sent": DEVICES // 2}
        context.close()
    hits = 0
    for question in QUESTIONS:
        answer = counted(up, question, DEVICES)
        truth = {value: DEVICES * "aaaabbbccd".count(value) // 10 for value in "abcd"}
        hits += sum(value.low <= truth[value.value] <= value.high for value in answer.values)
    # The bits of unary.oue are independent: 12 of 20 at least.
    assert hits >= binom.ppf(FALSE_ALARM, 4 * len(QUESTIONS), 0.95), hits


@pytest.mark.thorough
def test_vector_code_is_loaded_only_for_bundles_that_need_it(
    device: BrowserContext, up: Developing, origin: str, door: str
) -> None:
    page = device.new_page()
    page.goto(origin)
    value = page.evaluate(VECTOR_SCRIPT, [door, SCORED, SCORES])
    assert value == {"queued": SCORED, "not_a_value": SCORED, "sent": SCORED}
    answer = counted(up, "scores", SCORED)
    for member, score in zip(answer.values, SCORES, strict=True):
        error = (member.high - member.low) / 2 / 1.96
        # Of three coordinates one is further off in less than one run in a million.
        assert abs(member.estimate - score) < 5.2 * error
        assert error < 0.28


def test_tabs_share_one_limit_and_one_consent(
    device: BrowserContext, up: Developing, origin: str, door: str
) -> None:
    first, other = tab_of(device, origin, door), tab_of(device, origin, door)
    # Both have a copy of the ledger in which nothing was said: one report alone may leave.
    outcomes = [report(page, "dark", "raced") for page in (first, other)]
    assert outcomes == ["queued", "queued"]
    assert [page.evaluate("client.flush()") for page in (first, other)] == [True, True]
    assert [page.evaluate("client.dropped") for page in (first, other)] == [
        {},
        {"already_reported": 1},
    ]
    first.reload()
    first.evaluate(OPEN, door)
    assert report(first, "dark", "raced") == "already_reported"
    first.evaluate("client.disable({ forget: true })")
    assert report(other, "a", "stays") == "queued"  # it has not heard of it, but nothing leaves
    assert other.evaluate("client.flush()") is True
    assert other.evaluate("client.dropped") == {"already_reported": 1, "disabled": 1}
    first.evaluate("client.enable()")
    assert report(first, "dark", "raced") == "already_reported"  # the sums outlive forgetting
    counted(up, "raced", 1)


def test_waiting_reports_survive_a_killed_tab_and_are_counted_once(
    device: BrowserContext, up: Developing, origin: str, door: str
) -> None:
    page = tab_of(device, origin, door)
    device.set_offline(True)
    assert report(page, "a", "killed") == "queued"
    assert page.evaluate("client.flush(0.1)") is False
    # In the middle of a report: its transaction has begun, and may or may not have ended.
    page.evaluate("() => { client.report('killed', 'b') }")
    page.close()
    device.set_offline(False)
    next_page = tab_of(device, origin, door)
    waits = next_page.evaluate("client.waiting()")
    assert waits in (1, 2)
    assert next_page.evaluate("client.flush()") is True
    # Sent again as the same bytes, as a page does that goes away: it counts once.
    next_page.evaluate("client.leave()")
    outcomes = [report(next_page, "a", "killed") for _ in range(3)]
    assert outcomes == ["queued"] * (3 - waits) + ["already_reported"] * waits
    assert next_page.evaluate("client.flush()") is True
    counted(up, "killed", 3)


@pytest.mark.thorough
def test_storage_that_is_cleared_in_part_is_known_to_the_witness(
    device: BrowserContext, origin: str, door: str
) -> None:
    page = tab_of(device, origin, door)
    assert report(page, "dark") == "queued"
    page.evaluate(
        "async () => { await client.close(0); await new Promise((resolve, reject) => {"
        " const gone = indexedDB.deleteDatabase('hubbub:app');"
        " gone.onsuccess = resolve; gone.onerror = reject; }); }"
    )
    page.reload()
    page.evaluate(OPEN, door)
    assert report(page, "dark") == "already_reported"
    assert page.evaluate("client.ledger().then((ledger) => ledger.counts)") == {"state_lost": 1}


@pytest.mark.thorough
def test_a_quota_that_is_full_lets_nothing_leave_and_loses_nothing(
    device: BrowserContext, up: Developing, origin: str, door: str
) -> None:
    page = tab_of(device, origin, door)
    assert report(page, "a", "full") == "queued"
    page.evaluate(FULL)
    assert report(page, "a", "full") == "queued"  # in memory: nobody has tried to keep it yet
    assert report(page, "a", "full") == "no_state"
    assert page.evaluate("client.flush(0.1)") is False
    page.evaluate("full = false")
    assert page.evaluate("client.flush()") is True
    assert [report(page, "a", "full") for _ in range(2)] == ["queued", "already_reported"]
    assert page.evaluate("client.flush()") is True
    counted(up, "full", 3)


def test_without_storage_nothing_is_reported(
    device: BrowserContext, origin: str, door: str
) -> None:
    page = device.new_page()
    page.add_init_script(
        "IDBFactory.prototype.open = () => { throw new DOMException('no', 'SecurityError') }"
    )
    console_lines: list[str] = []
    page.on("console", lambda message: console_lines.append(message.text))
    page.goto(origin)
    page.evaluate(OPEN, door)
    assert report(page, "dark") == "no_state"
    assert console_lines == [
        "hubbub: nothing is reported: the spent budget cannot be stored: SecurityError",
    ]


@pytest.mark.thorough
def test_a_hundred_reports_leave_the_page_free(
    device: BrowserContext, origin: str, door: str
) -> None:
    page = tab_of(device, origin, door)
    page.evaluate(
        "() => { window.long = []; new PerformanceObserver((list) => window.long.push("
        "...list.getEntries().map((one) => one.duration))).observe({ type: 'longtask' }); }"
    )
    assert page.evaluate(HUNDRED) == ["queued"] * 100
    # How long tasks are is measured elsewhere; that none holds the page for a second is seen here.
    assert all(length < 1000 for length in page.evaluate("long"))
