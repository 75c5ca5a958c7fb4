"""The page's address says what it shows; and what it shows where there is no answer."""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from hubbub.cli.main import main
from tests.interfaces.browser import Watched
from tests.interfaces.running_aggregator import House
from tests.support import web
from tests.support.commands import output_of
from tests.support.waiting import eventually


def _query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def _rows(page: Page) -> list[str]:
    return page.locator("#table tbody tr").all_inner_texts()


@pytest.mark.thorough
def test_a_link_shows_the_same_to_a_colleague(browser: Browser, home: House) -> None:
    with Watched(browser) as watched:
        page = watched.open(f"{home.page}/metric?name=theme")
        before = _rows(page)
        page.select_option("select[name=range]", "last:7d")
        expect(page.locator("#answer")).to_contain_text(" to ")
        watched.settled()
        page.select_option("select[name=confidence]", "0.99")
        page.select_option("select[name=show]", "consistent")
        page.select_option("select[name=before]", index=0)
        watched.settled()
        page.click("#table button:has-text('value')")
        expect(page.locator("#table tbody tr").first).to_contain_text("contrast")
        page.fill("#find", "T")
        page.keyboard.press("Tab")
        expect(page.locator("#table tbody tr")).to_have_count(3)
        watched.settled()
        assert _query_of(page).keys() == {
            "name",
            "epochs",
            "confidence",
            "show",
            "before",
            "after",
            "find",
            "order",
        }
        rows, comparison = _rows(page), page.inner_text("#compared")
        assert [row.split()[0] for row in rows] == ["contrast", "light", "system"]
        with Watched(browser) as other:
            theirs = other.open(page.url)
            assert (_rows(theirs), theirs.inner_text("#compared")) == (rows, comparison)
            assert theirs.input_value("select[name=confidence]") == "0.99"
            assert theirs.input_value("#find") == "T"
        while _query_of(page).keys() != {"name"}:
            page.go_back()
        expect(page.locator("#table tbody tr")).to_have_count(len(before))
        watched.settled()
        assert _rows(page) == before
        page.go_forward()
        expect(page.locator("#answer")).to_contain_text(" to ")


@pytest.mark.thorough
def test_the_text_before_an_answer_is_announced_once(watched: Watched, home: House) -> None:
    notice = "theme: the number of reports is an estimate, 100 ± 3.0"

    def say(route: Route) -> None:
        response = web.get(route.request.url).json()
        route.fulfill(json=response | {"notice": notice})

    page = watched.page
    page.route("**/v1/metrics/theme/estimates*", say)
    watched.open(f"{home.page}/metric?name=theme")
    expect(page.locator("#answer")).to_contain_text(f". {notice}")
    page.evaluate(
        """said => {
              const above = document.createElement("aside");
              above.className = "notice";
              above.textContent = `${said} Drawn.`;
              document.body.prepend(above);
            }""",
        notice,
    )
    page.select_option("select[name=confidence]", "0.99")
    watched.settled()
    expect(page.locator("#answer")).not_to_contain_text(notice)


@pytest.mark.thorough
def test_intervals_for_every_look_are_in_the_link_and_the_printed_commands(
    browser: Browser, home: House
) -> None:
    with Watched(browser) as watched:
        page = watched.open(f"{home.page}/metric?name=theme")
        assert "anytime" not in page.inner_text("#commands")
        page.select_option("select[name=looks]", "any")
        expect(page.locator("#bars-notes")).to_contain_text("at every look while the epochs fill")
        watched.settled()
        assert _query_of(page)["looks"] == ["any"]
        response = web.get(
            f"{home.page}/v1/metrics/theme/estimates", params={"anytime": "true"}
        ).json()
        span = f"{response['values'][0]['low']:,.0f} to {response['values'][0]['high']:,.0f}"
        expect(page.locator("#table")).to_contain_text(span)
        expect(page.locator("#commands")).to_contain_text("anytime=True")
        with Watched(browser) as other:
            theirs = other.open(page.url)
            assert theirs.input_value("select[name=looks]") == "any"
            assert _rows(theirs) == _rows(page)
        page.go_back()
        expect(page.locator("#bars-notes")).not_to_contain_text("every look")
        watched.settled()
        page = watched.open(f"{home.page}/metric?name=homepage")
        expect(page.locator("#looking-why")).to_contain_text("estimates of strings, sets and parts")
        expect(page.locator("select[name=looks] option[value=any]")).to_be_disabled()


