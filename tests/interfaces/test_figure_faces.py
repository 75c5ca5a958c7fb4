"""Figures of a device's own past: the same from every face, and as the page draws them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

import hubbub.notebook
from hubbub.analysis.funnels_retention_and_rates import UNFINISHED
from hubbub.cli.main import main
from hubbub.epochs import epoch_date
from tests.interfaces.browser import Watched
from tests.support import web
from tests.support.bundles import DAY
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import Capture, document_of, output_of, refusal_of
from tests.support.pages import EPOCH, page_of
from tests.support.pasted_code import in_notebook


def _metric(name: str, mechanism: str, more: str, epoch: str = "day") -> str:
    return metric_toml(
        name, more, mechanism=mechanism, epoch=epoch, epsilon=4.0, lifetime_epsilon=5000.0
    )


CATALOG = catalog_toml(
    *(
        _metric(name, "auto" if "rate =" in more else "grr", more, epoch)
        for name, epoch, more in (
            ("checkout", "day", 'kind = "funnel"\nsteps = ["visit", "cart", "paid"]'),
            ("crashes", "day", 'rate = { of = "crashed", per = "started", most = 20 }'),
            ("use", "day", 'kind = "activity"\nbreakdown = { os = ["linux", "macos", "haiku"] }'),
            ("comeback", "week", 'kind = "retention"\nweeks = 2'),
            ("lately", "week", 'kind = "retention"\nweeks = 2'),
            ("theme", "day", 'values = ["light", "dark"]'),
        )
    )
)
WEEK = EPOCH // 7
WEEKS: list[dict[Any, int]] = [
    {0: 4000, 1: 0, 2: 0, 3: 2000},
    {0: 3000, 1: 1600, 2: 0, 3: 2000},
    {0: 5000, 1: 1200, 2: 800, 3: 2000},
]
LATELY: list[dict[Any, int]] = [*WEEKS[:2], {0: 500, 1: 100, 2: 300, 3: 200}]
"""The third week still accepts reports, of which most are missing."""
DAYS: list[dict[Any, int]] = [{0: 1000, 1: 600, 2: 400}, {0: 1500, 1: 500, 2: 0}]
TRUE_COUNTS: dict[str, Any] = {
    "checkout": [{0: 3000, 1: 1500, 2: 500}, {0: 3000, 1: 1500, 2: 500}],
    "crashes": {(4.0, 16.0): 5000, (0.0, 10.0): 5000},
    "use@os=linux": DAYS,
    "use@os=macos": DAYS,
    "use@os=haiku": {0: 20, 1: 10, 2: 10},
    "comeback": WEEKS,
    "lately": LATELY,
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
    "lately": {"back in week 1": 1600 / 4000, "back in week 2": 300 / 4000},
}

# Of coins that make more devices than there are.
SEED_ABOVE = 0


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("figures")
    earlier = {"comeback": EPOCH - WEEK + 3, "lately": EPOCH - WEEK + 2, "checkout": 5}
    with page_of(folder, CATALOG, TRUE_COUNTS, seed=5, earlier=earlier) as page_url:
        yield page_url


@pytest.mark.parametrize("metric", [*TRUTHS, "use"])
def test_figures_are_the_same_from_every_face(address: str, capsys: Capture, metric: str) -> None:
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
    axes = answer.plot()
    assert len(axes.patches) == len(axes.get_yticklabels()) > 0
    assert axes.get_xlabel() in {"share", "rate", "devices"}
    words = ["figures", metric, "--epochs", "all", "--url", address]
    assert document_of(capsys, *words, "--format", "json") == by_http
    lines = output_of(capsys, *words, "--format", "csv").splitlines()
    assert len(lines) == len(by_http["values"]) + 1
    downloaded = web.get(f"{address}/v1/metrics/{metric}/export", params=span).text.splitlines()
    assert downloaded == lines
    output = output_of(capsys, *words)
    for row in by_http["values"]:
        assert row["figure"] in output
        assert row["note"] in output
        assert row["figure"] in answer._repr_html_()


@pytest.mark.parametrize("lacking", ["anytime=true", "percentile=50", "below=1"])
def test_an_export_of_figures_refuses_what_figures_lack(address: str, lacking: str) -> None:
    response = web.get(f"{address}/v1/metrics/use/export?{lacking}")
    assert response.status_code == 400
    assert lacking.partition("=")[0] in response.json()["detail"]
    refused = web.get(f"{address}/v1/metrics/use/estimates?percentile=50").json()["detail"]
    assert refused.endswith('leave "percentile" out; it has figures: hubbub figures use')


def test_active_devices_are_counted_in_running_and_complete_windows(address: str) -> None:
    """Day 19,999 begins a week, of which two days are here; the newer one accepts reports."""
    rows = web.get(f"{address}/v1/metrics/use/figures").json()["values"]
    newest, *_ = (row["reports"] for row in rows if row["figure"] == "actives of a day")
    assert newest == 2 * 2000 + 40
    truths = {"actives of 28 days": 2 * 400 + 10, "actives of a week": 2 * 1500 + 20}
    for row in rows[:2]:
        assert abs(row["estimate"] - truths[row["figure"]]) < 2.5 * (row["high"] - row["low"]) / 2
    notes = ["running: 2 of 28 days", "running: 2 of 7 days", UNFINISHED, ""]
    assert [row["note"] for row in rows] == notes
    assert all(row["low"] == row["estimate"] == row["high"] for row in rows[2:])


def test_an_interval_without_an_upper_end_is_printed_without_it(
    tmp_path: Path, capsys: Capture
) -> None:
    catalog = CATALOG.replace("min_batch = 100", "min_batch = 10")
    people: dict[str, dict[Any, int]] = {"crashes": {(1.0, 1.0): 12}}
    with page_of(tmp_path, catalog, people, seed=1) as page_url:
        (row,) = web.get(f"{page_url}/v1/metrics/crashes/figures").json()["values"]
        assert row["high"] is None
        assert main(["figures", "crashes", "--url", page_url]) == 0
    assert " or more" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("metric", "value", "figure"),
    [("use", "first in its 28 days", "actives of 28 days"), ("checkout", "paid", "visit to paid")],
)
def test_an_estimate_above_all_reports_agrees_in_list_and_figures(
    tmp_path: Path, metric: str, value: str, figure: str
) -> None:
    """Estimates are never moved to a possible number, since their sums would be biased."""
    catalog = CATALOG.replace("min_batch = 100", "min_batch = 10").replace("= 4.0", "= 1.0")
    with page_of(tmp_path, catalog, {metric: {2: 40}}, seed=SEED_ABOVE) as page_url:
        listed = web.get(f"{page_url}/v1/metrics/{metric}/estimates").json()
        figures = web.get(f"{page_url}/v1/metrics/{metric}/figures").json()
        top = web.get(f"{page_url}/v1/metrics/{metric}/top").json()
        trend = web.get(f"{page_url}/v1/metrics/{metric}/trend").json()
    (row,) = (row for row in listed["values"] if row["value"] == value)
    (figure_row,) = (
        figure_row for figure_row in figures["values"] if figure_row["figure"] == figure
    )
    assert row["share"] > 1
    unit = 1 if metric == "use" else 40
    assert figure_row["estimate"] * unit == pytest.approx(row["estimate"])
    assert figure_row["high"] * unit == row["high"] == 40
    assert figures["notes"][0].startswith("An estimate outside its interval is no mistake: the")
    for answer in (top, trend):
        assert answer["notes"][0].startswith("A share below 0 or above 100% is no mistake: the")
        assert "in 40 reports" in answer["notes"][0]


def test_counts_of_a_rate_have_intervals_inside_their_range(
    tmp_path: Path, capsys: Capture
) -> None:
    catalog = CATALOG.replace("min_batch = 100", "min_batch = 10")
    days: list[dict[Any, int]] = [{(0.0, 20.0): 60}, {(0.0, 20.0): 60}]
    with page_of(tmp_path, catalog, {"crashes": days}, seed=5) as page_url:
        path = f"{page_url}/v1/metrics/crashes"
        estimates = web.get(f"{path}/estimates", params={"epochs": "all"}).json()
        trend = web.get(f"{path}/trend", params={"epochs": "all"}).json()
        assert main(["query", "crashes", "--epochs", "all", "--url", page_url]) == 0
    points = [point for line in trend["series"] for point in line["points"]]
    assert len(points) == 4
    for row in (*estimates["values"], *points):
        assert 0 <= row["low"] <= row["high"] <= 20
    assert (estimates["lowest"], estimates["highest"]) == (0, 20)
    output = capsys.readouterr().out
    assert "Counts from 0 to 20: a device reports a larger count as 20." in output
    assert "long" not in output


def test_ended_arms_are_compared_with_their_former_weights(tmp_path: Path) -> None:
    text = 'shuffler = "127.0.0.1:1"\n[experiments.menu]\narms = { control = 0, new = 1 }\n'
    more = 'kind = "boolean"\nexperiment = "menu"'
    text += _metric("saved", "rr", more)
    people: dict[str, dict[Any, int]] = {
        "saved@menu=control": {0: 2500, 1: 2500},
        "saved@menu=new": {0: 2000, 1: 3000},
    }
    with page_of(tmp_path, text, people, seed=3) as page_url:
        answer = web.get(f"{page_url}/v1/experiments/menu").json()
        parts = web.get(f"{page_url}/v1/metrics/saved/breakdown").json()
    (stopped := tmp_path / "stopped").mkdir()
    text, people["saved"] = text.replace("control = 0", "control = 1"), {0: 5000}
    with page_of(stopped, text, people, seed=3) as page_url:
        [_, note] = web.get(f"{page_url}/v1/metrics/saved/breakdown").json()["notes"]
    assert note.startswith("Reports in no arm (unlisted) are older than the experiment")
    assert (answer["over"], answer["ratio_p_value"], answer["ratio_fits"]) == (True, None, True)
    assert "do not fit their weights" not in answer["verdict"] + answer["sizes"]
    for text in (answer["verdict"], parts["notes"][1]):
        assert text.startswith('The experiment "menu" is over: devices get new, and new reports')
        assert "are in no arm (unlisted); to compare arms again, begin an experiment" in text


def test_a_breakdown_names_parts_without_an_answer(address: str) -> None:
    answer = web.get(f"{address}/v1/metrics/use/figures", params={"by": "os"}).json()
    assert {row["part"] for row in answer["values"]} == {"linux", "macos"}
    assert answer["notes"] == ["haiku: 40 reports, below the minimum batch of 100"]


def test_cohorts_are_of_a_first_week_each(address: str) -> None:
    answer = web.get(f"{address}/v1/metrics/comeback/figures", params={"cohorts": True}).json()
    truths = [1600 / 4000, 1200 / 3000, 800 / 4000]
    for row, truth in zip(answer["values"], truths, strict=True):
        assert abs(row["estimate"] - truth) < 2.5 * (row["high"] - row["low"]) / 2


def test_a_week_that_accepts_reports_is_left_out_or_has_a_note(address: str) -> None:
    whole, open_week = web.get(f"{address}/v1/metrics/lately/figures").json()["values"]
    assert (whole["reports"], whole["note"]) == (6000 + 6600, "")
    assert (open_week["reports"], open_week["note"]) == (6000 + 1100, UNFINISHED)
    rows = web.get(f"{address}/v1/metrics/lately/figures", params={"cohorts": True}).json()
    assert [row["note"] for row in rows["values"]] == ["", UNFINISHED, UNFINISHED]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["theme"], 'metric "theme" has no figures'),
        (["checkout", "--cohorts"], 'metric "checkout" of kind funnel has no cohorts'),
        (["checkout", "--by", "os"], 'kind = "funnel" can have none: leave "by" out'),
        (["use", "--by", "oss"], '(public fields: os; experiment: none); did you mean "os"?'),
        (["comeback", "--epochs", str(WEEK - 3)], "has 100 reports or more; wait, or"),
    ],
)
def test_figures_of_other_metrics_are_refused_with_the_right_command(
    address: str, capsys: Capture, words: list[str], message: str
) -> None:
    error = refusal_of(capsys, "figures", *words, "--url", address)
    assert message in error
    if words == ["theme"]:
        assert "request its estimates: hubbub query theme" in error


@pytest.mark.parametrize(
    "metric",
    [
        "checkout",
        *(pytest.param(name, marks=pytest.mark.thorough) for name in (*TRUTHS, "use")[1:]),
    ],
)
def test_the_page_draws_figures_with_their_intervals(
    context: BrowserContext, address: str, metric: str
) -> None:
    with Watched(context, clean=metric not in {"comeback", "lately", "use"}) as watched:
        page = watched.open(f"{address}/metric?name={metric}&epochs=all")
        section = page.locator("#figures")
        expect(section.locator("tbody tr").first).to_be_visible()
        number = section.locator("tbody tr").count()
        assert section.locator("g.row").count() == number
        assert section.locator("path.whisker").count() <= number


@pytest.mark.thorough
def test_the_page_takes_along_the_figures_that_it_shows(watched: Watched, address: str) -> None:
    page = watched.open(f"{address}/metric?name=lately")
    shown_rows = page.locator("#figures tbody tr")
    expect(shown_rows.first).to_be_visible()
    expect(page.locator("#commands")).to_contain_text("..")
    with page.expect_response("**/export?**") as exported:
        page.get_by_role("button", name="Download CSV").click()
    assert len(web.get(exported.value.url).text.splitlines()) == shown_rows.count() + 1


@pytest.mark.thorough
def test_a_retention_in_its_first_week_names_the_day_of_its_first_shares(
    context: BrowserContext,
    tmp_path: Path,
) -> None:
    people = {"comeback": WEEKS[:1]}
    with (
        page_of(tmp_path, CATALOG, people, seed=5, earlier={"comeback": EPOCH - WEEK}) as page_url,
        Watched(context, clean=False) as watched,
    ):
        page = watched.open(f"{page_url}/metric?name=comeback&epochs=all")
        expect(page.locator("#figured")).to_contain_text("come back yet: only the week of")
        expect(page.locator("#figured h3")).to_have_text("Too few epochs")
        assert page.locator("#table tbody tr").count() == len(WEEKS[0])


def test_a_rehearsal_shows_figures_beside_the_true_ones(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    (tmp_path / "values.csv").write_text("week 0,2000\nweek 1,800\nweek 2,500\nlater,700\n")
    words = f"--catalog {tmp_path}/metrics.toml --values {tmp_path}/values.csv --epochs 4"
    run = f"simulate comeback {words} --runs 4 --seed 1"
    document = document_of(capsys, *run.split(), "--json")
    for row in (row for one_run in document["runs"] for row in one_run["figures"]):
        assert row["true"] == {"back in week 1": 0.4, "back in week 2": 0.25}[row["figure"]]
        assert abs(row["estimate"] - row["true"]) < 2.5 * (row["high"] - row["low"]) / 2
    assert document["summary"]["coverage_figures"] > 0.5
    assert "intervals that contain the true figure:" in output_of(capsys, *run.split())


@pytest.mark.parametrize(
    ("question", "people", "message"),
    [
        ("crashes", "crashed,started,count\n3,9,1000\n-1,3,1\n", "line 3: its value is not"),
        ("crashes", "crashed,started,count\n3,0,1000\n", "the rate of metric"),
        ("use --epochs 2", "first in its 28 days,900\n", "rehearsed over one day"),
        ("comeback", "week 0,900\nweek 1,400\n", "give --epochs 2 or more"),
    ],
)
def test_people_without_a_true_figure_are_refused(
    tmp_path: Path, capsys: Capture, question: str, people: str, message: str
) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    (tmp_path / "people.csv").write_text(people)
    words = f"--catalog {tmp_path}/metrics.toml --values {tmp_path}/people.csv --runs 1"
    assert message in refusal_of(capsys, "simulate", *question.split(), *words.split())


def test_a_rehearsed_rate_counts_events_up_to_the_most_of_a_device(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    (tmp_path / "people.csv").write_text("crashed,started,count\n5,100,1000\n")
    words = f"--catalog {tmp_path}/metrics.toml --values {tmp_path}/people.csv --runs 1 --json"
    (run,) = document_of(capsys, "simulate", "crashes", *words.split())["runs"]
    assert [row["true"] for row in run["figures"]] == [5 / 20]


def test_a_plan_of_a_retention_counts_its_weeks_separately(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "metrics.toml").write_text(CATALOG)

    def error(*words: str) -> float:
        options = ["--metric", *words, "--ratio", "0.1", "0.25", "--reports", "9000"]
        assert main(["plan", str(tmp_path / "metrics.toml"), *options, "--format", "json"]) == 0
        planned: float = json.loads(capsys.readouterr().out)["ratio_error"]
        return planned

    assert error("comeback") == error("comeback", "--apart")
    assert error("checkout") != error("checkout", "--apart")
    assert main(["plan", str(tmp_path / "metrics.toml"), "--metric", "comeback"]) == 2
    assert "epsilon is that of the metric" in capsys.readouterr().err


def test_a_page_offers_the_commands_of_figures(address: str) -> None:
    offered = web.get(f"{address}/v1/metrics/comeback/commands", params={"anytime": True}).json()
    assert offered["shell"].startswith("hubbub figures comeback --epochs=")
    assert ".figures('comeback'" in offered["notebook"]
    by_http = web.get(f"{address}/v1/metrics/comeback/figures").json()
    assert in_notebook(offered["notebook"])["values"] == by_http["values"]


def test_a_retention_of_one_week_offers_its_estimates(address: str) -> None:
    metric = f"{address}/v1/metrics/comeback"
    weeks = web.get(f"{metric}/estimates", params={"epochs": "all"}).json()["epochs"]
    week = {"epochs": str(weeks[0])}
    assert web.get(f"{metric}/figures", params=week).json()["title"] == "TooFewEpochs"
    offered = web.get(f"{metric}/commands", params=week).json()
    assert offered["shell"].startswith("hubbub query comeback --epochs=")
    answer = web.get(f"{metric}/estimates", params={**week, "order": "listed"}).json()
    assert in_notebook(offered["notebook"])["values"] == answer["values"]
    assert len(web.get(f"{metric}/export", params=week).text.splitlines()) == 1 + 4


def test_funnels_and_rates_are_compared_by_the_arms_of_an_experiment(tmp_path: Path) -> None:
    catalog = 'shuffler = "127.0.0.1:1"\n[experiments.menu]\narms = { control = 1, new = 1 }\n'
    catalog += _metric(
        "signup",
        "grr",
        'kind = "funnel"\nsteps = ["visit", "cart", "paid"]\nexperiment = "menu"',
    )
    catalog += _metric(
        "errors",
        "auto",
        'rate = { of = "failed", per = "tried", most = 20 }\nexperiment = "menu"',
    )
    people: dict[str, dict[Any, int]] = {
        "signup@menu=control": {0: 3000, 1: 1500, 2: 500},
        "signup@menu=new": {0: 2000, 1: 1500, 2: 1500},
        "errors@menu=control": {(2.0, 10.0): 5000},
        "errors@menu=new": {(8.0, 10.0): 5000},
    }
    truths = {
        ("signup", "visit to paid"): {"control": 500 / 5000, "new": 1500 / 5000},
        ("errors", "failed per tried"): {"control": 0.2, "new": 0.8},
    }
    earlier = {"signup@menu=control": 3, "signup@menu=new": 3}
    with page_of(tmp_path, catalog, people, seed=3, earlier=earlier) as page_url:
        for (metric, figure), by_arm in truths.items():
            answer = web.get(f"{page_url}/v1/metrics/{metric}/figures", params={"by": "menu"})
            figure_rows = [row for row in answer.json()["values"] if row["figure"] == figure]
            assert {row["part"] for row in figure_rows} == {*by_arm}
            for row in figure_rows:
                far = 2.5 * (row["high"] - row["low"]) / 2
                assert abs(row["estimate"] - by_arm[row["part"]]) < far
        effects = web.get(f"{page_url}/v1/experiments/menu").json()
    assert not effects["unanswered"]
    rows = {(row["metric"], row["measure"]): row for row in effects["values"]}
    steps = ("visit to cart", "cart to paid", "visit to paid")
    assert rows.keys() == {
        *(("signup", f"share from {step}") for step in steps),
        ("errors", "failed per tried"),
    }
    for row, truth in (
        (rows["signup", "share from visit to paid"], 0.2),
        (rows["errors", "failed per tried"], 0.6),
    ):
        assert row["shown"]
        assert row["low"] <= truth <= row["high"]
    assert effects["dates"] == "..".join(epoch_date(day, DAY) for day in (EPOCH - 3, EPOCH))
