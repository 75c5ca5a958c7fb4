"""client/typescript in real pages of chromium, against `hubbub up --dev`."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext
from scipy.stats import binom

from tests.interfaces.browser import HANG_MS
from tests.support.development_server import Developing
from tests.support.node import needs_node
from tests.system.typescript.pages import FALSE_ALARM, counted, tab_of

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
  let turns = 0;
  const { port1: next, port2: turn } = new MessageChannel();
  (turn.onmessage = () => { turns += 1; next.postMessage(null); })();
  const said = Array.from({ length: 100 }, () => client.report("many", "a"));
  await client.settled();
  turn.close();
  return [said, turns];
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
        assert abs(member.estimate - score) < 5.8 * error
        assert error < 0.28


@pytest.mark.thorough
def test_a_hundred_reports_leave_the_page_free(
    device: BrowserContext, origin: str, door: str
) -> None:
    said, turns = tab_of(device, origin, door).evaluate(HUNDRED)
    assert said == ["queued"] * 100
    # How long tasks are is measured elsewhere; that the page has turns between them is seen here.
    assert turns > 100
