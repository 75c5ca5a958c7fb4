"""`hubbub simulate` over days: a column day, and persons of whom each reports on one of them."""

from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from hubbub.cli.main import main
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import Capture, document_of

pytestmark = pytest.mark.thorough

PERIOD = 'period = "30d"\nreport_on = "one day"'
METRICS = (
    ("theme", "grr", 2.0, f'values = ["light", "dark"]\n{PERIOD}'),
    ("daily", "grr", 2.0, 'values = ["light", "dark"]'),
    ("hours", "mean.one_bit", 2.0, f'domain = "number"\nlow = 0\nhigh = 10\n{PERIOD}'),
    ("kept", "long.grr", 1.0, 'permanent_epsilon = 2.0\nvalues = ["light", "dark"]'),
    ("plugins", "privset", 4.0, f'kind = "set"\nvalues = ["git", "vim", "go"]\nmost = 2\n{PERIOD}'),
    (
        "profile",
        "pairs",
        4.0,
        f"""parts.theme = ["light", "dark"]
parts.Person = ["new", "old"]
parts.age = {{ edges = [0, 18, 65] }}
{PERIOD}""",
    ),
    ("weekly", "pairs", 4.0, 'parts = { day = ["work", "free"], theme = ["light", "dark"] }'),
    ("page", "cms", 2.0, 'domain = "string"\nhashes = 16\nwidth = 64'),
)
FIRST = 20_010  # on which a period begins: 2024-10-14
DAYS = 30


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = (
        metric_toml(
            name, more, mechanism=mechanism, epsilon=epsilon, min_batch=20, lifetime_epsilon=500.0
        )
        for name, mechanism, epsilon, more in METRICS
    )
    (tmp_path / "metrics.toml").write_text(catalog_toml(*metrics))
    monkeypatch.chdir(tmp_path)


def _rehearsal_document(
    capsys: Capture, metric: str, lines: list[str], *more: str
) -> dict[str, Any]:
    Path("days.csv").write_text("\n".join(lines) + "\n")
    words = ["simulate", metric, "--values", "days.csv", "--json", "--seed", "1", *more]
    document: dict[str, Any] = document_of(capsys, *words)
    return document


def test_each_day_has_its_truth_beside_estimate_and_line(capsys: Capture) -> None:
    """60,000 people of whom more go dark each day; each reports on one day."""
    lines = ["day,value,count"]
    for day in range(DAYS):
        dark = 12_000 + 600 * day
        lines += [f"{FIRST + day},dark,{dark}", f"{FIRST + day},light,{60_000 - dark}"]
    document = _rehearsal_document(capsys, "theme", lines, "--runs", "4")
    summary = document["summary"]
    assert (document["days"], document["period"], len(document["runs"])) == (DAYS, "30d", 4)
    # 2,000 reports a day at epsilon 2: within a quarter of what theory asks for.
    keep = 0.880797
    theory = sqrt((keep * (1 - keep) / (2 * keep - 1) ** 2 + 0.22) / 2000)
    assert summary["rms_error"] == pytest.approx(theory, rel=0.25)
    assert summary["line_rms_error"] < summary["rms_error"]
    assert summary["coverage"] > 0.9
    assert summary["line_coverage"] > 0.9
    [dark] = [series for series in document["runs"][0]["series"] if series["value"] == "dark"]
    assert [row["true"] for row in dark["rows"]] == [
        pytest.approx(0.2 + 0.01 * day) for day in range(DAYS)
    ]
    reports = [row["reports"] for row in dark["rows"]]
    assert abs(sum(reports) - 60_000) < 6 * sqrt(60_000)


def test_rehearsed_people_report_once_and_absent_ones_are_missed(capsys: Capture) -> None:
    """3,000 people, of whom half are there on every second day alone."""
    lines = ["person,day,value"]
    for person in range(3000):
        for day in range(person % 2, DAYS, 1 + person % 2):
            value = ("light", "dark")[person % 4 < 2]
            lines.append(f"{person},{FIRST + day},{value}")
    document = _rehearsal_document(capsys, "theme", lines, "--runs", "2")
    for run in document["runs"]:
        assert run["reports"] + run["missed"] == 3000
        assert abs(run["missed"] - 750) < 6 * sqrt(1500 / 4)


def test_rehearsed_days_cover_each_value_of_a_set_and_each_cell_of_parts(capsys: Capture) -> None:
    """Truth and answer are of the same value: intervals of one miss in a million hold it."""
    lines = ["count,day,value"]
    for day in range(DAYS):
        git = 12_000 + 600 * day
        lines += [f"{git},{FIRST + day},git|vim", f"{40_000 - git},{FIRST + day},vim"]
        lines += [f"20000,{FIRST + day},"]
    document = _rehearsal_document(
        capsys, "plugins", lines, "--runs", "2", "--confidence", "0.999999"
    )
    shares = {series["value"]: series["rows"] for series in document["runs"][0]["series"]}
    for day in range(DAYS):
        assert shares["git"][day]["true"] == pytest.approx(0.2 + 0.01 * day)
        assert shares["vim"][day]["true"] == pytest.approx(2 / 3)
        assert shares["go"][day]["true"] == 0
    assert document["summary"]["coverage"] > 0.99
    assert document["people_above_most"] == 0
    # Of parts by person: who is old goes dark; a column `Person` is a part, and `person` who it is.
    lines = ["Day,theme,Person,age,person"]
    for person in range(6000):
        theme, new, age = ("dark", "old", 40) if person % 4 else ("light", "new", 7)
        lines += [f"{FIRST + day},{theme},{new},{age},{person}" for day in range(0, DAYS, 3)]
    document = _rehearsal_document(
        capsys, "profile", lines, "--runs", "2", "--confidence", "0.999999"
    )
    shares = {series["value"]: series["rows"] for series in document["runs"][0]["series"]}
    assert len(shares) == 3 * 2 * 2
    assert all(row["true"] == 0.75 for row in shares["theme=dark, Person=old"])
    assert all(row["true"] == 0.25 for row in shares["Person=new, age=below 18"])
    assert document["summary"]["coverage"] > 0.99
    assert 0 < document["runs"][0]["missed"] < 6000


