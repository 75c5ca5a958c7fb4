"""The capacity model: linear, its bottleneck named, and what the command refuses."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub.installation.capacity_model import (
    COSTS,
    Door,
    Machine,
    Need,
    Traffic,
    largest_crowd,
    needs,
)
from tests.conftest import CATALOG
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import Capture, document_of, output_of, refusal_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MACHINE = Machine(4, 16)
DAILY = Traffic(a_day=1e8, epoch_seconds=86_400, sealed_bytes=50, cells=128)


def _parts(*traffic: Traffic, peak: float = 3, outage: float = 3600) -> dict[str, Need]:
    part_needs = needs(traffic, MACHINE, peak=peak, outage_seconds=outage)
    return {need.part: need for need in part_needs}


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
    assert large["Redis of the totals"].gigabytes == pytest.approx(
        (3 + 1 / 24) * 12 / 0.6, rel=0.01
    )
    assert large["Redis of the totals"].why == "memory"


def test_a_visit_costs_its_connection_once() -> None:
    doors: tuple[Door, ...] = ("grpc", "http")
    options = {"peak": 3, "outage_seconds": 3600.0}
    by = {
        (door, each): needs([DAILY], MACHINE, door=door, per_visit=each, **options)[0].cores
        for door in doors
        for each in (1, 10)
    }
    # By hand: 1e8 a day, 3 times the average, 60% used; nine further reports of 8.3 us.
    assert by["grpc", 1] == pytest.approx(3e8 / 86_400 * 1102e-6 / 0.6)
    assert by["http", 1] == pytest.approx(3e8 / 86_400 * 789e-6 / 0.6)
    assert by["http", 10] == pytest.approx(3e8 / 86_400 * (78.9e-6 + 0.9 * 8.3e-6) / 0.6)
    assert by["grpc", 10] < by["grpc", 1] / 9


def test_shorter_epochs_hold_fewer_tags_and_longer_outages_more_reports() -> None:
    hourly = _parts(replace(DAILY, epoch_seconds=3600))
    daily = _parts(DAILY)
    ratio = daily["Redis of the totals"].gigabytes / hourly["Redis of the totals"].gigabytes
    assert ratio == pytest.approx((3 * 24 + 1) / 4, rel=0.01)
    longer = _parts(DAILY, outage=7200)
    pool = "Redis of the pool"
    assert longer[pool].gigabytes == pytest.approx(2 * daily[pool].gigabytes)


def test_epochs_that_leave_whole_wait_in_the_pool() -> None:
    whole = replace(DAILY, whole=True)
    mixed, waits = _parts(DAILY)["Redis of the pool"], _parts(whole)["Redis of the pool"]
    # By hand: two epochs, 120 bytes each, of 60% of the memory; and 13 us more to cut each.
    assert waits.gigabytes - mixed.gigabytes == pytest.approx(2 * 1e8 * 120 / 1e9 / 0.6)
    assert waits.cores - mixed.cores == pytest.approx(3e8 / 86_400 * 13e-6 / 0.6)
    assert waits.why == "memory"
    assert largest_crowd([DAILY], MACHINE, 1) is None
    crowd = largest_crowd([DAILY, replace(whole, a_day=1e6), whole], MACHINE, 2)
    assert crowd is not None
    assert (crowd.reports, crowd.machine_fits) == (1e8, False)
    assert crowd.count_seconds == pytest.approx(1e8 * 49e-6 / (2 * 4 * 0.6))
    spread = largest_crowd([whole], MACHINE, 2, nodes=4)
    assert spread is not None
    assert spread.gigabytes == pytest.approx(crowd.gigabytes / 4)
    assert spread.cut_seconds == pytest.approx(crowd.cut_seconds / 4)
    assert spread.machine_fits
    hourly = largest_crowd([replace(whole, epoch_seconds=3600)], MACHINE, 2)
    assert hourly is not None
    assert hourly.machine_fits


def test_plan_capacity_shows_the_needs_of_the_largest_crowd(
    tmp_path: Path, capsys: Capture
) -> None:
    metric = metric_toml(
        "theme",
        mechanism="auto",
        values=["light", "dark", "system"],
        central_epsilon=1.0,
        crowd=30000,
        lifetime_epsilon=500.0,
    )
    (tmp_path / "metrics.toml").write_text(catalog_toml(metric))
    arguments = ["plan", "capacity", str(tmp_path / "metrics.toml"), "--devices", "1e9"]
    out = " ".join(output_of(capsys, *arguments).split())
    assert "the largest crowd has 1,000,000,000 reports" in out
    assert "one Redis must hold it, and 16 GB, used to 60%, are too few" in out
    document = document_of(capsys, *arguments, "--format", "json")["largest_crowd"]
    assert document["reports"] == pytest.approx(1e9)


def test_x_wing_reports_take_longer_to_open_and_more_memory() -> None:
    hybrid = replace(DAILY, sealed_bytes=1138, kem="x-wing")
    mixed, plain = _parts(DAILY, hybrid), _parts(DAILY, DAILY)
    # By hand: 1e8 a day of each, 3 times the average, 60% used.
    more = (COSTS.x_wing_us - COSTS.open_us) / 1e6
    extra = mixed["aggregator"].cores - plain["aggregator"].cores
    assert extra == pytest.approx(3e8 / 86_400 * more / 0.6)
    pool = "Redis of the pool"
    waiting = 3600 * 3e8 / 86_400
    assert mixed[pool].gigabytes - plain[pool].gigabytes == pytest.approx(
        waiting * 1088 / 1e9 / 0.6
    )


def test_the_command_counts_a_catalogs_limits_and_names_the_bottleneck(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    arguments = ["plan", "capacity", str(tmp_path / "metrics.toml"), "--devices", "1e6"]
    document = document_of(capsys, *arguments, "--format", "json")
    # theme once a day, homepage a hundred times, crashed three times an hour, editor once a week.
    assert document["reports_a_day"] == pytest.approx(1e6 * (1 + 100 + 72 + 1 / 7))
    assert document["bottleneck"] in {need["part"] for need in document["needs"]}
    out = output_of(capsys, *arguments, "--metric", "theme")
    assert "1,000,000 reports a day" in out
    assert "in all 8 machines" in " ".join(out.split())
    assert "this load fits on one such machine; the others allow one to fail" in out
    assert "bottleneck: " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--devices", "0"], "--devices 0 is outside [1, 100,000,000,000]"),
        (["--peak", "nan"], "--peak nan is outside [1, 24]"),
        (["--machine-gb", "0"], "--machine-gb 0 is outside"),
        (["--per-day", "-1"], "--per-day -1 is outside"),
        (["--cluster-nodes", "0"], "--cluster-nodes 0 is outside"),
        (["--cluster-nodes", "3"], "--cluster-nodes spreads the epochs of crowds"),
        (["--per-visit", "0.5"], "--per-visit 0.5 is outside"),
    ],
)
def test_impossible_numbers_are_refused(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    assert message in refusal_of(capsys, "plan", "capacity", "--per-day", "1", *arguments)


def test_the_table_of_the_runbook_is_what_the_command_says(capsys: Capture) -> None:
    text = (ROOT / "docs" / "operate" / "size.md").read_text()
    rows = re.findall(r"^\| ([\d,]+) \| (hour|day) \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) >= 6
    for a_day, epoch, cells in rows:
        devices = a_day.replace(",", "")
        arguments = ["plan", "capacity", "--devices", devices, "--per-day", "1", "--epoch", epoch]
        document = document_of(capsys, *arguments, "--format", "json")
        expected = [f"{document['peak_reports_a_second']:,.0f}"]
        expected += [f"{need['machines']}" for need in document["needs"]]
        expected += [f"{document['bottleneck']}, {document['why']}"]
        assert cells.split(" | ") == expected
