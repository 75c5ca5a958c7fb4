"""What a metric's tree found stands on its page beside what its other devices count."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import hubbub.notebook
from hubbub.cli.main import main
from hubbub.errors import BadParameter
from tests.interfaces.browser import Watched
from tests.support import web
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.pages import page_of

LISTED = 'mechanism = "projective"\nvalues = ["git", "vim"]\nother = true'
SKETCH = 'mechanism = "hcms"\ndomain = "string"\nhashes = 16\nwidth = 64'
CATALOG = catalog_toml(
    *(
        metric_toml(name, more, discover=share, epsilon=4.0, min_batch=1000, lifetime_epsilon=500.0)
        for name, share, more in (
            ("plugin", 0.5, LISTED),
            ("young", 0.05, LISTED),
            ("early", 0.9, LISTED),
            ("sketch", 0.5, SKETCH),
            ("plain", None, LISTED),
            ("words", None, 'mechanism = "tree"\ndomain = "string"\nbits = 34'),
        )
    )
)
COUNTED = {0: 3000, 1: 1000, 2: 2000}
DISCOVERED = {"git": 6000, "spell-check": 4000, "<b>x": 2000}
BEGINS = ("walk", "pl", "need", "th", "st", "mist", "car", "bel", "fin", "for", "sp", "wait")
TRUE_COUNTS: dict[str, dict[Any, int]] = {
    "plugin": COUNTED,
    "plugin/tree": DISCOVERED,
    "young": COUNTED,
    "young/tree": {"git": 20},
    "early": {0: 20},
    "early/tree": DISCOVERED,
    "sketch": DISCOVERED,
    "sketch/tree": DISCOVERED,
    "plain": COUNTED,
    "words": {
        f"{first}{last}": number
        for last, number in (("ing", 900), ("ed", 500), ("er", 450), ("est", 400))
        for first in BEGINS
    },
}


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("discovered")
    with page_of(folder, CATALOG, TRUE_COUNTS) as page:
        yield page


def _json(address: str, path: str, **parameters: Any) -> Any:
    return web.get(f"{address}/v1/metrics/{path}", params=parameters).json()


def test_the_page_draws_found_strings_beside_counted_ones(watched: Watched, address: str) -> None:
    document = _json(address, "plugin/estimates", tier="tree")
    assert {value["value"] for value in document["values"]} == set(DISCOVERED)
    assert _json(address, "plugin")["metric"]["discover"] == 0.5
    page = watched.open(f"{address}/metric?name=plugin")
    expect(page.locator("#table tbody tr")).to_have_count(3)  # git, vim, other
    section = page.locator("#discovery")
    rows = section.locator("tbody tr")
    names = rows.locator("td:first-child").all_inner_texts()
    assert names == [value["value"] for value in document["values"]]
    whiskers = section.locator("svg path.whisker")
    ends = whiskers.evaluate_all("paths => paths.map(p => [+p.dataset.low, +p.dataset.high])")
    assert ends == [[value["low"], value["high"]] for value in document["values"]]
    text = section.inner_text()
    assert "50% of the devices tell any string, listed or not" in text
    assert "hubbub discover plugin --as-candidates FILE" in text
    assert "Strings that were not found: " in text
    assert "12,000 reports" in text
    # Its confidence is the page's; that intervals hold at every look is of the count alone.
    page.select_option("[name=confidence]", "0.99")
    wider = _json(address, "plugin/estimates", tier="tree", confidence=0.99)["values"][0]
    expect(whiskers.first).to_have_attribute("data-low", f"{wider['low']:.15g}")
    page.select_option("[name=looks]", "any")
    watched.settled()
    assert "look as often as you like" in page.inner_text("#bars-notes")
    assert "look as often as you like" not in section.inner_text()
    assert "These hold at one look only." in section.inner_text()
    assert names == rows.locator("td:first-child").all_inner_texts()
    page = watched.open(f"{address}/metric?name=plain")
    assert not page.is_visible("#discovery")


@pytest.mark.thorough
def test_the_page_shows_too_few_reports_separately_for_counting_and_discovery(
    unchecked: Watched, address: str
) -> None:
    page = unchecked.open(f"{address}/metric?name=young")
    expect(page.locator("#table tbody tr")).to_have_count(3)
    assert "Too few reports" in page.inner_text("#discovered")
    assert "young/tree" in page.inner_text("#discovered")
    assert not page.inner_text("#state")
    page = unchecked.open(f"{address}/metric?name=early")
    assert "Too few reports for an answer" in page.inner_text("#flags")
    assert not page.is_visible("#table")
    expect(page.locator("#discovered tbody tr")).to_have_count(len(DISCOVERED))


@pytest.mark.thorough
def test_without_candidates_the_found_strings_are_counted(watched: Watched, address: str) -> None:
    page = watched.open(f"{address}/metric?name=sketch")
    expect(page.locator("#table tbody tr")).to_have_count(len(DISCOVERED))
    element = page.locator("#lists label", has_text="what was discovered").locator("input")
    expect(element).to_be_checked()
    assert not page.locator("#lists button").count()
    page.fill("textarea[name=typed]", "vim")
    page.locator("textarea[name=typed]").blur()
    expect(page.locator("#table tbody tr")).to_have_count(len(DISCOVERED) + 1)
    assert "list=discovered" in page.url


@pytest.fixture(scope="session")
def searched(address: str) -> Any:
    """The answer with likely strings, which take a second or two to find."""
    return _json(address, "words/estimates", likely=0.5, order="rank")


@pytest.mark.thorough
def test_the_page_names_likely_strings_on_request(
    watched: Watched, address: str, searched: Any
) -> None:
    likely, values = searched["likely"], {value["value"] for value in searched["values"]}
    truth = TRUE_COUNTS["words"]
    assert len(likely) > 1
    assert not values & {row["value"] for row in likely}
    assert max(row["doubt"] for row in likely) <= 0.5
    # False alarms below 1e-6: each is false by half at most, and few of them are.
    assert sum(row["value"] in truth for row in likely) > len(likely) / 4
    assert not _json(address, "words/estimates")["likely"]
    page = watched.open(f"{address}/metric?name=words")
    page.click("#likely button")
    element = page.locator("#likely .note")
    expect(element).to_contain_text("Likely, too, the surest first: ")
    for row in likely:
        expect(element).to_contain_text(f"“{row['value']}” (at most {round(row['high']):,})")
    expect(element).to_contain_text(f"{likely[-1]['doubt']:.0%} of them may be held by nobody")
    page = watched.open(f"{address}/metric?name=plain")
    assert not page.locator("#likely button").count()
    page = watched.open(f"{address}/metric?name=plugin")
    page.click("#discovered button")
    expect(page.locator("#discovered")).to_contain_text("No further string is likely.")


@pytest.mark.thorough
def test_likely_strings_are_the_same_on_every_interface(
    address: str, searched: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [row["value"] for row in searched["likely"]]
    connection = hubbub.notebook.connect(address)
    assert connection.discover("words", likely=0.5).document["likely"] == searched["likely"]
    refused = 'answered by projective, which finds no strings, so none .* mechanism = "tree", or'
    with pytest.raises(BadParameter, match=refused):
        connection.discover("plain", likely=0.5)
    answer = web.get(f"{address}/v1/metrics/plain/estimates?likely=0.5")
    assert (answer.status_code, bool(re.search(refused, answer.json()["detail"]))) == (400, True)
    answer = web.get(f"{address}/v1/metrics/sketch/estimates?likely=0.5")
    assert answer.status_code == 400
    assert "ask sketch/tree for likely ones (over HTTP tier=tree)" in answer.json()["detail"]
    assert web.get(f"{address}/v1/metrics/sketch/estimates?likely=0.5&tier=tree").status_code == 200
    assert web.get(f"{address}/v1/metrics/words/estimates?likely=1").status_code == 422
    listed = tmp_path / "words.txt"
    command = ["discover", "words", "--likely", "--url", address]
    assert main([*command, "--as-candidates", str(listed)]) == 0
    ranked = sorted(searched["values"], key=lambda row: int(row["rank"]))
    assert listed.read_text().split() == [*(row["value"] for row in ranked), *names]
    doubt = searched["likely"][-1]["doubt"]
    output = " ".join(capsys.readouterr().out.split())
    assert f"but {doubt:.0%} of these {len(names)} strings may be held by nobody: " in output
    assert f'"{names[0]}"' in output