def test_strings_that_were_typed_are_in_the_link_and_reach_no_server(
    watched: Watched, home: House
) -> None:
    page = watched.open(f"{home.page}/metric?name=homepage")
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    expect(page.locator("#flags")).to_contain_text("no candidates are listed")
    assert page.locator("#flags .bad").count() == 0
    page.fill("textarea", "often.example\nsecret?&=#.example")
    page.keyboard.press("Tab")
    expect(page.locator("#table tbody tr")).to_have_count(2)
    assert page.url.endswith("#look=often.example&look=secret%3F%26%3D%23.example")
    page.reload()
    watched.settled()
    assert page.input_value("textarea") == "often.example\nsecret?&=#.example"
    assert len(_rows(page)) == 2
    assert not [url for url in urls if "secret" in url.partition("#")[0]]
    page.fill("textarea", "\n".join(f"host-{n}.example" for n in range(300)))
    page.keyboard.press("Tab")
    expect(page.locator("#state")).to_contain_text("Too many strings for a link: save them")
    assert "#" not in page.url


@pytest.mark.thorough
def test_saved_lists_are_chosen_by_name(context: BrowserContext, home: House) -> None:
    address = f"{home.page}/v1/candidates/hosts"
    assert web.put(address, json={"candidates": ["often.example", "else.example"]}).is_success
    try:
        with Watched(context) as watched:
            page = watched.open(f"{home.page}/metric?name=homepage")
            page.check("#lists input[value=hosts]")
            expect(page.locator("#table tbody tr")).to_have_count(2)
            assert _query_of(page)["list"] == ["hosts"]
            page.fill("textarea", "never.example")
            page.keyboard.press("Tab")
            expect(page.locator("#table tbody tr")).to_have_count(3)
    finally:
        assert web.delete(address).is_success
    with Watched(context, clean=False) as watched:
        page = watched.open(f"{home.page}/metric?name=homepage&list=hosts#look=often.example")
        assert 'no list of candidates is called "hosts"' in page.inner_text("#flags")
        page.click("text=Show without saved lists")
        expect(page.locator("#table tbody tr")).to_have_count(1)


@pytest.mark.thorough
def test_a_page_without_an_answer_shows_the_next_step(context: BrowserContext, home: House) -> None:
    with Watched(context) as watched:
        page = watched.open(f"{home.page}/metric?name=unheard")
        assert "No answer yet" in page.inner_text("#flags")
        assert 'client.report("unheard", …)' in page.inner_text("#flags")
        assert page.locator(".bad").count() == 0
        assert not page.is_visible("#comparing")
        assert not page.is_visible("#h-take")
        assert page.is_visible("#card")
    with Watched(context, clean=False) as watched:
        page = watched.open(f"{home.page}/metric?name=nosuch")
        assert "Unknown metric" in page.inner_text("#state")
        assert not page.is_visible("#controls")
        page.click("text=All metrics")
        expect(page.locator("h1")).to_have_text("Metrics")
        page = watched.open(f"{home.page}/metric?name=theme&epochs=tomorrow")
        assert "This question is not possible" in page.inner_text("#flags")
        assert page.input_value("input[name=epochs]") == "tomorrow"
        page.click("text=Start over")
        expect(page.locator("#table tbody tr")).to_have_count(4)


