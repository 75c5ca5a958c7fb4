"""The capacity model: linear, its bottleneck named, and what the command refuses."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.cli.main import main
from hubbub.cli.planning.capacity_model import MEASURED, Machine, Need, Traffic, needs
from tests.conftest import CATALOG

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MACHINE = Machine(4, 16)
DAILY = Traffic(1e8, 86_400, 50, 128)


def _parts(*traffic: Traffic, peak: float = 3, outage: float = 3600) -> dict[str, Need]:
    found = needs(traffic, MACHINE, MEASURED, peak=peak, outage_seconds=outage)
    return {need.part: need for need in found}


def test_ten_times_the_reports_take_ten_times_as_much() -> None:
    small, large = _parts(DAILY), _parts(replace(DAILY, a_day=1e9))
    for part, need in large.items():
        assert need.cores == pytest.approx(10 * small[part].cores)
        assert need.machines >= small[part].machines
    assert large["Redis of the totals"].gigabytes == pytest.approx(
        10 * small["Redis of the totals"].gigabytes, rel=1e-3
    )
    # By hand: 1e9 a day, 3 times the average, 46.5 + 2.5 us each, 60% used.
    assert large["aggregator"].cores == pytest.approx(3e9 / 86_400 * 49e-6 / 0.6)
    assert large["Redis of the totals"].gigabytes == pytest.approx(4 * 91 / 0.6, rel=0.01)
    assert large["Redis of the totals"].why == "memory"


def test_shorter_epochs_hold_fewer_tags_and_longer_outages_more_reports() -> None:
    hourly = _parts(replace(DAILY, epoch_seconds=3600))
    daily = _parts(DAILY)
    ratio = daily["Redis of the totals"].gigabytes / hourly["Redis of the totals"].gigabytes
    assert ratio == pytest.approx(24, rel=0.01)
    longer = _parts(DAILY, outage=7200)
    pool = "Redis of the pool"
    assert longer[pool].gigabytes == pytest.approx(2 * daily[pool].gigabytes)


def test_a_slower_machine_needs_more_of_everything() -> None:
    slow = MEASURED.on(2 * MEASURED.open_us)
    assert slow.shuffler_us == pytest.approx(2 * MEASURED.shuffler_us)
    assert slow.tag_bytes == MEASURED.tag_bytes


def test_the_command_counts_a_catalogs_limits_and_names_the_bottleneck(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    asked = ["plan", str(tmp_path / "metrics.toml"), "--capacity", "--devices", "1e6"]
    assert main([*asked, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # theme once a day, homepage a hundred times, crashed three times an hour, editor once a week.
    assert found["reports_a_day"] == pytest.approx(1e6 * (1 + 100 + 72 + 1 / 7))
    assert found["bottleneck"] in {need["part"] for need in found["needs"]}
    assert main([*asked, "--metric", "theme", "--measure"]) == 0
    out = capsys.readouterr().out
    assert "1,000,000 reports a day" in out
    assert "(measured now)" in out
    assert "bottleneck: " in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--devices", "0"], "--devices 0 is outside [1, 1e+11]"),
        (["--peak", "nan"], "--peak nan is outside [1, 24]"),
        (["--machine-gb", "0"], "--machine-gb 0 is outside"),
        (["--per-day", "-1"], "--per-day -1 is outside"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--capacity", "--per-day", "1", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_the_table_of_the_runbook_is_what_the_command_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (ROOT / "docs" / "operate" / "size.md").read_text()
    rows = re.findall(r"^\| ([\d,]+) \| (hour|day) \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) >= 6
    for a_day, epoch, cells in rows:
        devices = a_day.replace(",", "")
        asked = ["plan", "--capacity", "--devices", devices, "--per-day", "1", "--epoch", epoch]
        assert main([*asked, "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)
        expected = [f"{found['peak_reports_a_second']:,.0f}"]
        expected += [f"{need['machines']}" for need in found["needs"]]
        expected += [f"{found['bottleneck']}, {found['why']}"]
        assert cells.split(" | ") == expected