def test_a_part_named_day_is_not_taken_for_a_day(capsys: Capture) -> None:
    document = _rehearsal_document(
        capsys, "weekly", ["day,theme,count", "work,dark,3000"], "--runs", "2"
    )
    assert "days" not in document
    assert document["people"] == 3000


def test_a_rehearsal_of_days_names_too_large_sets_too(capsys: Capture) -> None:
    lines = ["day,value,count"]
    for day in range(DAYS):
        lines += [f"{FIRST + day},git|vim|go,15000", f"{FIRST + day},vim,45000"]
    Path("days.csv").write_text("\n".join(lines))
    assert main(["simulate", "plugins", "--values", "days.csv", "--runs", "1", "--seed", "3"]) == 0
    output = capsys.readouterr().out
    assert "25.0% of the people hold more than most = 2" in output
    assert "raise most, to 3 at most" in output


def test_dates_means_and_daily_reports_are_rehearsed_too(capsys: Capture) -> None:
    dates = [f"2024-10-{day}" for day in range(14, 28)]
    daily = [f"{date},{value},500" for date in dates for value in ("light", "dark")]
    document = _rehearsal_document(capsys, "daily", ["day,value,count", *daily], "--runs", "2")
    assert document["runs"][0]["reports"] == 14 * 1000
    assert document["runs"][0]["series"][0]["rows"][0]["date"] == "2024-10-14"
    numbers = [f"{date},{number},20000" for date in dates for number in ("2", "6.5")]
    document = _rehearsal_document(capsys, "hours", ["day,value,count", *numbers], "--runs", "2")
    [series] = document["runs"][0]["series"]
    assert {row["true"] for row in series["rows"]} == {4.25}


def test_people_read_days_lines_and_steps(capsys: Capture) -> None:
    lines = ["day,value,count"]
    for day in range(DAYS):
        dark = 10_000 + 20_000 * (day >= 15)
        lines += [f"{FIRST + day},dark,{dark}", f"{FIRST + day},light,{60_000 - dark}"]
    Path("days.csv").write_text("\n".join(lines))
    assert main(["simulate", "theme", "--values", "days.csv", "--runs", "2", "--seed", "3"]) == 0
    output = capsys.readouterr().out
    assert "theme: dark; the last run" in output
    assert "a step of +3" in output
    assert "on 2024-10-29" in output
    assert "lines: off by 0." in output


@pytest.mark.parametrize(
    ("metric", "lines", "more", "message"),
    [
        ("theme", ["day,value,person,count", "1,dark,2,3"], "", "line 1: write the header day"),
        ("profile", ["day,value", "1,dark"], "", "the header day,theme,Person,age, and person"),
        (
            "profile",
            ["day,theme,Person,age", "1,dark,old,x"],
            "",
            "line 2: write a day that exists, a value",
        ),
        ("plugins", ["day,value", "1,git|emacs"], "", "line 2: write a day that exists, a value"),
        ("theme", ["day,day,value", "1,2,dark"], "", "line 1: write the header day,value"),
        (
            "theme",
            ["day,value", "1,blue"],
            "",
            "line 2: write a day that exists, a value of metric",
        ),
        ("theme", ["day,value", "2024-13-01,dark"], "", "line 2: write a day"),
        ("theme", ["day,value", "1"], "", "line 2: write a day"),
        ("theme", ["day,value"], "", "write lines of 1 to 1,000 days"),
        ("theme", ["day,value", "1,dark", "2000,dark"], "", "write lines of 1 to 1,000 days"),
        ("theme", ["day,value,person", "1,dark,7", "1,light,7"], "", "occurs twice on one day"),
        ("theme", ["day,value", "1,dark"], "", "1 day together: at most"),
        (
            "theme",
            ["day,value,count", *(f"{day},dark,100" for day in range(30))],
            "",
            "30 days together: at most",
        ),
        ("theme", ["day,value", "1,dark"], "--epochs 3", "--epochs is only for files without"),
        ("kept", ["day,value", "1,dark"], "", "a permanent response is only rehearsed"),
        (
            "page",
            ["day,value", "1,dark"],
            "",
            'a column "day" needs epoch = "day" and listed values',
        ),
    ],
)
def test_an_impossible_rehearsal_is_refused_with_the_remedy(
    metric: str,
    lines: list[str],
    more: str,
    message: str,
    capsys: Capture,
) -> None:
    Path("days.csv").write_text("\n".join(lines) + "\n")
    assert main(["simulate", metric, "--values", "days.csv", "--runs", "2", *more.split()]) != 0
    assert message in capsys.readouterr().err