def _without_reports(**fields: object) -> Callable[[Route], None]:
    """Answers about a metric as the service does, but for these fields and the reports."""

    def answer_for(route: Route) -> None:
        answer = route.fetch()
        document = answer.json()
        document["metric"] |= {"reports": 0, "epochs": [], **fields}
        route.fulfill(response=answer, json=document)

    return answer_for


@pytest.mark.thorough
def test_a_refusal_for_too_few_reports_shows_where_the_rest_is(
    watched: Watched, home: House
) -> None:
    reason = "the shuffler withheld 39 reports of 2026-11-22, whose crowds were smaller than 1,000"
    for withheld, until, sentence in (
        (0, "", "161 wait at the shuffler"),
        (39, reason, f"T{reason[1:]}."),
    ):
        answer = _without_reports(waiting=161, withheld=withheld, until_first_batch=until)
        watched.page.route("**/v1/metrics/theme", answer)
        page = watched.open(f"{home.page}/metric?name=theme")
        text = page.inner_text("#flags")
        assert "An answer needs 1,000 reports" in text
        assert sentence in text
        assert page.locator(".bad").count() == 0


@pytest.mark.thorough
@pytest.mark.parametrize("waiting", [0, None])
def test_a_page_shows_that_nothing_was_reported_if_this_is_known(
    watched: Watched, home: House, waiting: int | None
) -> None:
    none = _without_reports(waiting=waiting, withheld=waiting)
    watched.page.route("**/v1/metrics/theme", none)
    stream = watched.open(f"{home.page}/metric?name=theme").inner_text("#flags")
    unknown = "the number of reports at the shuffler is unknown here"
    assert ("Nothing was reported yet" in stream) == (waiting == 0)
    assert (unknown in stream) == (waiting is None)
    assert "once its day is over" not in stream


@pytest.mark.thorough
def test_a_funnel_without_reports_says_when_devices_report_it(
    watched: Watched, home: House
) -> None:
    funnel = _without_reports(waiting=0, withheld=0, figures="funnel", min_batch=1)
    watched.page.route("**/v1/metrics/theme", funnel)
    text = watched.open(f"{home.page}/metric?name=theme").inner_text("#flags")
    assert "The first answer comes with 1 report." in text
    assert "A device reports a funnel once its day is over." in text
    watched.page.unroute("**/v1/metrics/theme")
    retention = _without_reports(waiting=0, withheld=0, figures="retention", min_batch=1)
    watched.page.route("**/v1/metrics/theme", retention)
    text = watched.open(f"{home.page}/metric?name=theme").inner_text("#flags")
    assert "is over" not in text, "a device reports it at its first use of a week"


@pytest.mark.thorough
def test_a_link_of_a_newer_page_loses_nothing(watched: Watched, home: House) -> None:
    page = watched.open(f"{home.page}/metric?name=theme&flavour=new&confidence=7")
    text = page.inner_text("#state")
    assert "“flavour” of the link is unknown here" in text
    assert "“confidence=7” of the link cannot be shown" in text
    assert len(_rows(page)) == 4
    page.select_option("select[name=show]", "consistent")
    watched.settled()
    assert _query_of(page)["flavour"] == ["new"]


@pytest.mark.thorough
def test_a_service_that_is_gone_is_asked_again(unchecked: Watched, home: House) -> None:
    def abort_route(route: Route) -> None:
        route.abort()

    page = unchecked.open(f"{home.page}/metric?name=theme")
    page.route("**/v1/**", abort_route)
    page.select_option("select[name=confidence]", "0.99")
    expect(page.locator("#flags")).to_contain_text("The service does not answer")
    assert len(_rows(page)) == 4, "what it said before stays"
    page.unroute("**/v1/**", abort_route)
    expect(page.locator("#bars-notes")).to_contain_text("99%")  # by itself
    assert page.locator("#flags .state").count() == 0


