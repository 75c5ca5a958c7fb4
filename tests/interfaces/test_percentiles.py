"""Percentiles and shares below a number: the same from every face, around the truth, or refused."""

import csv
import io
import json
from typing import Any

import pytest

import hubbub.notebook
from hubbub.cli.main import main
from hubbub.query_results.sentences import percentile_sentences, sentences_below
from tests.interfaces.browser import Watched
from tests.interfaces.running_aggregator import DAYS, House
from tests.support import web
from tests.support.commands import Capture, document_of
from tests.unit.test_measured import ENDS

# Of 20,000 people every day: 1 h, 7 h and 20 h, in parts of two hours.
TRUTH = {10: 1.0, 25: 1.0, 50: 1.0, 75: 7.0, 95: 20.0}


def _estimates(home: House, metric: str, question: str = "estimates", **parameters: Any) -> Any:
    return web.get(f"{home.page}/v1/metrics/{metric}/{question}", params=parameters)


def _output(capsys: Capture, home: House, *words: str) -> str:
    assert main([*words, "--url", home.page]) == 0
    return capsys.readouterr().out


def test_percentiles_are_the_same_from_every_face_and_hold_the_truth(
    home: House, capsys: Capture
) -> None:
    sure: dict[str, Any] = {"epochs": "all", "confidence": 0.9999}
    query = {"percentile": [*map(str, TRUTH)], "below": ["6", "7.5"], **sure}
    document = _estimates(home, "launches", **query).json()
    for row in document["percentiles"]:
        assert row["low"] <= TRUTH[row["percentile"]] <= row["high"], row
        assert row["low"] <= row["estimate"] <= row["high"], row
    [six, seven] = document["below"]
    assert six["low"] <= 0.6 <= six["high"]
    # Inside a part, the share is between those at its edges.
    assert seven["low"] <= 0.6
    assert seven["high"] >= 0.9
    words = ["query", "launches", "--epochs", "all", "--confidence", "0.9999"]
    words += ["--percentile", "95,50,10,25", "--percentile", "75", "--below", "6,7.5"]
    by_command = json.loads(_output(capsys, home, *words, "--format", "json"))
    table = list(csv.DictReader(io.StringIO(_output(capsys, home, *words, "--format", "csv"))))
    exported = _estimates(home, "launches", "export", **query).text
    answer = hubbub.notebook.connect(home.page).percentiles(
        "launches", [*TRUTH], [6.0, 7.5], **sure
    )
    for field in ("percentiles", "below"):
        assert by_command[field] == answer.document[field] == document[field]
    assert [row["value"] for row in table] == [row["value"] for row in answer]
    assert [float(row["number"]) for row in table] == [row["number"] for row in answer]
    assert list(csv.DictReader(io.StringIO(exported))) == table
    output = _output(capsys, home, *words)
    assert all(row["value"] in output for row in answer)
    assert "<td>p95</td>" in answer._repr_html_()
    with pytest.raises(TypeError, match="request estimates"):
        answer.plot()
    assert "edges of the metric's buckets" in output
    assert "number (h)" in output
    assert "share's 99.99% interval" in output
    assert "epsilon " in output.splitlines()[0]
    assert ", in h" not in output


def test_an_estimate_shows_the_usual_percentiles_by_default(home: House, capsys: Capture) -> None:
    usual = _estimates(home, "launches").json()["percentiles"]
    assert [row["percentile"] for row in usual] == [10, 25, 50, 75, 90, 95, 99]
    assert "percentiles in h, 95% intervals: p10 " in _output(capsys, home, "query", "launches")
    assert _estimates(home, "theme").json()["percentiles"] == []


def test_a_percentiles_interval_is_shown_at_its_full_width() -> None:
    row = {"percentile": 50, "estimate": 5.06, "low": 3.75, "high": 7.5, "reaches": ""}
    answer = {"unit": "s", "confidence": 0.95, "percentiles": [row]}
    [sentence] = percentile_sentences(answer)
    assert sentence.endswith(": p50 5.06 (3.75 to 7.5)"), "rounded ends would be narrower"


def test_the_page_rounds_the_ends_of_intervals_as_the_command_line_does(
    watched: Watched, home: House
) -> None:
    page = watched.open(f"{home.page}/metric?name=launches")
    for number, error, end, text in ENDS:
        script = "(a) => import('/static/shell.js').then(({ measured }) => measured(...a))"
        assert page.evaluate(script, [number, error, end]) == text


def test_percentiles_of_an_open_epoch_are_not_final(home: House, capsys: Capture) -> None:
    words = ("query", "launches", "--epochs", "all")
    sentences = [line for line in _output(capsys, home, *words).splitlines() if "final" in line]
    assert sentences
    assert sentences[0] in _output(capsys, home, *words, "--percentile", "50").splitlines()


def test_a_share_below_a_number_is_answered_without_percentiles_that_nobody_asked_for(
    home: House, capsys: Capture
) -> None:
    document = _estimates(home, "launches", below="6", epochs="all").json()
    assert document["percentiles"] == []
    assert len(document["below"]) == 1
    output = _output(capsys, home, "query", "launches", "--below", "6", "--epochs", "all")
    assert "below 6" in output
    assert "p50" not in output
    answer = hubbub.notebook.connect(home.page).percentiles("launches", below=[6.0], epochs="all")
    assert "below 6 h: " in answer._repr_html_()


