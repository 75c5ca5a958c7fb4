"""Three parts that a crowd tells together: the same tables from every face, and drawn."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import pytest
from playwright.sync_api import expect

import hubbub.notebook
from hubbub.authoring import read_with_promises
from tests.interfaces.browser import Watched
from tests.interfaces.running_aggregator import HEAD, House, house
from tests.support import web
from tests.support.catalogs import metric_toml
from tests.support.commands import document_of, output_of

pytestmark = pytest.mark.thorough

CATALOG = HEAD + metric_toml(
    "profile",
    mechanism="auto",
    ways=3,
    parts={"theme": ["light", "dark"], "country": ["de", "fr", "it"], "new": ["y", "n"]},
    central_epsilon=4.0,
    crowd=4000,
    lifetime_epsilon=500.0,
)
# Of who is new theme and country go together, of others they have nothing to do with each other.
NEW, OLD = [2000, 800, 200, 200, 800, 2000], [400, 800, 1200, 400, 800, 1200]
TRUE_COUNTS = {
    2 * place + old: own[place] for old, own in enumerate((NEW, OLD)) for place in range(6)
}
CROSS_PARTS = {"rows": "country", "columns": "theme", "by": "new"}


@pytest.fixture(scope="session")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder, truths = tmp_path_factory.mktemp("three"), {"profile": TRUE_COUNTS}
    with house(folder, catalog=CATALOG, truths=truths, reader=read_with_promises) as running:
        yield running


def _response(home: House, **parameters: str) -> dict[str, Any]:
    response: dict[str, Any] = web.get(
        f"{home.page}/v1/metrics/profile/cross", params=parameters
    ).json()
    return response


def test_three_parts_are_the_same_from_every_face_and_near_the_truth(
    crowd: House, capsys: pytest.CaptureFixture[str]
) -> None:
    by_http = _response(crowd, **CROSS_PARTS)
    notebook = hubbub.notebook.connect(crowd.page).cross("profile", "country", "theme", "new")
    assert notebook.document == by_http
    words = ["cross", "profile", "country", "theme", "new", "--url", crowd.page]
    assert document_of(capsys, *words, "--format", "json") == by_http
    lines = list(csv.DictReader(io.StringIO(output_of(capsys, *words, "--format", "csv"))))
    assert [(line["slice"], line["row"], line["column"]) for line in lines] == [
        (new, country, theme)
        for new in ("y", "n")
        for country in ("de", "fr", "it")
        for theme in ("light", "dark")
    ]
    for cell in by_http["values"]:
        counts = NEW if cell["slice"] == "y" else OLD
        place = 3 * (cell["column"] == "dark") + ["de", "fr", "it"].index(cell["row"])
        assert abs(cell["estimate"] - counts[place]) < 6.5 * cell["stderr"]
        assert cell["stderr"] < 200
    new, old = by_http["slices"]
    off = new["share"] * sum(TRUE_COUNTS.values()) - sum(NEW)
    assert off**2 < 6.5**2 * sum(cell["stderr"] ** 2 for cell in by_http["values"])
    assert new["association"]["low"] > old["association"]["high"]
    assert (old["association"]["low"], by_http["association"]["cramers_v"]) == (0, None)
    output = output_of(capsys, *words)
    assert "country and theme, within new, go together (p < 1e-12)" in output
    assert "new=y: the two go together (p < 1e-12); Cramer's V" in output
    assert "{low:.2f} to {high:.2f}".format(**new["association"]) in output
    assert "new=n: no sign that the two go together" in output
    assert "hubbub cross profile PART PART PART;" in " ".join(output.split())


def test_two_of_three_parts_are_what_their_tables_add_up_to(crowd: House) -> None:
    within = _response(crowd, **CROSS_PARTS)["values"]
    table = _response(crowd, rows="country", columns="theme")
    assert (table["by"], table["slices"]) == ("", [])
    for place, cell in enumerate(table["values"]):
        assert cell["estimate"] == pytest.approx(sum(part["estimate"] for part in within[place::6]))
        assert cell["low"] < cell["estimate"] < cell["high"]
        assert cell["value"] == f"theme={cell['column']}, country={cell['row']}"
    assert table["association"]["p_value"] < 1e-12


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {**CROSS_PARTS, "by": "theme"},
            "a part occurs twice: theme: write three of theme, country",
        ),
        ({**CROSS_PARTS, "by": "os"}, '"os" is not one of its parts: write three of theme'),
    ],
)
def test_an_impossible_third_part_is_refused(
    crowd: House, parameters: dict[str, str], message: str
) -> None:
    assert message in _response(crowd, **parameters)["detail"]


def test_a_third_part_is_refused_if_devices_report_two(home: House) -> None:
    message = "its devices report two parts together: leave the third out"
    assert message in _response(home, **CROSS_PARTS)["detail"]
    assert message in _response(home, **{**CROSS_PARTS, "by": "none of them"})["detail"]


def test_each_value_of_the_third_part_has_a_heat_map(watched: Watched, crowd: House) -> None:
    page = watched.open(f"{crowd.page}/metric?name=profile&rows=country&columns=theme")
    drawn = page.locator("#crossed svg")
    expect(drawn).to_have_count(1)
    page.select_option("#crossing [name=within]", "new")
    expect(drawn).to_have_count(2)
    assert "within=new" in page.url
    cells = _response(crowd, **CROSS_PARTS)["values"]
    element = page.locator("#crossed svg g.cell text").all_text_contents()
    assert element == [f"{100 * cell['within']:.0f}%" for cell in cells]
    expect(page.locator("#crossed")).to_contain_text("country and theme go together within new")
    expect(page.locator("#crossed")).to_contain_text("new: n, ")
    page.select_option("#crossing [name=within]", "theme")
    expect(page.locator("#crossed")).to_contain_text("within theme")
    expect(page.locator("#crossed table")).to_contain_text("by theme")
    assert "rows=country&columns=new&within=theme" in page.url


@pytest.mark.parametrize(
    ("named", "chosen"),
    [
        ("columns=theme", ["country", "theme", ""]),
        ("rows=country", ["country", "theme", ""]),
        ("within=theme", ["country", "new", "theme"]),
        ("rows=new&within=theme", ["new", "country", "theme"]),
    ],
)
def test_parts_that_an_address_leaves_out_are_those_that_are_free(
    watched: Watched, crowd: House, named: str, chosen: list[str]
) -> None:
    page = watched.open(f"{crowd.page}/metric?name=profile&{named}")
    expect(page.locator("#crossed svg").first).to_be_visible()
    parts = ["rows", "columns", "within"]
    selection = [page.locator(f"#crossing [name={part}]").input_value() for part in parts]
    assert selection == chosen
    cells = _response(crowd, **dict(zip(["rows", "columns", "by"], chosen, strict=True)))
    element = page.locator("#crossed svg g.cell text").all_text_contents()
    assert element == [f"{100 * cell['within']:.0f}%" for cell in cells["values"]]


def test_an_impossible_third_part_in_an_address_can_be_removed(
    unchecked: Watched, home: House
) -> None:
    page = unchecked.open(f"{home.page}/metric?name=profile&epochs=all&within=new")
    expect(page.locator("#crossed")).to_contain_text("leave the third out")
    page.select_option("#crossing [name=within]", "")
    expect(page.locator("#crossed svg")).to_have_count(1)
    assert "within" not in page.url
    expect(page.locator("#third")).to_be_hidden()
    page = unchecked.open(f"{home.page}/metric?name=profile&epochs=all&within={'x' * 201}")
    page.get_by_role("button", name="Start over").click()
    expect(page.locator("#crossed svg")).to_have_count(1)


def test_a_notebook_draws_every_slice(crowd: House) -> None:
    mpl.use("agg")
    answer: Any = hubbub.notebook.connect(crowd.page).cross("profile", "country", "theme", "new")
    axes = answer.plot()
    names = [get_yticklabel.get_text() for get_yticklabel in axes.get_yticklabels()]
    assert names == [f"{new}: {country}" for new in "yn" for country in ("de", "fr", "it")]
    assert "new=y: the two go together" in answer._repr_html_()
