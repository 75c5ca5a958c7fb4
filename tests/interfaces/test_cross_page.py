"""A cross table on the page and as a picture: what is drawn is what the service says."""

import re
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import pytest
from playwright.sync_api import Route, expect

import hubbub.notebook
from hubbub.cli.commands.query import show_cross
from tests.interfaces.browser import Watched
from tests.interfaces.running_aggregator import House
from tests.support import web

pytestmark = pytest.mark.thorough


def test_a_heat_map_draws_every_interval_and_changes_with_its_parts(
    watched: Watched, home: House
) -> None:
    page = watched.open(f"{home.page}/metric?name=profile&epochs=all&rows=country&columns=theme")
    drawn = page.locator("#crossed svg g.cell")
    parameters = {"rows": "country", "columns": "theme", "epochs": "all"}
    cells: list[dict[str, Any]] = web.get(
        f"{home.page}/v1/metrics/profile/cross", params=parameters
    ).json()["values"]
    expect(drawn).to_have_count(6)
    whiskers = page.locator("#crossed svg path.whisker")
    ends = whiskers.evaluate_all("paths => paths.map(p => [+p.dataset.low, +p.dataset.high])")
    assert ends == [[cell["within_low"], cell["within_high"]] for cell in cells]
    labels = drawn.locator("text").all_text_contents()
    assert labels == [f"{100 * cell['within']:.0f}%" for cell in cells]
    assert "country and theme go together (p < 1e-12); Cramer" in page.inner_text("#crossed")
    page.select_option("#crossing [name=columns]", "new")
    expect(page.locator("#crossed")).to_contain_text("country and new go together")
    expect(drawn).to_have_count(6)
    assert "columns=new" in page.url
    page.select_option("#crossing [name=rows]", "new")
    expect(page.locator("#crossed")).to_contain_text("new and country go together")
    expect(page).to_have_url(re.compile("rows=new&columns=country"))
    page = watched.open(f"{home.page}/metric?name=theme")
    assert not page.is_visible("#cross")


@pytest.mark.thorough
def test_a_heat_map_of_many_columns_scrolls_on_a_phone(watched: Watched, home: House) -> None:
    def widened(route: Route) -> None:
        answer = route.fetch()
        document = answer.json()
        document["values"] = [
            cell | {"column": f"column {place}", "within": -0.0004}
            for cell in document["values"]
            if cell["column"] == "dark"
            for place in range(16)
        ]
        route.fulfill(response=answer, json=document)

    watched.page.set_viewport_size({"width": 390, "height": 800})
    watched.page.route("**/v1/metrics/profile/cross?*", widened)
    page = watched.open(f"{home.page}/metric?name=profile&epochs=all&rows=country&columns=theme")
    texts = page.locator("#crossed svg g.cell text")
    expect(texts).to_have_text(["0%"] * 3 * 16)
    boxes = [texts.nth(place).bounding_box() for place in range(16)]
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes if box]
    assert all(end < start for (_, end), (start, _) in pairwise(ends))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.get_by_role("region", name="Map of cells")).to_have_attribute("tabindex", "0")


def test_a_notebook_draws_a_heat_map(home: House) -> None:
    mpl.use("agg")
    answer: Any = hubbub.notebook.connect(home.page).cross("profile", "country", "theme")
    axes = answer.plot()
    texts = [text.get_text() for text in axes.texts]
    assert [text.split("%")[0] for text in texts] == [f"{100 * c['within']:.0f}" for c in answer]
    assert "country and theme go together" in answer._repr_html_()
    assert len(answer.df) == 6


@pytest.mark.parametrize(("width", "head"), [("80", "country"), ("20", "row")])
def test_a_table_fits_its_terminal(
    home: House,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    width: str,
    head: str,
) -> None:
    """A line a row where that fits, else a line a cell."""
    monkeypatch.setenv("COLUMNS", width)
    show_cross(
        dict(hubbub.notebook.connect(home.page).cross("profile", "country", "theme").document)
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[0] == head
    table = lines[2 : lines.index("", 2)]  # sentences are a line each where no terminal is
    assert width == "20" or max(map(len, table)) <= 80
