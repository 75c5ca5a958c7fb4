"""What the page draws and says misleads nobody: axes, names, orders, and what a figure is of."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from hubbub.cli.terminal.answer_tables import show_estimates
from hubbub.query_results.answer_table import number_text
from tests.interfaces.browser import Watched
from tests.interfaces.running_aggregator import House
from tests.support import web
from tests.support.catalogs import metric_toml
from tests.support.pages import page_of

FENCES = [f"The quick brown fox jumps over the lazy dog and the {n} fence" for n in ("1st", "2nd")]
HEAD = 'shuffler = "127.0.0.1:1"\n'
ALIKE = [f"org.example.browser.extension.{letter}.with-a-name-of-its-own.pane" for letter in "abc"]
CATALOG = HEAD + "".join(
    metric_toml(name, more, epsilon=2.0, lifetime_epsilon=500.0)
    for name, more in {
        "rare": 'mechanism = "grr"\nvalues = ["no", "yes", "perhaps"]',
        "long": f'mechanism = "grr"\nvalues = {json.dumps(FENCES)}',
        "alike": f'mechanism = "grr"\nvalues = {json.dumps(ALIKE)}',
        "took": 'mechanism = "grr"\nkind = "duration"\nedges = [0, 10, 100, 1000]\nunit = "ms"',
        "waited": 'mechanism = "haar"\nkind = "number"\nlow = 0\nhigh = 60\nbuckets = 300',
        "plugins": 'mechanism = "privset"\nkind = "set"\nvalues = ["git", "vim", "lint"]\nmost = 2',
        "scores": 'mechanism = "auto"\nkind = "vector"\ncoordinates = ["speed", "ease"]\n'
        'words = 64\nbooks = 64\nmax_length = 2\nunit = "points"',
    }.items()
)
TRUE_COUNTS: dict[str, Mapping[Any, int] | list[Mapping[Any, int]]] = {
    "rare": {0: 9_999, 1: 1},
    "long": [{0: 3_000, 1: 7_000}] * 2,
    "alike": [*[{0: 5_000, 1: 3_000, 2: 2_000}] * 2, {0: 4_000, 1: 3_500, 2: 2_500}],
    "took": [{0: 1_000, 1: 6_000, 2: 3_000}] * 2,
    "waited": {second + 0.5: 10 for second in range(60)},
    "plugins": {1: 4_000, 3: 6_000},
    "scores": [{(1.0, -1.0): 10_000}, *[{(0.5, 1.0): 10_000}] * 2],
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("pictures")
    with page_of(folder, CATALOG, TRUE_COUNTS, seed=2) as page_url:
        yield page_url


def _marks(page: Page, picture: str) -> list[str]:
    """The numbers of a picture's axes."""
    return page.locator(f"{picture} .tick text").all_text_contents()


@pytest.mark.thorough
def test_a_vector_shows_the_mean_of_each_coordinate_in_its_own_unit(
    watched: Watched, address: str
) -> None:
    values = web.get(f"{address}/v1/metrics/scores/estimates").json()["values"]
    assert [value["value"] for value in values] == ["speed", "ease"]
    page = watched.open(f"{address}/metric?name=scores")
    assert page.locator("#bars g.row > text").all_text_contents() == ["speed", "ease"]
    expect(page.locator("#bars")).to_contain_text("mean, in points")
    expect(page.locator("#bars-notes")).to_contain_text("Vectors up to 2 long")
    expect(page.locator("#flags")).not_to_contain_text("No value is detected")
    expect(page.locator("#table caption")).to_contain_text("points")
    expect(page.locator("#table tbody tr")).to_have_count(2)
    expect(page.locator("#trend")).to_contain_text("mean, in points")
    expect(page.locator("#legend bdi")).to_have_text(["speed", "ease"])
    expect(page.locator("#compared")).to_contain_text("2 of 2 changed")
    expect(page.locator("#compared")).to_contain_text("difference of means, in points")
    page.goto(address)
    watched.settled()
    expect(page.locator(".card:has-text('took')")).to_contain_text("p95")
    card = page.locator(".card:has-text('scores')")
    for value in values:
        expect(card).to_contain_text(number_text(value["low"], value["stderr"], end="low"))
        expect(card).to_contain_text(value["value"])


@pytest.mark.thorough
def test_many_ranges_of_percentiles_fit_a_screen(watched: Watched, address: str) -> None:
    """Of 300 buckets, 2,400 pixels were under the sentence that no value is detected."""
    page = watched.open(f"{address}/metric?name=waited")
    expect(page.locator("#flags")).to_contain_text("Percentiles are below; no single range")
    expect(page.locator("#bars g.row")).to_have_count(300)
    assert page.locator("#bars svg").evaluate("svg => svg.getBoundingClientRect().height") < 1500


