"""Lists of strings that an analyst keeps from the page; every column sorts, as the link says."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.interfaces.browser import Watched
from tests.interfaces.running_aggregator import House
from tests.support import web


def _headings(page: Page, table: str) -> list[str]:
    return page.locator(f"{table} thead button").all_inner_texts()


def _column(page: Page, table: str, name: str) -> list[float]:
    names = [
        inner_text.strip(" ▲▼")
        for inner_text in page.locator(f"{table} thead th").all_inner_texts()
    ]
    place = names.index(name) + 1
    cells = page.locator(f"{table} tbody td:nth-child({place})").all_inner_texts()
    return [float(cell.replace(",", "").replace("%", "")) for cell in cells]


@pytest.mark.thorough
def test_every_column_of_estimates_sorts(watched: Watched, home: House) -> None:
    page = watched.open(f"{home.page}/metric?name=theme")
    columns = page.locator("#table thead th").count()
    assert len(_headings(page, "#table")) == columns
    for name in ("share", "consistent", "std. error"):
        page.click(f"#table thead button:has-text('{name}')")
        watched.settled()
        expect(page.locator("#table thead th[aria-sort=descending]")).to_have_count(1)
        figures = _column(page, "#table", name)
        assert figures == sorted(figures, reverse=True), name
    page.click("#table thead button:has-text('detected')")
    watched.settled()
    expect(page.locator("#table thead th[aria-sort=descending]")).to_contain_text("detected")


@pytest.mark.thorough
def test_every_column_of_a_comparison_sorts_and_the_link_keeps_it(
    browser: Browser, home: House
) -> None:
    with Watched(browser) as watch:
        page = watch.open(f"{home.page}/metric?name=theme")
        table = "#compared table"
        assert len(_headings(page, table)) == page.locator(f"{table} thead th").count()
        page.click(f"{table} thead button:has-text('after')")
        expect(page.locator(f"{table} caption")).to_have_text("Sorted by after")
        watch.settled()
        figures = _column(page, table, "after")
        assert figures == sorted(figures, reverse=True)
        assert parse_qs(urlsplit(page.url).query)["changes"] == ["-after"]
        with Watched(browser) as other:
            theirs = other.open(page.url)
            assert _column(theirs, table, "after") == figures
        page.click(f"{table} thead button:has-text('after')")
        expect(page.locator(f"{table} thead th[aria-sort=ascending]")).to_have_count(1)
        watch.settled()
        assert _column(page, table, "after") == sorted(figures)


def test_strings_that_were_typed_are_kept_as_a_list_and_forgotten(
    watched: Watched, home: House
) -> None:
    url = f"{home.page}/v1/candidates"
    page = watched.page
    page.on("dialog", lambda dialog: dialog.accept())
    watched.open(f"{home.page}/metric?name=homepage")
    expect(page.locator("#keep")).to_be_hidden()
    page.fill("textarea[name=typed]", "google.com\nnever.example\n")
    page.keyboard.press("Tab")
    expect(page.locator("#table tbody tr")).to_have_count(2)
    watched.settled()
    page.click("text=Save the list")
    expect(page.locator("#kept")).to_have_text("Give it a name first.")
    page.fill("input[name=keep]", "mine")
    page.keyboard.press("Enter")
    expect(page.locator("#kept")).to_contain_text("Saved: mine, 2 strings.")
    watched.settled()
    assert parse_qs(urlsplit(page.url).query)["list"] == ["mine"]
    assert not urlsplit(page.url).fragment, "the list stands in place of what was typed"
    assert page.is_checked("#lists input[value=mine]")
    expect(page.locator("#table tbody tr")).to_have_count(2)
    assert web.get(f"{url}/mine").json()["candidates"] == ["google.com", "never.example"]
    page.click("button[aria-label='Forget mine']")
    expect(page.locator("#lists input[value=mine]")).to_have_count(0)
    watched.settled()
    assert web.get(f"{url}/mine").status_code == 404
    assert "list" not in parse_qs(urlsplit(page.url).query)


@pytest.mark.thorough
def test_a_name_that_no_list_may_have_is_refused_in_place(unchecked: Watched, home: House) -> None:
    page = unchecked.open(f"{home.page}/metric?name=homepage#look=google.com")
    page.fill("input[name=keep]", "no such/name")
    page.click("text=Save the list")
    expect(page.locator("#kept")).to_contain_text("name has no /")
    page.fill("input[name=keep]", "no such name")
    page.click("text=Save the list")
    expect(page.locator("#kept")).to_contain_text("must match")
    assert page.input_value("textarea[name=typed]") == "google.com", "nothing is lost"
