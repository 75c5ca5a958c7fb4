"""<hubbub-ledger> in real pages: what a person sees, and their no, by mouse and keyboard."""

import json

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.support.node import ROOT, build, needs_node, run
from tests.system.typescript.pages import OPEN, report, tab_of

SHOW = """
async (lang) => {
  document.documentElement.lang = lang;
  const { defineLedger } = await import("/ledger.js");
  defineLedger();
  defineLedger();
  const shown = document.createElement("hubbub-ledger");
  shown.client = client;
  document.body.replaceChildren(shown);
  await shown.refresh();
}
"""
# A device of known answers, as on the second day that its bundle has a key of.
CROWDED = """
async ([signed, shuffler, seconds]) => {
  const { open } = await import("/hubbub.js");
  const bundle = new TextEncoder().encode(signed);
  const own = { app: "crowds", now: () => seconds, holdSeconds: null, strict: true };
  window.client = await open({ bundle, shuffler, ...own });
  const names = ["weekly", "each", "capped"].filter((name) => signed.includes(`"${name}"`));
  const said = names.map((name) => client.report(name, "a"));
  await client.settled();
  return said;
}
"""
KNOWN_ANSWERS = ROOT / "tests" / "proofs" / "vectors" / "wire" / "asking.json"
# Everything that a page can forbid, and still run its own scripts.
POLICY = (
    "default-src 'none'; script-src 'self'; connect-src *; style-src 'none'; img-src data:;"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)

pytestmark = needs_node


def _ledger_page(page: Page, lang: str = "en") -> Page:
    page.evaluate(SHOW, lang)
    return page


def _row(page: Page, metric: str) -> list[str]:
    return page.get_by_role("row", name=metric).first.get_by_role("cell").all_inner_texts()


def test_a_person_sees_what_was_spent_and_who_runs_what(
    device: BrowserContext, origin: str, door: str
) -> None:
    page = tab_of(device, origin, door)
    assert report(page, "dark") == "queued"
    _ledger_page(page)
    region = page.get_by_role("region", name="What leaves this device")
    expect(region.get_by_role("switch", name="Send randomized answers")).to_be_checked()
    assert _row(page, "Colour theme") == ["4", "4 of 1,000", "1 of 1"]
    assert _row(page, "A value that stays") == ["1.01", "0 of 1,000", "0 of 3"]
    expect(region.get_by_role("columnheader")).to_have_count(4)
    for who in ("Example Foundation, Oslo", "Example Ltd, Dublin"):
        expect(region.get_by_text(who)).to_be_visible()
    expect(region.get_by_text("Only both together could find out who")).to_be_visible()
    region.get_by_text("The last payloads").click()
    expect(region.get_by_role("listitem")).to_contain_text(["theme"])
    expect(region.get_by_role("listitem")).to_contain_text(["waiting"])
    assert page.evaluate("client.flush()") is True
    page.evaluate("document.querySelector('hubbub-ledger').refresh()")
    expect(region.get_by_role("listitem")).to_contain_text(["sent"])
    # The value itself is nowhere: what is shown are payloads.
    assert "dark" not in page.content() + region.inner_text()


@pytest.mark.thorough
def test_a_person_sees_the_promise_of_crowds_and_of_a_year(
    device: BrowserContext, origin: str, door: str
) -> None:
    document = json.loads(KNOWN_ANSWERS.read_text("utf-8"))["crowded"]
    page = device.new_page()
    page.goto(origin)
    arguments = [document["signed"], door, document["start"] + 86_400]
    assert page.evaluate(CROWDED, arguments) == ["queued"] * 3
    _ledger_page(page)
    seldom = "except with probability 1E-8"
    week = "to an observer of all crowds of any 7 days together 1"
    assert _row(page, "In a crowd, weekly")[0] == f"0.25; {week}, {seldom}"
    assert _row(page, "In a crowd, each")[0] == f"0.5; to an observer of whole crowds 1, {seldom}"
    spent = "0.25 of 500; to an observer of whole crowds 0.25 of 2.6"
    assert _row(page, "In a crowd, weekly")[1] == spent
    region = page.get_by_role("region", name="What leaves this device")
    expect(region).to_contain_text("All crowds of a year together can reveal 0.839 of 2 nats")
    document = json.loads(KNOWN_ANSWERS.read_text("utf-8"))["learning"]
    page = device.new_page()
    page.goto(origin)
    assert page.evaluate(CROWDED, [document["signed"], door, document["start"]]) == []
    _ledger_page(page)
    life = "to an observer of all its crowds for ever 1"
    assert _row(page, "logistic, 0")[0] == f"4; {life}, {seldom}"
    assert _row(page, "logistic, 1")[0] == "4"


