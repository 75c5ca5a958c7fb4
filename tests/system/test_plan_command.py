"""`hubbub plan --attack`, as a team types it before a launch."""

import json
from pathlib import Path

import pytest

from hubbub.cli.main import main
from tests.conftest import CATALOG

MORE = """
[metrics.hours]
description = "Hours of use"
owner = "desktop@example.org"
expires = 2099-06-30
epoch = "day"
mechanism = "mean.piecewise"
epsilon = 1.0
domain = "number"
low = 0
high = 24
min_batch = 20
limits = { reports_per_epoch = 1, lifetime_epsilon = 50.0 }
"""


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    (tmp_path / "metrics.toml").write_text(CATALOG + MORE)
    return str(tmp_path / "metrics.toml")


def test_every_metric_has_its_bound_and_its_measure(
    catalog: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["plan", catalog, "--attack", "--fake", "0.1", "--simulate", "3000", "--format", "json"]
    assert main(asked) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["metric"] for row in rows] == ["theme", "crashed", "editor", "homepage", "hours"]
    for row in rows:
        assert row["worth"] > 1
        assert row["gain"] == pytest.approx(0.1 * (row["worth"] - row["true_share"]))
        # One drawing of 3,000 reports at epsilon 1: its own error, and of strings the decoder's.
        assert row["measured"] == pytest.approx(row["gain"], abs=0.25)


def test_the_table_names_what_it_takes(catalog: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", catalog, "--attack", "--metric", "theme", "--targets", "2"]) == 0
    out = capsys.readouterr().out
    assert "theme" in out
    assert "1% takes" in out
    assert "crashed" not in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fake", "1"], "--fake 1.0 is outside (0, 1)"),
        (["--fake", "nan"], "--fake nan is outside (0, 1)"),
        (["--targets", "0"], "--targets 0 is outside"),
        (["--simulate", "5"], "--simulate 5 is outside"),
        (["--metric", "colour"], 'no metric "colour"'),
    ],
)
def test_what_cannot_be_is_named(
    catalog: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", catalog, "--attack", *arguments]) == 2
    assert said in capsys.readouterr().err
