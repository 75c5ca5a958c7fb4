"""Every face tells the same numbers, to the last digit; and the numbers are near the truth."""

import csv
import io
import json
import re
from typing import Any

import pytest
from pyarrow import parquet

import hubbub.notebook
from hubbub.cli.main import main
from hubbub.errors.message_words import at_most
from tests.interfaces.browser import Watched
from tests.interfaces.running_aggregator import DAYS, STRINGS, House
from tests.support import web
from tests.support.commands import Capture, document_of, output_of, refusal_of

QUESTIONS: list[tuple[str, dict[str, str], list[str]]] = [
    ("theme", {}, []),
    ("theme", {"last": "7d"}, []),
    ("theme/0.5", {"epochs": "all"}, []),
    ("launches", {"epochs": "all"}, []),
    ("seconds", {}, []),
    ("hostile", {}, []),
    ("homepage", {"last": "3"}, STRINGS),
]


def _ask(
    home: House, metric: str, question: str, parameters: dict[str, Any], strings: list[str]
) -> dict[str, Any]:
    name, _, tier = metric.partition("/")
    query = {**parameters, **({"tier": tier} if tier else {})}
    url = f"{home.page}/v1/metrics/{name}/{question}"
    answer = (
        web.post(url, params=query, json={"candidates": strings})
        if strings
        else web.get(url, params=query)
    )
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def _command(home: House, capsys: Capture, words: list[str], strings: list[str]) -> str:
    where = ["--url", home.page]
    more = ["--candidates", str(home.signed.path.with_name("strings.txt"))] if strings else []
    home.signed.path.with_name("strings.txt").write_text("\n".join(STRINGS))
    assert main([*words, *more, *where]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("metric", ["theme", "seconds", "hostile"])
def test_a_guarantee_is_one_figure_in_every_face(home: House, metric: str, capsys: Capture) -> None:
    catalog = str(home.signed.path.with_name("metrics.toml"))
    cards = document_of(capsys, "privacy", "card", catalog, "--format", "json")["metrics"]
    [card] = [card for card in cards if card["name"] == metric]
    detail = web.get(f"{home.page}/v1/metrics/{metric}").json()["shuffled"]
    promised = _ask(home, metric, "estimates", {}, [])["promised"]
    assert card["shuffled"]["epsilon_central"] == detail["epsilon"]
    assert detail == promised
    assert card["rests_on"] == promised["rests_on"]
    epsilon = at_most(promised["epsilon"], ".3f")
    guarantee = f"epsilon {epsilon} at delta 1e-08. {promised['rests_on']}"
    assert guarantee in _command(home, capsys, ["query", metric], [])
    output = output_of(capsys, "privacy", "card", catalog)
    assert f"{metric}, shuffled: {promised['rests_on']}" in output
    assert re.search(rf"{metric} .* {epsilon} ", output)


def test_the_page_rounds_bounds_up_as_the_command_line_does(home: House, watched: Watched) -> None:
    page = watched.open(f"{home.page}/metric?name=theme")
    script = "(a) => import('/static/shell.js').then(({ atMost }) => atMost(...a))"
    for bound in (0.1 + 0.2, 2.7181, 0.013001, 4.0):
        assert page.evaluate(script, [bound, 3]) == at_most(bound, ".3g")
        assert page.evaluate(script, [bound]) == at_most(bound, ".3f")


def test_means_have_unit_range_and_a_note_on_their_limits(home: House, capsys: Capture) -> None:
    answer = _ask(home, "seconds", "estimates", {}, [])
    assert (answer["unit"], answer["lowest"], answer["highest"]) == ("s", 0, 600)
    output = _command(home, capsys, ["query", "seconds"], [])
    assert "95% interval (s)" in output
    assert "Numbers from 0 to 600 s: devices report no others." in output
    assert "How they are spread is not known" in output
    assert "mean (s)" in _command(home, capsys, ["trend", "seconds"], [])
    assert "difference (s)" in _command(home, capsys, ["compare", "seconds"], [])
    ranges = _command(home, capsys, ["query", "launches", "--epochs", "closed"], [])
    assert "value (h)" in ranges
    assert "95% interval (h)" not in ranges, "which is of reports"
    assert re.search(r"^mean [\d.]+ h, ", ranges, re.MULTILINE)
    assert "each number counts as the middle of its range" in ranges
    [line] = [
        metric
        for metric in web.get(f"{home.page}/v1/metrics").json()["metrics"]
        if metric["name"] == "seconds"
    ]
    assert (line["unit"], line["lowest"], line["highest"]) == ("s", 0, 600)
    info = 'hubbub_metric_info{kind="mean",metric="seconds",unit="s"} 1.0'
    assert info in web.get(f"{home.page}/metrics").text
    notebook = hubbub.notebook.connect(home.page).estimates("seconds")._repr_html_()
    assert "<th>estimate (s)</th>" in notebook
    assert "How they are spread is not known" in notebook


def test_facts_are_the_same_from_every_face(home: House) -> None:
    metrics = web.get(f"{home.page}/v1/metrics").json()["metrics"]
    notebook = hubbub.notebook.connect(home.page).metrics()
    assert [metric["facts"] for metric in metrics] == [metric["facts"] for metric in notebook]
    assert metrics[0]["facts"][0] == {
        "field": "owner",
        "label": "asked by",
        "text": "desktop@example.org",
    }


@pytest.mark.parametrize(("metric", "span", "strings"), QUESTIONS)
def test_estimates_are_the_same_from_every_face(
    home: House,
    capsys: Capture,
    metric: str,
    span: dict[str, str],
    strings: list[str],
) -> None:
    by_http = _ask(home, metric, "estimates", {**span, "order": "listed", "number": 1000}, strings)
    asking: Any = hubbub.notebook.connect(home.page)
    notebook = asking.estimates(metric, **span, candidates=strings)
    assert notebook.document == by_http
    options = [part for name, value in span.items() for part in (f"--{name}", value)]
    words = ["query", metric, *options, "--format"]
    assert json.loads(_command(home, capsys, [*words, "json"], strings)) == by_http
    rows = list(csv.DictReader(io.StringIO(_command(home, capsys, [*words, "csv"], strings))))
    assert len(rows) == len(by_http["values"])
    for row, value in zip(rows, by_http["values"], strict=True):
        for name in ("estimate", "stderr", "low", "high", "share", "rank"):
            assert (float(row[name]) if row[name] else None) == value[name]
        assert (value["rank"] is None) == (by_http["kind"] == "mean")


def test_exports_hold_the_same_numbers_and_no_formula(home: House) -> None:
    answer = _ask(home, "hostile", "estimates", {"number": 100, "order": "listed"}, [])
    export = f"{home.page}/v1/metrics/hostile/export"
    text = web.get(export).text
    rows = list(csv.DictReader(io.StringIO(text)))
    packed = web.get(export, params={"format": "parquet"}).content
    table = parquet.read_table(io.BytesIO(packed)).to_pylist()
    assert [row["value"] for row in table] == [value["value"] for value in answer["values"]]
    for row, line, value in zip(rows, table, answer["values"], strict=True):
        assert float(row["low"]) == line["low"] == value["low"]
    assert {row["value"] for row in rows} >= {"'=HYPERLINK(1)"}


def test_a_comparison_is_the_same_on_every_interface_and_finds_the_change(
    home: House, capsys: Capture
) -> None:
    first, last = f"{home.today - DAYS + 1}", f"{home.today}"
    parameters = {"epochs": first, "to_epochs": last, "order": "listed"}
    by_http = _ask(home, "theme", "compare", parameters, [])
    words = ["compare", "theme", "--epochs", first, "--to", last, "--format", "json"]
    assert json.loads(_command(home, capsys, words, [])) == by_http
    notebook = hubbub.notebook.connect(home.page).compare("theme", first, last)
    assert notebook.document == {**by_http, "values": notebook.document["values"]}
    assert sorted(notebook, key=lambda row: row["value"]) == sorted(
        by_http["values"], key=lambda row: row["value"]
    )
    swapped = _ask(home, "theme", "compare", {**parameters, "epochs": last, "to_epochs": first}, [])
    [note] = swapped["notes"]
    assert {**swapped, "notes": []} == by_http
    dates = by_http["before_dates"]
    assert note == f"the range that was named second, {dates}, is earlier, so it comes first"
    changes = {change["value"]: change for change in by_http["values"]}
    # 3,900 of 20,000 moved from light to dark: off by more than 6 standard errors with 2e-9.
    for name, moved in (("light", -0.195), ("dark", 0.195), ("contrast", 0)):
        change = changes[name]
        assert abs(change["difference"] - moved) < 6 * change["stderr"]
        assert change["changed"] is (name != "contrast")


def test_a_comparison_shows_whether_an_epoch_accepts_reports(home: House, capsys: Capture) -> None:
    """Either of them, or both: an epoch takes late reports for two days."""
    for before, after in ((3, 1), (1, 0), (4, 3)):
        first, last = f"{home.today - before}", f"{home.today - after}"
        final = after > 2
        answer = _ask(home, "theme", "compare", {"epochs": first, "to_epochs": last}, [])
        assert answer["final"] is final
        output = _command(home, capsys, ["compare", "theme", "--epochs", first, "--to", last], [])
        notice = "not final: these epochs still accept reports"
        assert (notice in output) is not final
        notebook = hubbub.notebook.connect(home.page).compare("theme", first, last)
        assert (notice in notebook._repr_html_()) is not final


@pytest.mark.parametrize("question", ["top", "trend"])
def test_a_list_and_a_line_show_whether_an_epoch_accepts_reports(
    home: House, capsys: Capture, question: str
) -> None:
    """Any of them: an epoch takes late reports for two days."""
    for newest, final in ((3, True), (1, False)):
        epochs = f"{home.today - 4}..{home.today - newest}"
        assert _ask(home, "theme", question, {"epochs": epochs}, [])["final"] is final
        notice = "not final: these epochs still accept reports"
        output = _command(home, capsys, [question, "theme", "--epochs", epochs], [])
        assert (notice in output) is not final
        notebook = getattr(hubbub.notebook.connect(home.page), question)("theme", epochs=epochs)
        assert (notice in notebook._repr_html_()) is not final


def test_a_cross_table_is_the_same_on_every_interface_and_finds_the_association(
    home: House, capsys: Capture
) -> None:
    parts = {"rows": "country", "columns": "theme"}
    by_http = _ask(home, "profile", "cross", {"epochs": "all", **parts}, [])
    notebook = hubbub.notebook.connect(home.page).cross("profile", "country", "theme", epochs="all")
    assert notebook.document == by_http
    words = ["cross", "profile", "country", "theme", "--epochs", "all"]
    assert json.loads(_command(home, capsys, [*words, "--format", "json"], [])) == by_http
    rows = list(
        csv.DictReader(io.StringIO(_command(home, capsys, [*words, "--format", "csv"], [])))
    )
    assert [float(row["within_low"]) for row in rows] == [
        c["within_low"] for c in by_http["values"]
    ]
    cells = {(cell["row"], cell["column"]): cell for cell in by_http["values"]}
    listed = _ask(home, "profile", "estimates", {"epochs": "all", "order": "listed"}, [])["values"]
    same = {value["value"]: value for value in listed}
    for cell in cells.values():
        assert same[cell["value"]].items() >= {n: cell[n] for n in ("estimate", "low")}.items()
    for (country, theme), true in {
        ("de", "light"): 6 / 8,
        ("fr", "light"): 3 / 7,
        ("it", "dark"): 4 / 5,
    }.items():
        cell = cells[country, theme]
        assert cell["departs"]
        # Five times as wide as 95%: outside with a chance below 1e-6.
        assert abs(cell["within"] - true) < 2.5 * (cell["within_high"] - cell["within_low"])
    association = by_http["association"]
    assert association["p_value"] < 1e-6
    assert 0 < association["low"] < association["cramers_v"] < association["high"] < 1
    assert "country and theme go together (p < 1e-12)" in _command(home, capsys, words, [])
    alone = ["cross", "profile", "new", "theme", "--epochs", "all", "--confidence", "0.999999"]
    assert "no sign that new and theme go together" in _command(home, capsys, alone, [])


@pytest.mark.parametrize(
    ("crossing", "message"),
    [
        (("theme", "a", "b"), "has no parts to cross"),
        (("profile", "theme", "version"), 'version" is not one of its parts: write two of theme'),
        (("profile", "theme", "countri"), '; did you mean "country"?'),
        (("profile", "theme", "theme"), "both parts are theme"),
    ],
)
def test_an_impossible_cross_table_is_refused_with_a_possible_one(
    home: House, capsys: Capture, crossing: tuple[str, str, str], message: str
) -> None:
    metric, rows, columns = crossing
    path = f"{home.page}/v1/metrics/{metric}/cross"
    answer = web.get(path, params={"rows": rows, "columns": columns})
    assert (answer.status_code, message in answer.json()["detail"]) == (400, True)
    assert message in refusal_of(capsys, "cross", metric, rows, columns, "--url", home.page)


def test_estimates_are_near_the_truth(home: House) -> None:
    """Of every kind of metric, 6 standard errors."""
    answer = _ask(home, "theme", "estimates", {"tier": "0.5"}, [])
    assert answer["reports"] == 2000
    for metric, strings in (("theme", []), ("hostile", []), ("homepage", STRINGS)):
        answer = _ask(home, metric, "estimates", {"order": "listed"}, strings)
        items = list(home.truth[metric].values())[:2] if strings else home.truth[metric].values()
        scale = answer["reports"] / 20_000
        for value, true in zip(answer["values"], items, strict=not strings):
            assert abs(value["estimate"] - scale * true) < 6 * value["stderr"]
            assert value["low"] < value["estimate"] < value["high"]
    [mean] = _ask(home, "seconds", "estimates", {}, [])["values"]
    assert abs(mean["estimate"] - (0.75 * 30 + 0.25 * 400)) < 6 * mean["stderr"]
    middle = _ask(home, "launches", "estimates", {}, [])["mean"]
    # Each number counts as its bucket's middle: 1, 7 and 21.
    assert abs(middle["estimate"] - (0.6 * 1 + 0.3 * 7 + 0.1 * 21)) < 6 * middle["stderr"]
