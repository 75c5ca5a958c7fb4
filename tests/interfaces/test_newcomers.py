"""What puzzled people who asked for the first time."""

import itertools
import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

import hubbub.notebook
from hubbub.aggregator.web import query_routes
from hubbub.cli.main import main
from hubbub.notebook.answer import by_size
from tests.interfaces.browser import Watched
from tests.support import web
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import output_of, refusal_of
from tests.support.pages import EPOCH, page_of

LETTERS = catalog_toml(
    metric_toml("letter", mechanism="grr", values=list("abcdefgh"), epsilon=0.5, min_batch=10)
)
_NUMBER = {"kind": "duration", "unit": "s", "mechanism": "haar", "low": 0, "high": 60}
MIXED = catalog_toml(
    metric_toml("fine", **_NUMBER, buckets=64, epsilon=2.0, min_batch=10),
    metric_toml("took", **_NUMBER, buckets=16, epsilon=1.0, min_batch=10),
    metric_toml(
        "close", **_NUMBER, buckets=64, percentiles=[98, 98.5, 99], epsilon=2.0, min_batch=10
    ),
    metric_toml("agreed", kind="boolean", mechanism="rr", epsilon=2.0, min_batch=10),
    metric_toml("three", mechanism="grr", values=["x", "y", "z"], epsilon=1.5, min_batch=10),
    metric_toml(
        "back",
        kind="retention",
        weeks=12,
        epoch="week",
        mechanism="grr",
        epsilon=0.5,
        lifetime_epsilon=900.0,
        min_batch=10,
    ),
    metric_toml("rare", **_NUMBER, buckets=64, epsilon=1.0, min_batch=10),
)
MIXED_COUNTS: dict[str, Any] = {
    "fine": {2: 3000, 50: 3000},
    "took": {2: 3000, 20: 2000, 40: 200},
    "close": [{2: 3000, 50: 3000}] * 3,
    "agreed": [{0: 900, 1: 300}] * 3,
    "three": {0: 900, 1: 300, 2: 50},
    "back": [{0: 30, 1: 5, 2: 3, 13: 20}] * 2,
    "rare": {2: 30, 50: 30},
}
WEEKS = [*(f"week {week}" for week in range(13)), "later"]
FEW = [{0: 40, 1: 20}, {0: 30, 1: 30}]
TOOK = catalog_toml(
    metric_toml(
        "took",
        kind="duration",
        unit="s",
        mechanism="haar",
        low=0,
        high=60,
        buckets=16,
        epsilon=1.0,
        min_batch=10,
    )
)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    # The newest day of "agreed" is before the last days of which a card draws as many.
    earlier = {"back": EPOCH - EPOCH // 7 + 1, "agreed": 20}
    folder = tmp_path_factory.mktemp("mixed")
    with page_of(folder, MIXED, MIXED_COUNTS, earlier=earlier) as address:
        yield address


def test_a_query_of_many_ranges_prints_only_detected_ranges(
    mixed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = output_of(capsys, "query", "fine", "--url", mixed)
    assert output.startswith("fine: 6,000 reports, haar")
    assert output.index("percentiles in s") < output.index("value (s)")
    rows = web.get(f"{mixed}/v1/metrics/fine/estimates").json()["values"]
    clear = [row["value"] for row in rows if row["low"] > 0]
    assert "[1.875, 2.8125)" in clear
    assert all((f"{row['value']} " in output) == (row["value"] in clear) for row in rows)
    assert f"left out: {64 - len(clear)} ranges whose intervals reach 0" in output
    none = output_of(capsys, "query", "rare", "--url", mixed)
    assert "left out: 64 ranges" in none
    assert "no value is detected" in none
    assert "A share below 0" in str(web.get(f"{mixed}/v1/metrics/rare/estimates").json()["notes"])
    assert "largest rows" in output
    assert not re.search("largest rows|A share below 0", none)
    few = output_of(capsys, "query", "took", "--url", mixed)
    assert few.startswith("took: 5,200 reports, haar")
    assert "left out" not in few
    assert "[56.25, 60]" in few


def test_a_comparison_of_many_ranges_prints_percentiles_and_then_changed_ranges(
    mixed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = output_of(capsys, "compare", "close", "--url", mixed)
    assert output.splitlines()[1].startswith("percentiles in s, 95% intervals: p98 from ")
    assert "left out: 64 ranges that did not change beyond chance" in output
    assert "p (single row)" not in output, "there is no table without rows"
    assert "no range changed beyond chance" in output, "the percentile did"


def test_weeks_are_in_their_order(mixed: str, capsys: pytest.CaptureFixture[str]) -> None:
    output = output_of(capsys, "query", "back", "--url", mixed)
    [dates] = re.findall(r"per report, (.*)", output)
    first, last = map(date.fromisoformat, dates.split(" to "))
    assert (last - first).days == 6, "a day that is asked for may be any of them"
    places = [output.index(f"week {week} ") for week in range(13)]
    assert places == sorted(places)
    connection = hubbub.notebook.connect(mixed)
    followed = [series["value"] for series in connection.trend("back").document["series"]]
    assert followed == [value for value in WEEKS if value in followed]
    answer = connection.estimates("back")
    assert answer.document["figures"] == "retention"
    drawn = by_size(list(answer), "estimates", answer.document)
    assert [row["value"] for row in drawn] == WEEKS


def test_weeks_are_in_their_order_on_the_page_and_cards_have_percentiles(
    mixed: str, context: BrowserContext
) -> None:
    with Watched(context) as watched:
        page = watched.open(f"{mixed}/metric?name=back")
        cells = page.locator("#table tbody tr").all_text_contents()
        assert cells[0].startswith("week 0")
        assert cells[12].startswith("week 12")
        page = watched.open(f"{mixed}/")
        card = page.locator("li", has=page.locator('a[href$="name=took"]'))
        expect(card).to_contain_text("p50")
        expect(card).to_contain_text("p95")
        expect(card).not_to_contain_text("mean")
        for name, followed in (("close", "p98"), ("agreed", "true")):
            card = page.locator("li", has=page.locator(f'a[href$="name={name}"]'))
            expect(card).to_contain_text(f"“{followed}”, ")


@pytest.mark.thorough
def test_names_of_percentiles_stand_beside_the_whiskers(
    mixed: str, context: BrowserContext
) -> None:
    with Watched(context) as watched:
        for name, width in itertools.product(("took", "close"), (1280, 360)):
            watched.page.set_viewport_size({"width": width, "height": 800})
            page = watched.open(f"{mixed}/metric?name={name}")
            ends = page.locator("#bars path.whisker").evaluate_all(
                "paths => paths.map((path) => path.getBoundingClientRect().right)"
            )
            names = page.locator("#bars .across text").evaluate_all(
                "texts => texts.map((text) => text.getBoundingClientRect())"
            )
            whole = page.locator("#bars svg").bounding_box()
            assert len(names) == 2
            assert names[0]["bottom"] <= names[1]["top"] + 1
            assert whole
            assert all(name["left"] > max(ends) for name in names)
            assert all(name["right"] <= whole["x"] + whole["width"] for name in names)


def test_a_top_list_marks_uncertain_places(mixed: str, capsys: pytest.CaptureFixture[str]) -> None:
    every = output_of(capsys, "top", "three", "--url", mixed)
    assert "these are all values of the answer, in this order with " in every
    assert "these are the most frequent" not in every
    two = output_of(capsys, "top", "three", "-n", "2", "--url", mixed)
    assert "these are the most frequent with a confidence of " in two
    ranges = output_of(capsys, "top", "took", "-n", "4", "--url", mixed)
    note = "2 of these values have an interval that reaches 0: places among such values are chance"
    assert note in ranges
    assert hubbub.notebook.connect(mixed).top("took", 4).document["notes"] == [note]


@pytest.mark.thorough
def test_the_page_offers_parquet_only_where_the_service_can_write_it(
    mixed: str, context: BrowserContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    for can_write, names in (
        (object(), ["Download CSV", "Download Parquet"]),
        (None, ["Download CSV"]),
    ):
        monkeypatch.setattr(query_routes, "find_spec", lambda _, module=can_write: module)
        with Watched(context) as watched:
            page = watched.open(f"{mixed}/metric?name=three")
            assert page.locator("#take button").all_text_contents() == names


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("experiment nope", 'no experiment is called "nope"; the catalog has none'),
        (
            "query three@os=linux",
            'metric "three" has no part "os=linux"; it has no breakdown: leave @... out',
        ),
    ],
)
def test_a_name_that_does_not_exist_is_quoted(
    mixed: str, capsys: pytest.CaptureFixture[str], typed: str, message: str
) -> None:
    assert message in refusal_of(capsys, *typed.split(), "--url", mixed)


@pytest.mark.thorough
def test_two_days_of_which_one_may_change_are_compared_as_they_are_selected(
    context: BrowserContext, tmp_path: Path
) -> None:
    with page_of(tmp_path, LETTERS, {"letter": FEW}) as address, Watched(context) as watched:
        assert web.get(f"{address}/v1/metrics/letter/compare").status_code == 409
        page = watched.open(f"{address}/metric?name=letter")
        section = page.locator("#compared")
        expect(section).to_contain_text("60 reports before, 60 after")
        expect(section).to_contain_text("Not final")
        expect(section).not_to_contain_text("Too few epochs")


def test_a_difference_outside_its_interval_has_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with page_of(tmp_path, LETTERS, {"letter": FEW}, earlier={"letter": 1}) as address:
        answer = web.get(f"{address}/v1/metrics/letter/compare").json()
        assert main(["compare", "letter", "--url", address]) == 0
    rows = answer["values"]
    assert any(not row["low"] <= row["difference"] <= row["high"] for row in rows)
    [note] = answer["notes"]
    assert note.startswith("A difference outside its interval is no mistake: the estimate")
    assert "in 120 reports" in note
    assert note in capsys.readouterr().out


def test_percentiles_of_a_duration_come_first_and_none_is_below_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with page_of(tmp_path, TOOK, {"took": {2: 300, 20: 200}}) as address:
        answer = web.get(f"{address}/v1/metrics/took/estimates").json()
        assert main(["query", "took", "--url", address]) == 0
    output = capsys.readouterr().out
    reaching = {row["percentile"]: row["reaches"] for row in answer["percentiles"]}
    assert answer["percentiles"][0]["low"] == 0
    assert reaching[10] == ""
    assert output.index("percentiles in s") < output.index("[0, 3.75)")
    assert "p10: the interval" not in output


def test_answers_and_plans_use_the_percentiles_that_the_catalog_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were those of every metric: the catalog's decided the mechanism alone."""
    catalog = TOOK.replace("buckets = 16", "buckets = 16\npercentiles = [80, 97]")
    days: list[dict[int, int]] = [{2: 300, 20: 200}] * 2
    with page_of(tmp_path, catalog, {"took": days}) as address:
        ranges = "?epochs=2024-10-03&to_epochs=2024-10-04"
        for question in ("estimates", f"compare{ranges}"):
            answer = web.get(f"{address}/v1/metrics/took/{question}").json()
            assert [row["percentile"] for row in answer["percentiles"]] == [80, 97]
        trend = web.get(f"{address}/v1/metrics/took/trend?epochs=all").json()
        assert [line["value"] for line in trend["series"]] == ["mean", "p80", "p97"]
    words = ["plan", f"{tmp_path}/metrics.toml", "--metric", "took", "--reports", "9000"]
    (tmp_path / "metrics.toml").write_text(catalog)
    output = output_of(capsys, *words)
    assert "p80 to p97 in rank" in output
    assert "percentiles = [80, 97]" in output
    edges = catalog.replace("haar", "grr").replace(
        "low = 0\nhigh = 60\nbuckets = 16", "edges = [0, 5, 9]"
    )
    (tmp_path / "metrics.toml").write_text(edges)
    assert output_of(capsys, *words).startswith("took: a number in 2 ranges\n")


def test_a_rehearsal_takes_percentiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "metrics.toml").write_text(TOOK)
    (tmp_path / "people.csv").write_text("2,3000\n20,2000\n")
    words = f"simulate took --catalog {tmp_path}/metrics.toml --values {tmp_path}/people.csv"
    options = [*words.split(), "--runs", "3", "--seed", "1"]
    assert main([*options, "--percentile", "5,42", "--json"]) == 0
    run: dict[str, Any] = json.loads(capsys.readouterr().out)["runs"][0]
    assert [row["percentile"] for row in run["percentiles"]] == [5, 42]
    (tmp_path / "metrics.toml").write_text(LETTERS)
    (tmp_path / "people.csv").write_text("a,3000\n")
    assert main([*[word.replace("took", "letter") for word in options], "--percentile", "5"]) == 2
    assert "no ranges from which percentiles are computed" in capsys.readouterr().err