@pytest.mark.thorough
@pytest.mark.parametrize("width", [390, 1440])
def test_names_that_differ_in_their_middle_are_shown_whole(
    watched: Watched, address: str, width: int
) -> None:
    watched.page.set_viewport_size({"width": width, "height": 900})
    page = watched.open(f"{address}/metric?name=alike")
    names = page.locator("#bars g.row > text").all_text_contents()
    assert len(set(names)) == len(ALIKE)
    expect(page.locator("#trend .tick").first).to_be_visible()
    assert sum(":" in mark for mark in _marks(page, "#trend")) == 0, "days have no hours"
    expect(page.locator("#compared svg")).to_be_visible()
    table = page.locator("#compared .wide")
    assert table.evaluate("one => one.scrollWidth - one.clientWidth") <= 0, "all is in sight"
    beyond = page.evaluate(
        """() => [
              ...document.querySelectorAll("#bars svg, #trend svg, #compared svg"),
            ].flatMap((svg) => {
              const whole = svg.getBoundingClientRect();
              return [...svg.querySelectorAll("text")]
                .filter((one) => {
                  const box = one.getBoundingClientRect();
                  return box.left < whole.left - 1 || box.right > whole.right + 1;
                })
                .map((one) => one.textContent);
            })"""
    )
    assert beyond == []


@pytest.mark.thorough
def test_no_axis_of_counts_or_shares_goes_below_zero_and_bars_end_in_their_intervals(
    watched: Watched, address: str
) -> None:
    values = web.get(f"{address}/v1/metrics/rare/estimates").json()["values"]
    assert any(value["estimate"] < 0 for value in values), "as this seed has it"
    page = watched.open(f"{address}/metric?name=rare")
    marks = _marks(page, "#bars") + _marks(page, "#trend")
    assert "0" in marks
    assert not [mark for mark in marks if mark[0] in "-\N{MINUS SIGN}"]
    expect(page.locator("#bars-notes")).to_contain_text("An estimate below 0, or above all")
    for row in page.locator("#bars g.row").all():
        bar, whisker = (row.locator(part).bounding_box() for part in ("rect", ".whisker"))
        assert bar
        assert whisker
        assert -2 < bar["x"] + bar["width"] - whisker["x"] < whisker["width"] + 2
    expect(page.locator("#trend")).to_have_text(re.compile("^One epoch has an answer"))
    page.goto(f"{address}/metric?name=long")
    watched.settled()
    expect(page.locator("#bars-notes")).not_to_contain_text("An estimate below 0")
    page.goto(address)
    shares = page.locator(".card:has-text('rare') dd")
    expect(shares).to_have_count(3)
    bold = [share.locator("b").count() for share in shares.all()]
    assert bold == [value["detected"] and value["estimate"] <= value["high"] for value in values]


@pytest.mark.thorough
def test_names_that_differ_at_their_ends_are_shown_differently(
    watched: Watched, address: str
) -> None:
    page = watched.open(f"{address}/metric?name=long")
    assert page.locator("#bars .row text").all_text_contents() == FENCES[::-1]
    page.goto(address)
    names = page.locator(".card:has-text('long') dt")
    expect(names).to_have_count(2)
    assert [name[-9:] for name in names.all_inner_texts()] == ["2nd fence", "1st fence"]


