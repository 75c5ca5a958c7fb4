"""A page that goes away: what it sends as it does, and what the next one sends."""

import pytest
from playwright.sync_api import BrowserContext

from tests.support.development_server import Developing
from tests.support.node import needs_node
from tests.system.typescript.pages import counted, report, tab_of

# More than fits what may outlive a page: a report is some 70 bytes, sealed and framed.
MANY = 1000
REPORT_MANY = """
async (many) => {
  const said = Array.from({ length: many }, () => client.report("heap", "a"));
  await client.settled();
  return [...new Set(said)];
}
"""
# What is sent as a page goes away is told to nobody who watches from outside.
WATCH = """
const fetched = window.fetch;
window.fetch = (url, how) => {
  if (how?.keepalive) localStorage.setItem("bytes", how.body.length);
  return fetched(url, how);
};
"""

pytestmark = needs_node


def test_a_closing_page_sends_waiting_reports_by_itself(
    device: BrowserContext, up: Developing, origin: str, door: str
) -> None:
    page = tab_of(device, origin, door)
    assert report(page, "a", "left") == "queued"
    page.goto("about:blank")
    # Nobody has flushed, and no page of this origin is open.
    counted(up, "left", 1)
    # It is sent again by the next one, which has not heard of it: as the same bytes.
    following = tab_of(device, origin, door)
    assert following.evaluate("client.waiting()") == 1
    assert following.evaluate("client.flush()") is True
    assert report(following, "a", "left") == "already_reported"
    counted(up, "left", 1)


def test_a_page_that_is_left_sends_nothing_after_a_no_in_another_tab(
    device: BrowserContext, origin: str, door: str
) -> None:
    """Nor once the person lets it report again: what was entered before the no is deleted."""
    device.add_init_script(WATCH)
    first, other = tab_of(device, origin, door), tab_of(device, origin, door)
    assert report(other, "a", "stays") == "queued"
    sent = "() => { client.leave(); return localStorage.getItem('bytes'); }"
    for said in ("disable()", "enable()"):
        first.evaluate(f"client.{said}")
        assert other.evaluate(sent) is None
    # It hears of that with its next report, whose number is the new one.
    assert [report(other, "a", "stays") for _ in range(2)] == ["queued", "queued"]
    assert other.evaluate("client.dropped") == {"disabled": 1}
    assert other.evaluate("client.waiting()") == 1
    assert other.evaluate(sent) is not None


def test_only_a_change_of_consent_writes_its_number(
    device: BrowserContext, origin: str, door: str
) -> None:
    page = tab_of(device, origin, door)
    assert report(page, "a", "stays") == "queued"
    assert page.evaluate("Object.values(localStorage)") == []
    page.evaluate("client.disable()")
    assert page.evaluate("Object.values(localStorage)") == ["1"]


@pytest.mark.thorough
def test_a_page_sends_no_more_than_may_outlive_it_and_loses_nothing(
    device: BrowserContext, up: Developing, origin: str, door: str
) -> None:
    device.add_init_script(WATCH)
    page = tab_of(device, origin, door)
    assert page.evaluate(REPORT_MANY, MANY) == ["queued"]
    page.goto("about:blank")
    following = tab_of(device, origin, door)
    assert following.evaluate("client.waiting()") == MANY
    assert 59_000 < int(following.evaluate("localStorage.getItem('bytes')")) <= 60_000
    assert following.evaluate("client.flush(60)") is True
    counted(up, "heap", MANY)