def test_an_opt_out_by_keyboard_stops_every_tab_and_forgetting_keeps_the_sums(
    device: BrowserContext, origin: str, door: str
) -> None:
    page, other = tab_of(device, origin, door), tab_of(device, origin, door)
    assert report(page, "dark") == "queued"
    for tab in (page, other):
        _ledger_page(tab)
    switch = page.get_by_role("switch")
    page.keyboard.press("Tab")
    expect(switch).to_be_focused()
    page.keyboard.press("Space")
    expect(page.get_by_role("status")).to_have_text("Nothing is sent.")
    expect(switch).to_be_focused()
    assert report(page, "a", "stays") == "disabled"
    # The other tab looks as it is seen again.
    other.bring_to_front()
    other.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(other.get_by_role("switch")).not_to_be_checked()
    assert report(other, "a", "stays") == "queued"
    assert other.evaluate("client.flush()") is True
    assert other.evaluate("client.dropped") == {"disabled": 1}
    page.bring_to_front()
    page.keyboard.press("Space")
    expect(page.get_by_role("status")).to_have_text("Randomized answers are sent.")
    page.get_by_role("button", name="Stop, and forget").click()
    expect(page.get_by_role("status")).to_contain_text("forgotten")
    expect(switch).not_to_be_checked()
    expect(page.get_by_role("listitem")).to_have_count(0)
    assert _row(page, "Colour theme")[1] == "4 of 1,000"


@pytest.mark.thorough
def test_a_person_sees_what_local_mode_counts(
    device: BrowserContext, origin: str, door: str
) -> None:
    page = device.new_page()
    page.goto(origin)
    page.evaluate(OPEN.replace("holdSeconds: null", "holdSeconds: null, local: true"), door)
    assert [report(page, value) for value in ("dark", "light", "dark")] == ["counted"] * 3
    _ledger_page(page)
    region = page.get_by_role("region", name="What leaves this device")
    expect(region.get_by_role("switch", name="Count answers on this device")).to_be_checked()
    status = "Answers are counted on this device alone. Nothing is sent."
    expect(page.get_by_role("status")).to_have_text(status)
    counted = region.get_by_role("table", name="Counted on this device, and never sent")
    expect(counted.get_by_role("row")).to_have_text(["Colour theme", "dark2", "light1"])
    page.get_by_role("button", name="Stop, and forget").click()
    expect(page.get_by_role("status")).to_contain_text("forgotten")
    expect(counted).to_be_hidden()


@pytest.mark.thorough
def test_screen_readers_get_table_headers_and_page_titles(
    device: BrowserContext, origin: str, door: str
) -> None:
    page = _ledger_page(tab_of(device, origin, door), "de")
    page.evaluate(
        "document.querySelector('hubbub-ledger').words ="
        " { title: 'Was dieses Gerät verlässt', of: '{0} von {1}' }"
    )
    region = page.get_by_role("region", name="Was dieses Gerät verlässt")
    expect(region).to_match_aria_snapshot(
        """
        - region "Was dieses Gerät verlässt":
          - switch "Send randomized answers" [checked]
          - text: Send randomized answers
          - status: Randomized answers are sent.
          - table /Epsilon is how much/:
            - caption: /Epsilon is how much/
            - rowgroup:
              - row /Question/:
                - columnheader "Question"
                - columnheader "Epsilon of a report"
                - columnheader "Epsilon spent"
                - columnheader "Reports in this period"
            - rowgroup:
              - row /Colour theme/:
                - rowheader "Colour theme"
        """
    )
    assert _row(page, "Colour theme")[1] == "0 von 1.000"
    _ledger_page(page, "no such language")
    assert len(_row(page, "Colour theme")) == 3


def test_the_ledger_element_works_under_a_strict_content_security_policy(
    browser: Browser, origin: str, door: str
) -> None:
    with browser.new_context(ignore_https_errors=True) as device:
        page = device.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda message: errors.append(message.text) if message.type == "error" else None,
        )
        page.route(
            origin,
            lambda route: route.fulfill(
                response=(response := route.fetch()),
                headers={**response.headers, "content-security-policy": POLICY},
            ),
        )
        page.goto(origin)
        page.evaluate(OPEN, door)
        _ledger_page(page)
        assert len(_row(page, "Colour theme")) == 3
        width = "getComputedStyle(document.querySelector('hubbub-ledger')).display"
        assert page.evaluate(width) == "block"
        assert errors == []


@pytest.mark.thorough
def test_the_ledger_element_says_that_the_device_cannot_store(
    device: BrowserContext, origin: str, door: str
) -> None:
    device.add_init_script(
        "IDBFactory.prototype.open = () => { throw new DOMException('no', 'SecurityError') }"
    )
    page = _ledger_page(tab_of(device, origin, door))
    expect(page.get_by_role("status")).to_contain_text("This device cannot store anything")
    expect(page.get_by_role("switch")).not_to_be_checked()


def test_a_server_that_renders_pages_may_import_it() -> None:
    script = "import('hubbub-client/ledger').then((own) => console.log(typeof own.defineLedger))"
    build()
    assert run("node", "-e", script) == "function\n"
