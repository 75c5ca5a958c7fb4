"""Figures of a device's own past: the same from every face, and as the page draws them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import hubbub.notebook
from hubbub.cli.main import main
from tests.interfaces.browser import Watched, chromium, needs_browser
from tests.support import web
from tests.support.pages import EPOCH, page_of

METRIC = """
[metrics.{name}]
description = "What is asked"
owner = "owner@example.org"
expires = 2099-01-01
epoch = "{epoch}"
mechanism = "{mechanism}"
epsilon = 4.0
min_batch = 100
limits = {{ reports_per_epoch = 1, lifetime_epsilon = 5000.0 }}
{more}
"""
CATALOG = 'shuffler = "127.0.0.1:1"\n' + "".join(
    METRIC.format(
        name=name,
        epoch=epoch,
        more=more,
        mechanism="auto" if "rate =" in more else "grr",
    )
    for name, epoch, more in (
        ("checkout", "day", 'kind = "funnel"\nsteps = ["visit", "cart", "paid"]'),
        ("crashes", "day", 'rate = { of = "crashed", per = "started", most = 20 }'),
        ("use", "day", 'kind = "activity"\nbreakdown = { os = ["linux", "macos", "haiku"] }'),
        ("comeback", "week", 'kind = "retention"\nweeks = 2'),
        ("theme", "day", 'values = ["light", "dark"]'),
    )
)
WEEK = EPOCH // 7
WEEKS: list[dict[Any, int]] = [
    {0: 4000, 1: 0, 2: 0, 3: 2000},
    {0: 3000, 1: 1600, 2: 0, 3: 2000},
    {0: 5000, 1: 1200, 2: 800, 3: 2000},
]
DAYS: list[dict[Any, int]] = [{0: 1000, 1: 600, 2: 400}, {0: 1500, 1: 500, 2: 0}]
HELD: dict[str, Any] = {
    "checkout": [{0: 3000, 1: 1500, 2: 500}, {0: 3000, 1: 1500, 2: 500}],
    "crashes": {(4.0, 16.0): 5000, (0.0, 10.0): 5000},
    "use@os=linux": DAYS,
    "use@os=macos": DAYS,
    "use@os=haiku": {0: 20, 1: 10, 2: 10},
    "comeback": WEEKS,
    "theme": {0: 500, 1: 500},
}
TRUTHS = {
    "checkout": {
        "visit to cart": 2000 / 5000,
        "cart to paid": 500 / 2000,
        "visit to paid": 500 / 5000,
    },
    "crashes": {"crashed per started": 4 / 26},
    "comeback": {"back in week 1": 2800 / 7000, "back in week 2": 800 / 4000},
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("figures")
    earlier = {"comeback": EPOCH - WEEK, "checkout": 5}
    with page_of(folder, CATALOG, HELD, seed=5, earlier=earlier) as page_url:
        yield page_url


@pytest.mark.parametrize("metric", [*TRUTHS, "use"])
def test_figures_are_the_same_from_every_face(
    address: str, capsys: pytest.CaptureFixture[str], metric: str
) -> None:
    span = {"epochs": "all"}
    by_http = web.get(f"{address}/v1/metrics/{metric}/figures", params=span).json()
    for row in by_http["values"] if metric in TRUTHS else ():
        truth = TRUTHS[metric][row["figure"]]
        # Two and a half times as far as 95%: outside with a chance below 1e-6.
        far = 2.5 * (row["high"] - row["low"]) / 2
        assert abs(row["estimate"] - truth) < far
        assert row["low"] < row["estimate"] < row["high"]
    answer = hubbub.notebook.connect(address).figures(metric, epochs="all")
    assert answer.document == by_http
    words = ["figures", metric, "--epochs", "all", "--url", address]
    assert main([*words, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == by_http
    assert main([*words, "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(by_http["values"]) + 1
    assert main(words) == 0
    output = capsys.readouterr().out
    for row in by_http["values"]:
        assert row["figure"] in output
        assert row["figure"] in answer._repr_html_()


def test_active_devices_are_those_of_running_and_whole_windows(address: str) -> None:
    """Day 19,999 begins a week, of which two days are here; both days are over."""
    rows = web.get(f"{address}/v1/metrics/use/figures").json()["values"]
    newest, *_ = (row["reports"] for row in rows if row["figure"] == "actives of a day")
    assert newest == 2 * 2000 + 40
    truths = {"actives of 28 days": 2 * 400 + 10, "actives of a week": 2 * 1500 + 20}
    for row in rows[:2]:
        assert abs(row["estimate"] - truths[row["figure"]]) < 2.5 * (row["high"] - row["low"]) / 2
    notes = ["running: 2 of 28 days", "running: 2 of 7 days", "", ""]
    assert [row["note"] for row in rows] == notes
    assert all(row["low"] == row["estimate"] == row["high"] for row in rows[2:])


def test_a_breakdown_names_parts_without_an_answer(address: str) -> None:
    answer = web.get(f"{address}/v1/metrics/use/figures", params={"by": "os"}).json()
    assert {row["part"] for row in answer["values"]} == {"linux", "macos"}
    assert answer["notes"][0] == "haiku: 40 reports, below the minimum batch of 100"


def test_cohorts_are_of_a_first_week_each(address: str) -> None:
    answer = web.get(f"{address}/v1/metrics/comeback/figures", params={"cohorts": True}).json()
    truths = [1600 / 4000, 1200 / 3000, 800 / 4000]
    for row, truth in zip(answer["values"], truths, strict=True):
        assert abs(row["estimate"] - truth) < 2.5 * (row["high"] - row["low"]) / 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["theme"], 'metric "theme" has no figures'),
        (["checkout", "--cohorts"], 'metric "checkout" is of kind funnel and has no cohorts'),
        (["checkout", "--by", "os"], 'metric "checkout" has no breakdown'),
        (["comeback", "--last", "1"], "no device can have come back yet"),
    ],
)
def test_what_has_no_figures_is_refused_with_the_right_question(
    address: str, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["figures", *words, "--url", address]) == 2
    error = capsys.readouterr().err
    assert message in error
    if words == ["theme"]:
        assert "ask for its estimates: hubbub query theme" in error


@needs_browser
@pytest.mark.parametrize("metric", [*TRUTHS, "use"])
def test_the_page_draws_figures_with_their_intervals(address: str, metric: str) -> None:
    with (
        chromium() as browser,
        Watched(browser, clean=metric not in {"comeback", "use"}) as watched,
    ):
        page = watched.open(f"{address}/metric?name={metric}&epochs=all")
        section = page.locator("#figures")
        expect(section.locator("tbody tr").first).to_be_visible()
        number = section.locator("tbody tr").count()
        assert section.locator("g.row").count() == number
        assert section.locator("path.whisker").count() <= number


def test_a_rehearsal_shows_figures_beside_the_true_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    (tmp_path / "values.csv").write_text("week 0,2000\nweek 1,800\nweek 2,500\nlater,700\n")
    words = f"--catalog {tmp_path}/metrics.toml --values {tmp_path}/values.csv --epochs 4"
    run = f"simulate comeback {words} --runs 4 --seed 1"
    assert main([*run.split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    for row in (row for one_run in document["runs"] for row in one_run["figures"]):
        assert row["true"] == {"back in week 1": 0.4, "back in week 2": 0.25}[row["figure"]]
        assert abs(row["estimate"] - row["true"]) < 2.5 * (row["high"] - row["low"]) / 2
    assert document["summary"]["coverage_figures"] > 0.5
    assert main(run.split()) == 0
    assert "intervals of figures that hold it:" in capsys.readouterr().out