def test_ranges_of_numbers_are_shown_in_their_own_order(
    watched: Watched, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"{address}/v1/metrics/took"
    assert [web.get(path).json()["metric"][end] for end in ("lowest", "highest")] == [0, 1000]
    response = web.get(f"{path}/estimates", params={"order": "listed"}).json()
    assert (response["lowest"], response["highest"]) == (0, 1000)
    ranges = [value["value"] for value in response["values"]]
    show_estimates(response)
    output = capsys.readouterr().out
    assert sorted(ranges, key=output.index) == ranges
    page = watched.open(f"{address}/metric?name=took")
    assert page.locator("#table tbody td:first-child").all_inner_texts() == ranges


@pytest.mark.thorough
def test_percentiles_are_drawn_across_the_bars_and_over_time(
    context: BrowserContext, address: str
) -> None:
    with Watched(context) as watched:
        page = watched.open(f"{address}/metric?name=took&epochs=all")
        texts = page.locator("#bars .across text").all_text_contents()
        assert texts[0].startswith("p50 ")
        assert texts[0].endswith("(10 to 100)")
        assert texts[1].startswith("p95 ")
        assert texts[1].endswith("(100 or more)"), "the last part holds all larger numbers, too"
        middle = page.locator("#bars .row").nth(1).bounding_box()
        median = page.locator("#bars .across path").nth(0).bounding_box()
        assert middle
        assert median
        assert middle["y"] <= median["y"] <= middle["y"] + middle["height"]
        rows = page.locator("#percentiles tbody tr").all_text_contents()
        assert [row.split()[0][:3] for row in rows] == [
            "p10",
            "p25",
            "p50",
            "p75",
            "p90",
            "p95",
            "p99",
        ]
        numbers = page.locator("#percentiles tbody td:nth-child(2)").all_inner_texts()
        assert [texts[0].split()[1], texts[1].split()[1]] == [numbers[2], numbers[5]]
        assert page.locator("#percentile-trend svg").count() == 1
        axis = page.locator("#bars svg > text.soft")
        expect(axis).to_have_text("reports; values in ms")
    with Watched(context) as watched:
        page = watched.open(f"{address}/metric?name=rare")
        assert not page.locator("#percentiles").is_visible()
        assert not page.locator("#percentile-trend").is_visible()


@pytest.mark.thorough
def test_a_note_says_that_shares_of_a_set_do_not_add_up(
    context: BrowserContext, address: str, home: House
) -> None:
    with Watched(context) as watched:
        page = watched.open(f"{address}/metric?name=plugins")
        expect(page.locator("#bars-notes")).to_contain_text("shares need not add up to 100%")
    [note] = web.get(f"{home.page}/v1/metrics/profile/estimates").json()["notes"]
    assert note == "Each table of parts has shares of its own, which add up to 100%."


@pytest.mark.thorough
def test_a_metric_of_one_epoch_has_no_columns_on_its_card(watched: Watched, address: str) -> None:
    page = watched.open(address)
    card = page.locator(".card:has-text('rare')")
    expect(card.locator("dt")).to_have_count(3)
    assert card.locator("svg").count() == 0


@pytest.mark.thorough
def test_a_trend_explains_its_dots_and_bands(watched: Watched, home: House) -> None:
    page = watched.open(f"{home.page}/metric?name=theme")
    expect(page.locator("#legend")).to_contain_text("Dots: the estimate of each epoch alone.")
    page.select_option("select[name=range]", "last:7d")
    expect(page.locator("#legend")).to_contain_text("Bands: 95% intervals, of each epoch")


@pytest.mark.thorough
def test_letters_of_a_picture_keep_their_size_on_a_phone(browser: Browser, address: str) -> None:
    with Watched(browser, width=390) as watched:
        page = watched.open(f"{address}/metric?name=long")
        for picture in ("#bars", "#trend"):
            drawn = page.locator(f"{picture} svg").bounding_box()
            box = page.locator(f"{picture} svg").get_attribute("viewBox")
            assert drawn
            assert box
            assert abs(drawn["width"] / float(box.split()[2]) - 1) < 0.01


@pytest.mark.thorough
def test_differences_of_shares_are_in_points(watched: Watched, home: House) -> None:
    page = watched.open(f"{home.page}/metric?name=theme")
    table = page.locator("#compared table")
    expect(table).to_contain_text("difference (points)")
    cells = table.locator("tbody tr").first.locator("td").all_inner_texts()
    assert re.fullmatch(r"[+-]\d+\.\d\d", cells[3])
    page.goto(f"{home.page}/metric?name=seconds")
    watched.settled()
    assert "points" not in page.inner_text("#compared table")


def test_the_pipeline_hides_zero_terms_and_shows_all_rows_on_demand(
    watched: Watched, home: House
) -> None:
    total = len(web.get(f"{home.page}/v1/status").json()["windows"])
    page = watched.open(f"{home.page}/pipeline")
    rows = page.locator("#windows tbody tr")
    expect(rows).to_have_count(50)
    heads = page.locator("#windows thead th").all_inner_texts()
    assert heads == ["stream", "epoch", "counted", "balanced"]
    expect(page.locator("#windows caption")).to_contain_text("in any of them: acknowledged")
    wide = page.locator("#windows").evaluate("(t) => t.scrollWidth - t.parentNode.clientWidth")
    assert wide <= 0
    page.click("#rows button")
    expect(rows).to_have_count(total)
    assert page.url.endswith("?rows=all")
    page.go_back()
    expect(rows).to_have_count(50)


def test_the_pipeline_on_a_phone_shows_whole_names_and_its_caption(
    browser: Browser, home: House
) -> None:
    """A column for each term left no room: "homepag/e"."""

    def with_terms(route: Route) -> None:
        status = web.get(f"{home.page}/v1/status").json()
        for window in status["windows"]:
            window |= {"acknowledged": 20_060, "pooled": 20, "withheld": 40}
        route.fulfill(json=status)

    with Watched(browser, width=390) as watched:
        watched.page.route("**/v1/status", with_terms)
        page = watched.open(f"{home.page}/pipeline")
        cells = page.locator("#windows tbody tr", has_text=re.compile("^(theme|homepage)[^/]*$"))
        heights = cells.evaluate_all("rows => rows.map((row) => row.clientHeight)")
        assert len(set(heights)) == 1
        caption = page.locator("#windows caption").bounding_box()
        assert caption
        assert caption["x"] + caption["width"] <= 390


@pytest.mark.thorough
def test_an_unknown_path_is_a_page_to_people_and_a_problem_to_programs(
    context: BrowserContext, home: House
) -> None:
    with Watched(context, clean=False) as watched:
        page = watched.open(f"{home.page}/metrics.html?<b>")
        assert page.inner_text("h1") == "No such page"
        page.click("text=All metrics")
        watched.settled()
        expect(page.locator("h1")).to_have_text("Metrics")
    answer = web.get(f"{home.page}/nothing")
    assert (answer.status_code, answer.json()["title"]) == (404, "NotServed")