@pytest.mark.thorough
def test_days_are_marked_on_the_page_and_from_a_shell(
    context: BrowserContext, home: House, capsys: pytest.CaptureFixture[str]
) -> None:
    url = home.page
    assert main(["mark", "add", "outage", "--on", "2026-01-02", "--url", url]) == 0
    assert "2026-01-02: outage, on all metrics" in capsys.readouterr().out
    with Watched(context) as watched:
        page = watched.open(f"{home.page}/metric?name=theme")
        assert page.locator("#trend .mark").count() == 0, "before the trend"
        day = web.get(f"{home.page}/v1/metrics/theme").json()["metric"]["epochs"][-3]["date"]
        page.click("summary:has-text('Marks (1)')")
        page.fill("#marking input[name=date]", day)
        page.fill("#marking input[name=called]", "release_2")
        page.fill("#marking input[name=text]", "<b>Dark</b> by default")
        page.click("#marking button")
        expect(page.locator("#trend .mark text")).to_have_text("release_2")
        assert "<b>Dark</b> by default" in page.inner_text("#marks")
        assert "release_2" in output_of(capsys, "mark", "list", "--url", url)
        page.click("button[aria-label='Remove release_2']")
        expect(page.locator("#trend .mark")).to_have_count(0)
        watched.open(f"{home.page}/metric?name=launches")
        assert "outage" in page.locator("#marks").inner_html()
    assert main(["mark", "remove", "outage", "--url", url]) == 0
    assert main(["mark", "remove", "outage", "--url", url]) == 2
    assert 'no mark is called "outage"' in capsys.readouterr().err
    assert main(["mark", "add", "x", "--on", "2026-02-30", "--url", url]) == 2
    assert "2026-02-30 does not exist in the calendar" in capsys.readouterr().err


def test_metrics_are_found_sorted_and_grouped(browser: Browser, home: House) -> None:
    with Watched(browser) as watched:
        page = watched.open(home.page)
        page.fill("input[name=find]", "HO")
        expect(page.locator("#metrics h2")).to_have_text(["hostile", "homepage"])
        page.select_option("select[name=sort]", "name")
        expect(page.locator("#metrics h2")).to_have_text(["homepage", "hostile"])
        page.select_option("select[name=group]", "owner")
        expect(page.locator("#metrics h2")).to_have_text(
            ["desktop@example.org", "homepage", "hostile"]
        )
        with Watched(browser) as other:
            theirs = other.open(page.url)
            assert theirs.locator("#metrics h2").count() == 3
        page.go_back()
        expect(page.locator("#metrics h2")).to_have_text(["homepage", "hostile"])
        page.fill("input[name=find]", "nothing like it")
        expect(page.locator("#metrics")).to_contain_text("No metric has “nothing like it”")


def test_a_phone_shows_the_interval_and_tables_scroll_by_keyboard(
    browser: Browser, home: House
) -> None:
    with Watched(browser, width=390) as watched:
        page = watched.open(f"{home.page}/metric?name=theme")
        box = page.locator("#table tbody tr").first.locator("td:visible").nth(2).bounding_box()
        assert box
        assert box["x"] + box["width"] <= 390
        names = page.locator("#bars svg g.row text").all_text_contents()
        assert names == ["dark", "light", "system", "contrast"]
        page.set_viewport_size({"width": 240, "height": 700})  # too narrow for any comparison
        wide = page.locator("#compared .wide")
        eventually(lambda: wide.evaluate("element => element.scrollWidth > element.clientWidth"))
        wide.focus()
        page.keyboard.press("ArrowRight")
        eventually(lambda: wide.evaluate("element => element.scrollLeft") > 0)


@pytest.mark.thorough
def test_a_link_with_an_unknown_fragment_is_shown(watched: Watched, home: House) -> None:
    page = watched.open(f"{home.page}/metric?name=theme#main")
    expect(page.locator("#table")).to_contain_text("dark")
