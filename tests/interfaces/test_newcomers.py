"""What puzzled people who asked for the first time."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from hubbub.cli.main import main
from tests.interfaces.browser import Watched
from tests.support import web
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.pages import page_of

LETTERS = catalog_toml(
    metric_toml("letter", mechanism="grr", values=list("abcdefgh"), epsilon=0.5, min_batch=10)
)
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


@pytest.mark.thorough
def test_two_days_of_which_one_may_change_are_compared_as_they_are_selected(
    browser: Browser, tmp_path: Path
) -> None:
    with page_of(tmp_path, LETTERS, {"letter": FEW}) as address, Watched(browser) as watched:
        assert web.get(f"{address}/v1/metrics/letter/compare").status_code == 409
        page = watched.open(f"{address}/metric?name=letter")
        section = page.locator("#compared")
        expect(section).to_contain_text("60 reports before, 60 after")
        expect(section).to_contain_text("Not final")
        expect(section).not_to_contain_text("Nothing to compare yet")


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
