"""An experiment: the same from every face, and as the page draws it."""

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

import hubbub.notebook
from tests.interfaces.browser import Watched
from tests.support import web
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import Capture, document_of, output_of, refusal_of
from tests.support.pages import page_of

FIELDS: dict[str, Any] = {"epsilon": 2.0, "experiment": "new_menu", "lifetime_epsilon": 500.0}
CATALOG = catalog_toml(
    "[experiments.new_menu]\narms = { control = 1, new = 1 }\n",
    metric_toml("saved", mechanism="rr", values=["no", "yes"], **FIELDS),
    metric_toml(
        "took",
        mechanism="wave",
        kind="duration",
        low=0,
        high=60,
        buckets=12,
        percentiles=[50, 90],
        unit="s",
        **FIELDS,
    ),
)
TOOK = {"control": {22.0: 6_000, 52.0: 4_000}, "new": {12.0: 6_000, 52.0: 4_000}}
SAVED = {"control": {0: 5_000, 1: 5_000}, "new": {0: 5_000, 1: 5_000}}
TRUE_COUNTS: dict[str, dict[Any, int]] = {
    f"{metric}@new_menu={arm}": counts
    for metric, arms in (("took", TOOK), ("saved", SAVED))
    for arm, counts in arms.items()
}


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("experiment")
    with page_of(folder, CATALOG, TRUE_COUNTS, seed=3) as page_url:
        yield page_url


def test_an_experiment_is_the_same_from_every_face(address: str, capsys: Capture) -> None:
    by_http = web.get(f"{address}/v1/experiments/new_menu").json()
    rows = {(row["metric"], row["measure"]): row for row in by_http["values"]}
    truths = {("took", "p50"): -10.0, ("took", "p90"): 0.0, ("saved", "share of yes"): 0.0}
    assert rows.keys() == truths.keys()
    for key, truth in truths.items():
        assert rows[key]["low"] <= truth <= rows[key]["high"]
        assert rows[key]["shown"] == bool(truth)
    assert "took: control 10,000, new 10,000; they fit their weights" in by_http["sizes"]
    assert " s is shown with a chance of 80%): between -5.0" in by_http["verdict"]
    answer = hubbub.notebook.connect(address).experiment("new_menu")
    assert answer.document == by_http
    words = ["experiment", "new_menu", "--url", address]
    assert document_of(capsys, *words, "--format", "json") == by_http
    output = output_of(capsys, *words)
    lines = by_http["verdict"].splitlines()
    assert lines[0].startswith("took, p50: new is lower by")
    for sentence in (*lines, by_http["sizes"]):
        assert sentence in output
        assert sentence in answer._repr_html_()
    saved = rows["saved", "share of yes"]
    assert saved["of_share"]
    assert f"{100 * saved['difference']:+.2f}" in output  # in points, as in its sentence
    refused = refusal_of(capsys, "experiment", "saved", "--url", address)
    assert '"saved" is a metric; ask for its experiment, "new_menu"' in refused


def test_a_breakdown_by_arm_is_valid_for_one_look_on_every_face(
    address: str, capsys: Capture
) -> None:
    connection = hubbub.notebook.connect(address)
    [note] = connection.breakdown("saved").document["notes"]
    assert note.startswith("Intervals and marks by arm are valid for one look; ")
    assert "hubbub experiment new_menu" in note
    assert note in output_of(capsys, "breakdown", "saved", "--url", address)
    assert html.escape(note) in connection.breakdown("saved")._repr_html_()
    ranges = output_of(capsys, "breakdown", "took", "--url", address)
    assert "ranges that do not differ from all others beyond chance; --format csv" in ranges


@pytest.mark.parametrize("width", [pytest.param(390, marks=pytest.mark.thorough), 1200])
def test_the_page_shows_effects_sizes_and_a_verdict(
    browser: Browser, address: str, width: int
) -> None:
    with Watched(browser, width=width) as watched:
        page = watched.open(f"{address}/metric?name=took")
        section = page.locator("#experiment")
        expect(section).to_contain_text("took, p50: new is lower by")
        expect(section).to_contain_text("they fit their weights")
        expect(section.locator("svg")).to_contain_text("effect beside control, in s")
        assert section.locator("g.row > text").all_text_contents() == ["new: p50", "new: p90"]
        expect(section.locator("tbody tr")).to_have_count(3)
        expect(page.locator("#broken")).to_contain_text("ranges that do not.")
        page = watched.open(f"{address}/metric?name=saved")
        expect(section.locator("svg")).to_contain_text("in percentage points")
        expect(section).to_contain_text("saved, share of yes: no effect of new shown")
        results = web.get(f"{address}/v1/experiments/new_menu").json()["values"]
        [points] = [f"{100 * row['difference']:+.2f}" for row in results if row["of_share"]]
        expect(section.locator("tbody")).to_contain_text(points)
        expect(section).not_to_contain_text("took, p50:")
        expect(page.locator("#broken")).to_contain_text("by arm are valid for one look")
        if width > 390:
            table = page.locator("#broken .wide")
            assert table.evaluate("wide => wide.scrollWidth - wide.clientWidth") <= 0