def test_a_percentile_is_read_as_answers_write_it_and_a_share_refused(
    home: House, capsys: Capture
) -> None:
    words = ["query", "launches", "--url", home.page, "--format", "json", "--percentile"]
    document = document_of(capsys, *words, "p95,50")
    assert [row["percentile"] for row in document["percentiles"]] == [50, 95]
    assert main([*words, "0.5"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["percentiles"][0]["percentile"] == 0.5
    assert captured.err == ("percentile 0.5 has 0.5% of the numbers below it; 50% is written 50\n")


@pytest.mark.thorough
def test_a_comparison_shows_how_far_percentiles_moved_and_the_page_the_same(
    watched: Watched, home: House, capsys: Capture
) -> None:
    page = watched.open(f"{home.page}/metric?name=launches")
    text = page.inner_text("#compared").lower()
    comparison = _estimates(home, "launches", "compare").json()
    for sentence in (*percentile_sentences(comparison), *sentences_below("compare", comparison)):
        assert sentence.lower() in text
    document = _estimates(home, "launches", "compare", percentile="50").json()
    [median] = document["percentiles"]
    assert median["low"] <= 0 <= median["high"]
    assert not median["moved"]
    output = _output(capsys, home, "compare", "launches", "--percentile", "50")
    assert "percentiles in h, 95% intervals: p50 " in output


def test_percentiles_are_exported(home: House, capsys: Capture) -> None:
    words = ("launches", "--percentile", "50,95", "--format", "csv")
    exported = _output(capsys, home, "query", *words, "--below", "6")
    assert exported.count("p50") == exported.count("p95") == 1
    by_epoch = _output(capsys, home, "trend", *words, "--epochs", "all")
    assert len(by_epoch.splitlines()) == 1 + 2 * DAYS


def test_prometheus_reads_percentiles(home: House) -> None:
    text = web.get(f"{home.page}/metrics").text
    for name in ("", "_low", "_high"):
        assert f'hubbub_percentile{name}{{metric="launches",percentile="95"}} ' in text


def test_a_trend_follows_percentiles(home: House, capsys: Capture) -> None:
    query = {"percentile": ["50", "95"], "epochs": "all", "confidence": 0.99999}
    document = _estimates(home, "launches", "trend", **query).json()
    for series, true in zip(document["series"], (1.0, 20.0), strict=True):
        assert len(series["points"]) == DAYS
        for point in series["points"]:
            assert point["low"] <= true <= point["high"], point
    first = document["series"][0]["points"][0]["date"]
    alone = _estimates(home, "launches", **{**query, "epochs": first}).json()["percentiles"]
    ends = [series["points"][0]["reaches"] for series in document["series"]]
    assert ends == [row["reaches"] for row in alone] == ["low", ""]
    count = sum(1 for point in document["series"][0]["points"] if point["reaches"])
    words = ["trend", "launches", "--epochs", "all", "--percentile", "50,95"]
    words += ["--confidence", "0.99999"]
    assert json.loads(_output(capsys, home, *words, "--format", "json")) == document
    output = _output(capsys, home, *words)
    assert "launches: p95" in output
    assert f"p50 in {count} of {DAYS} epochs: the interval reaches the end of the range" in output
    assert "p95 (h)" in output
    assert all(f"{name} (h)" not in output for name in ("mean", "line"))
    assert "date,number," in _output(capsys, home, *words, "--format", "csv")
    connection = hubbub.notebook.connect(home.page)
    answer = connection.trend("launches", percentiles=[50, 95], confidence=0.99999)
    assert (answer.plot().get_ylabel(), answer.document) == ("number, in h", document)
    followed = {"percentile": "50", "value": "mean", "number": "3"}
    for name in followed:
        others = {other: followed[other] for other in followed if other != name}
        refused = _estimates(home, "launches", "trend", **others)
        assert (refused.status_code, "values or percentiles" in refused.text) == (400, True)


@pytest.mark.parametrize("percentile", ["0", "100", "101", "nan", "-1", "inf"])
def test_an_invalid_percentile_is_refused_with_a_sentence(home: House, percentile: str) -> None:
    answer = _estimates(home, "launches", percentile=percentile)
    assert answer.status_code in {400, 422}
    assert f"percentile {float(percentile):g} is outside (0, 100)" in answer.text
    with pytest.raises(hubbub.errors.BadParameter, match="outside"):
        hubbub.notebook.connect(home.page).percentiles("launches", float(percentile))


@pytest.mark.parametrize(
    ("metric", "parameters", "reason"),
    [
        ("theme", {"percentile": "50"}, "only numbers have percentiles, other values have shares"),
        ("seconds", {"percentile": "50"}, "has no ranges from which percentiles"),
        ("seconds", {"below": "50"}, "has no ranges from which percentiles"),
        ("launches", {"below": "24"}, "outside (0, 24)"),
        ("launches", {"below": "nan"}, "outside (0, 24)"),
        ("launches", {"percentile": "50", "anytime": "true"}, "one look only"),
        ("launches", {"percentile": ["50"] * 101}, "at most 100"),
    ],
)
def test_percentiles_of_other_metrics_are_refused_with_a_sentence(
    home: House, metric: str, parameters: dict[str, Any], reason: str
) -> None:
    answer = _estimates(home, metric, **parameters)
    assert answer.status_code in {400, 422}
    assert reason in answer.text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("launches --percentile 101", "percentile 101 is outside (0, 100)"),
        ("launches --percentile half", "'half' is not a percentile; write 50 or 95"),
        ("launches --percentile nan", "percentile nan is outside (0, 100)"),
        ("launches --percentile 50 --anytime", "one look only"),
        ("theme --percentile 50", "has no ranges from which percentiles"),
        ("theme --below 3", "has no ranges from which percentiles"),
    ],
)
def test_the_command_refuses_them_too(
    home: House, words: str, reason: str, capsys: Capture
) -> None:
    try:
        code = main(["query", *words.split(), "--url", home.page])
    except SystemExit as stop:
        code = int(str(stop.code))
    assert code
    assert reason in capsys.readouterr().err
