"""`hubbub simulate`: a rehearsal on known values; the answers are those of every face."""

import gzip
import json
import re
from math import sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest
from scipy.stats import binom

from hubbub.authoring import read_catalog
from hubbub.cli.main import main
from hubbub.mechanisms.number_range import Range
from hubbub.simulation.people_file import coder
from tests.support.catalogs import catalog_toml, metric_toml
from tests.support.commands import Capture, document_of, output_of, refusal_of

pytestmark = pytest.mark.thorough

Z = 4.9


def _least_coverage(number: int) -> float:
    """The least share of intervals at 95% that hold, but for one time in a million."""
    return float(binom.ppf(1e-6, number, 0.95)) / number


def _metric(name: str, mechanism: str, more: str) -> str:
    return metric_toml(name, more, mechanism=mechanism, lifetime_epsilon=500.0)


LISTED = 'values = ["a", "b", "c", "d"]'
METRICS = (
    ("theme", "unary.oue", f"epsilon = 1.0\n{LISTED}"),
    ("kept", "long.grr", f"epsilon = 1.0\npermanent_epsilon = 2.0\n{LISTED}"),
    ("some", "grr", f"epsilon = 1.0\n{LISTED}\nsampling = 0.5"),
    ("some_kept", "long.grr", f"epsilon = 1.0\npermanent_epsilon = 2.0\n{LISTED}\nsampling = 0.5"),
    ("page", "cms", 'epsilon = 2.0\ndomain = "string"\nhashes = 16\nwidth = 64'),
    ("size", "mean.one_bit", 'epsilon = 1.0\ndomain = "number"\nlow = 0\nhigh = 10'),
    ("ages", "wave", 'epsilon = 2.0\ndomain = "number"\nlow = 0\nhigh = 10\nbuckets = 5'),
)
CATALOG = catalog_toml(*(_metric(*fields) for fields in METRICS))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "metrics.toml").write_text(CATALOG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _simulation(metric: str, truth: str | bytes, *more: str) -> list[str]:
    """The words of a rehearsal of people in a file, which is written here."""
    file = Path("truth.csv.gz" if isinstance(truth, bytes) else "truth.csv")
    file.write_bytes(truth if isinstance(truth, bytes) else truth.encode())
    return ["simulate", metric, "--values", file.name, *more]


def _without_progress(error: str) -> list[str]:
    """The lines on standard error, but for those that a busy machine gets: how long it takes."""
    return [line for line in error.splitlines() if not line.startswith("rehearsing: ")]


def _document(capsys: Capture, metric: str, truth: str | bytes, *more: str) -> Any:
    words = _simulation(metric, truth, "--json", *more)
    before = {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")}
    code, output = main(words), capsys.readouterr()
    assert (code, _without_progress(output.err)) == (0, [])
    assert {path: path.stat().st_mtime_ns for path in Path.cwd().rglob("*")} == before
    return json.loads(output.out)


def _covered(document: Any) -> tuple[int, int]:
    rows = [row for run in document["runs"] for row in run["values"]]
    return sum(row["low"] <= row["true"] <= row["high"] for row in rows), len(rows)


@pytest.mark.parametrize(
    ("metric", "truth", "more"),
    [
        ("theme", "value,count\na,5000\nb,3000\nc,40\n", "--epochs 2"),
        ("theme", "a\n" * 3000 + "b\n" * 1500, ""),
        ("theme", gzip.compress(b"a,5000\nb,3000\n"), "--reports 20000"),
        ("kept", "a,5000\nb,3000\n", "--epochs 3"),
        ("some", "a,5000\nb,3000\n", "--epochs 3"),
        ("page", "a.example,9000\nb.example,2000\n", ""),
        ("size", "value\n" + "1\n2.5\n" * 1500 + "9\n" * 1000, ""),
        ("ages", "0.5,3000\n4.5,2000\n9.9,1000\n", ""),
    ],
    ids=[
        "epochs",
        "a person a line",
        "gz, drawn",
        "memoized",
        "sampled",
        "strings",
        "mean",
        "wave",
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(
    metric: str, truth: str | bytes, more: str, capsys: Capture
) -> None:
    document = _document(capsys, metric, truth, "--runs", "60", "--seed", "5", *more.split())
    hits, rows = _covered(document)
    # Values of one run vary together: a run counts as one of its rows at least.
    assert hits / rows >= _least_coverage(60)
    assert document["summary"]["coverage"] == pytest.approx(hits / rows)
    assert all(any(row["shown"] for row in run["values"]) for run in document["runs"])


def test_a_rehearsal_shows_the_truth_of_those_who_reported(capsys: Capture) -> None:
    document = _document(capsys, "theme", "a,500\nb,300\n", "--runs", "2", "--epochs", "3")
    for run in document["runs"]:
        assert run["reports"] == 2400
        assert {row["value"]: row["true"] for row in run["values"]} == {
            "a": 1500,
            "b": 900,
            "c": 0,
            "d": 0,
        }
    assert document["people"] == 800


CROWDED = metric_toml(
    "zoom",
    mechanism="auto",
    values=["a", "b", "c", "d"],
    central_epsilon=1.0,
    crowd=5000,
    sampling=0.5,
    lifetime_epsilon=500.0,
)


def test_a_rehearsal_of_crowds_shows_the_promise_and_withholds_small_ones(
    folder: Path, capsys: Capture
) -> None:
    """Half of 10,000 report: about every other epoch has a crowd of 5,000."""
    (folder / "metrics.toml").write_text(CATALOG + CROWDED)
    arguments = _simulation("zoom", "a,6000\nb,3990\nc,10\n", "--epochs", "5", "--seed", "3")
    document = document_of(capsys, *arguments, "--runs", "40", "--json")
    central, withheld = document["central"], document["summary"]["withheld"]
    assert 0.99 <= central["epoch"] <= 1 < central["all_epochs"] < 5
    assert (central["crowd"], central["honest"]) == (5000, 0.9)
    assert abs(withheld - 100) < Z * sqrt(200) / 2 + 4
    hits, rows = _covered(document)
    assert hits / rows >= _least_coverage(40)
    for run in document["runs"]:
        assert run["reports"] >= 5000 * (5 - run["withheld"])
        assert sum(row["true"] for row in run["values"]) == run["reports"]
    output = output_of(capsys, *arguments, "--runs", "2")
    assert "to an observer of shuffled epochs: epsilon 0.99" in output
    assert "epochs withheld: fewer reports than the crowd of 5,000" in output
    refused = refusal_of(capsys, *arguments, "--reports", "4000", "--runs", "2")
    assert "no epoch of any run has a crowd of 5,000" in refused


@pytest.mark.parametrize(
    ("dummies", "variance"),
    [("dummies = 4000", 4000 * 3 / 16), ('dummies = "noise"', 2 * 2.02**2)],
)
def test_a_rehearsal_with_dummies_is_as_exact_as_one_without(
    dummies: str, variance: float, folder: Path, capsys: Capture
) -> None:
    padded = CROWDED.replace("sampling = 0.5", dummies)
    (folder / "metrics.toml").write_text(CATALOG + padded)
    arguments = _simulation("zoom", "a,6000\nb,3990\nc,10\n", "--epochs", "2", "--seed", "3")
    document = document_of(capsys, *arguments, "--runs", "40", "--json")
    assert 0.2 <= document["central"]["epoch"] <= 1
    assert {run["reports"] for run in document["runs"]} == {20_000}
    hits, rows = _covered(document)
    assert hits / rows >= _least_coverage(40)
    for value in range(4):
        off = [
            run["values"][value]["estimate"] - run["values"][value]["true"]
            for run in document["runs"]
        ]
        spread = sqrt(sum(deviation**2 for deviation in off) / len(off))
        assert spread > 0.6 * sqrt(2 * variance), "which is the dummies' own of two epochs"
        assert abs(sum(off) / len(off)) < Z * spread / sqrt(len(off))


def test_a_rehearsed_mean_with_noise_dummies_has_the_error_that_is_stated(
    folder: Path, capsys: Capture
) -> None:
    number = 'domain = "number"\nlow = 0\nhigh = 8'
    crowded = re.sub(r"values = .*", number, CROWDED).replace("sampling = 0.5", 'dummies = "noise"')
    (folder / "metrics.toml").write_text(CATALOG + crowded)
    arguments = _simulation("zoom", "1,6000\n2.25,3990\n7,10\n", "--epochs", "2", "--seed", "3")
    runs = document_of(capsys, *arguments, "--runs", "60", "--json")["runs"]
    rows = [run["values"][0] for run in runs]
    hits = sum(row["low"] <= row["true"] <= row["high"] for row in rows)
    assert hits / 60 >= _least_coverage(60)
    off = [row["estimate"] - row["true"] for row in rows]
    spread = sqrt(sum(deviation**2 for deviation in off) / len(off))
    assert abs(sum(off) / len(off)) < Z * spread / sqrt(len(off))
    stated = (rows[0]["high"] - rows[0]["low"]) / (2 * NormalDist().inv_cdf(0.975))
    assert 0.4 < spread / stated < 1.5


def test_only_a_seed_repeats_a_rehearsal(capsys: Capture) -> None:
    once, again, other = (
        _document(capsys, "theme", "a,500\nb,300\n", "--runs", "2", *seed)["runs"]
        for seed in (["--seed", "7"], ["--seed", "7"], [])
    )
    assert once == again
    assert once != other


def test_people_see_a_table_with_the_truth_beside_the_answers(capsys: Capture) -> None:
    words = _simulation("theme", "a,5000\nb,3000\n", "--runs", "20", "--seed", "1")
    code, output = main(words), capsys.readouterr()
    assert (code, _without_progress(output.err)) == (0, [])
    for phrase in (
        "5,000",
        "intervals that contain the truth",
        "detected although nobody",
        "20 runs in",
    ):
        assert phrase in output.out


def test_a_run_with_too_few_reports_is_counted_and_ends_nothing(capsys: Capture) -> None:
    """Half of 200 report: in about half of the runs fewer than the minimum batch of 100."""
    more = ["--runs", "40", "--seed", "1"]
    document = _document(capsys, "some", "a,120\nb,80\n", *more)
    empty = sum(not run["values"] for run in document["runs"])
    assert 5 < empty < 35
    assert document["summary"]["refused"] == empty
    output = output_of(capsys, *_simulation("some", "a,120\nb,80\n", *more))
    assert "of 200 people 50.0% report in an epoch" in output
    assert f"{empty} runs without an answer: fewer reports than the minimum batch of 100" in output


def test_a_mean_has_neither_marks_nor_a_top_list(capsys: Capture) -> None:
    words = _simulation("size", "1,3000\n9,2000\n", "--runs", "2")
    assert "top list" not in output_of(capsys, *words)
    document = _document(capsys, "size", "1,3000\n9,2000\n", "--runs", "2")
    assert [row["detected"] for run in document["runs"] for row in run["values"]] == [None, None]


@pytest.mark.parametrize(
    ("metric", "truth", "more", "message"),
    [
        ("theme", "a,1\nsecret,2\n", "", "line 2: its value is not one of metric"),
        ("theme", "a,1\nsecret,2\n", "", 'metric "theme" ("a", "b'),
        ("theme", "a,-4\n", "", "line 1: write a value, or a value and a whole number"),
        ("theme", "a,4.5\n", "", "line 1: write a value"),
        ("theme", "a,1,2\n", "", "line 1: write a value"),
        ("theme", "a," + "9" * 400 + "\n", "", "line 1: write a value"),
        ("theme", "", "", "0 people"),
        ("theme", "value,count\n", "", "0 people"),
        ("theme", 'a,1\n"b', "", "line 2: not CSV"),
        ("theme", b"\x1f\x8b\x08\x00broken", "", "cannot be read: the gzip file ends too early"),
        ("theme", "a,20\n", "", "draw more people (--reports)"),
        ("size", "1\nnan\n", "", "line 2: its value is not one of"),
        (
            "size",
            "11\n",
            "",
            'line 1: its value is not one of metric "size" (value is not a number in [0, 10])',
        ),
        ("size", "".join(f"{i / 10**5}\n" for i in range(20_000)), "", "different numbers; round"),
        ("nope", "a\n", "", 'metric "nope" is not in metrics.toml; it has ages, kept'),
        ("kep", "a\n", "", '; did you mean "kept"?'),
        ("theme", "a,500\n", "--runs 0", "--runs 0 is outside [1, 100000]"),
        ("theme", "a,500\n", "--epochs 0", "--epochs 0 is outside"),
        ("theme", "a,500\n", "--reports -3", "--reports -3 is outside"),
        ("theme", "a,500\n", "--seed -3", "--seed -3 is below 0"),
        ("theme", "a,500\n", "--confidence 1", "confidence 1.0 is outside"),
        ("theme", "a,500\n", "--candidates truth.csv", 'not over strings: leave "candidates"'),
        ("some_kept", "a,500\n", "--epochs 2", "rehearsed over one epoch"),
    ],
)
def test_mistakes_in_files_are_named_in_one_line(
    metric: str,
    truth: str | bytes,
    more: str,
    message: str,
    capsys: Capture,
) -> None:
    code, done = main(_simulation(metric, truth, *more.split())), capsys.readouterr()
    assert (code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert "secret" not in done.err


def test_a_file_that_is_not_there_is_named(capsys: Capture) -> None:
    error = refusal_of(capsys, "simulate", "theme", "--values", "none.csv")
    assert "--values none.csv: cannot be read" in error


def test_too_many_different_strings_are_refused_with_a_remedy_that_keeps_the_shares(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("hubbub.simulation.people_file._MAX_STRINGS", 100)
    truth = "".join(f"{n:x}.example\n" for n in range(101))
    words = _simulation("page", truth, "--runs", "1", "--json")
    [error] = refusal_of(capsys, *words).splitlines()
    assert "101 different values, above 100; draw fewer people at random" in error


def test_the_edges_of_a_range_are_computed_once_for_all_numbers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def counted(*arguments: Any) -> list[float]:
        calls.append(1)
        return edges(*arguments)

    edges = Range.edges
    monkeypatch.setattr(Range, "edges", counted)
    code = coder(read_catalog(folder / "metrics.toml").metrics["ages"])
    for number in range(100):
        code(str(number / 10))
    assert len(calls) == 1


BESIDE = (
    ("pair", "pairs", 'epsilon = 2.0\nparts = { os = ["l", "m"], mode = ["dark", "light"] }'),
    ("plugins", "privset", 'epsilon = 1.0\nkind = "set"\nmost = 2\nvalues = ["a", "b", "c", "d"]'),
    ("odd", "privset", 'epsilon = 1.0\nkind = "set"\nmost = 2\nvalues = ["a", "b|c", "d"]'),
    ("crashed", "rr", 'epsilon = 2.0\nvalues = ["no", "yes"]\nbreakdown = { os = ["l", "m"] }'),
    ("site", "tree", 'epsilon = 4.0\ndomain = "string"\nbits = 12\ncells = 2048'),
)


@pytest.fixture
def catalog_folder(folder: Path) -> Path:
    (folder / "metrics.toml").write_text(catalog_toml(*(_metric(*entry) for entry in BESIDE)))
    return folder


def _rehearsal_output(capsys: Capture, metric: str, truth: str, *more: str) -> tuple[Any, str]:
    """The document of a rehearsal, and what people read of one run."""
    arguments = _simulation(metric, truth, "--seed", "4", *more)
    document = document_of(capsys, *arguments, "--json")
    return document, output_of(capsys, *arguments, "--runs", "1")


@pytest.mark.usefixtures("catalog_folder")
def test_two_parts_have_their_cramers_v_beside_the_truth(capsys: Capture) -> None:
    truth = "os,mode,count\nl,dark,40000\nl,light,10000\nm,dark,20000\nm,light,30000\n"
    document, output = _rehearsal_output(capsys, "pair", truth, "--runs", "40")
    for run in document["runs"]:
        [association] = run["associations"]
        assert (association["rows"], association["columns"]) == ("os", "mode")
        assert association["true"] == pytest.approx(0.408248)  # 20,000 / sqrt(60,000 x 40,000)
        assert association["p_value"] < 1e-6
        assert sum(row["consistent"] for row in run["values"]) == pytest.approx(100_000)
    assert document["summary"]["coverage_associations"] >= _least_coverage(40)
    assert "Cramer's V of os and mode: true 0.408" in output


@pytest.mark.usefixtures("catalog_folder")
def test_public_values_are_rehearsed_separately(capsys: Capture) -> None:
    truth = "os,value,count\nl,no,8000\nl,yes,2000\nm,no,3000\nm,yes,3000\nbeos,yes,500\n"
    document, output = _rehearsal_output(capsys, "crashed", truth, "--runs", "40")
    for run in document["runs"]:
        shares = {(row["part"], row["value"]): row["true"] for row in run["public"]}
        assert shares["l", "yes"] == pytest.approx(0.2)
        assert shares["m", "yes"] == pytest.approx(0.5)
        assert shares["unlisted", "yes"] == 1
        assert sum(row["true"] for row in run["values"]) == 16_500
    hits, rows = _covered(document)
    assert hits / rows >= _least_coverage(40)
    assert document["summary"]["coverage_public"] >= _least_coverage(120)
    assert "os=unlisted" in output


def test_means_by_public_field_are_beside_the_true_means(folder: Path, capsys: Capture) -> None:
    fields = 'epsilon = 4.0\ndomain = "number"\nlow = 0\nhigh = 10\nbreakdown = { os = ["l", "m"] }'
    catalog = catalog_toml(_metric("size", "mean.one_bit", fields))
    (folder / "metrics.toml").write_text(catalog)
    people = "value,os,count\n2,l,3000\n4,l,3000\n9,m,3000\n"
    document, output = _rehearsal_output(capsys, "size", people, "--runs", "10")
    for run in document["runs"]:
        assert {row["part"]: row["true"] for row in run["public"]} == {"l": 3.0, "m": 9.0}
    assert document["summary"]["coverage_public"] >= _least_coverage(20)
    assert "%" not in output.partition("public field")[2].partition("intervals")[0]


ARMS = """
[experiments.menu]
arms = { control = 1, new = 1 }
"""
IN_ARMS = {
    "checkout": (
        'kind = "funnel"\nsteps = ["visit", "cart"]\nexperiment = "menu"',
        "value,menu,count\nvisit,control,3000\ncart,control,1000\nvisit,new,2000\ncart,new,2000\n",
        {"": 3 / 8, "control": 1 / 4, "new": 1 / 2},
    ),
    "crashes": (
        'rate = { of = "crashed", per = "started", most = 20 }\nexperiment = "menu"',
        "menu,crashed,started,count\ncontrol,2,10,3000\nnew,5,10,2000\nnew,1,10,1000\n",
        {"": 17 / 60, "control": 1 / 5, "new": 11 / 30},
    ),
}
"""By metric: its fields, people, and by arm the true figure of the last row."""


def test_a_number_of_events_that_is_not_whole_is_refused(folder: Path, capsys: Capture) -> None:
    rate = 'epsilon = 4.0\nrate = { of = "crashed", per = "started", most = 20 }'
    (folder / "metrics.toml").write_text(catalog_toml(_metric("crashes", "auto", rate)))
    for line in ("-1,5", "1.5,5", ",5"):
        (folder / "people.csv").write_text(f"crashed,started\n{line}\n")
        error = refusal_of(capsys, "simulate", "crashes", "--values", "people.csv")
        assert 'of metric "crashes" (a number of events is not a whole number from 0 on)' in error


@pytest.mark.parametrize("metric", IN_ARMS)
def test_figures_are_rehearsed_by_arm(folder: Path, capsys: Capture, metric: str) -> None:
    fields, people, truths = IN_ARMS[metric]
    mechanism = "grr" if "steps" in fields else "auto"
    entry = _metric(metric, mechanism, f"epsilon = 4.0\n{fields}")
    (folder / "metrics.toml").write_text(catalog_toml(ARMS, entry))
    document, output = _rehearsal_output(capsys, metric, people, "--runs", "4")
    for run in document["runs"]:
        figures = {row["part"]: row["true"] for row in run["figures"]}
        assert figures == pytest.approx(truths)
    coverage = document["summary"]["coverage_figures"]
    assert coverage >= _least_coverage(4 * len(truths))
    assert re.search("menu=new .*(visit to cart|crashed per started)", output)


def test_an_arm_that_does_not_exist_is_refused(folder: Path, capsys: Capture) -> None:
    fields = 'epsilon = 4.0\nvalues = ["a", "b"]\nexperiment = "menu"'
    (folder / "metrics.toml").write_text(catalog_toml(ARMS, _metric("shown", "grr", fields)))
    (folder / "people.csv").write_text("value,menu,count\na,,10\na,new,10\nb,controll,10\n")
    assert main(["simulate", "shown", "--values", "people.csv"]) == 2
    message = 'line 4: experiment "menu" has only the arms control, new; leave the cell empty for'
    error = " ".join(capsys.readouterr().err.split())
    assert f'{message} devices in no arm; did you mean "control"?' in error


@pytest.mark.usefixtures("catalog_folder")
def test_a_rehearsal_names_people_with_too_large_sets(capsys: Capture) -> None:
    document, output = _rehearsal_output(
        capsys, "plugins", "a|b|c,3000\na|b,500\nd,6000\n,500\n", "--runs", "2"
    )
    assert document["people_above_most"] == 3000
    assert "30.0% of the people hold more than most = 2" in output
    assert "raise most, to 3 at most" in output


@pytest.mark.usefixtures("catalog_folder")
def test_recall_counts_whole_strings_and_found_beginnings_separately(capsys: Capture) -> None:
    truth = "https://one.example,60000\nhttps://two.example,30000\nab,10000\n"
    document, output = _rehearsal_output(capsys, "site", truth, "--runs", "2")
    for run in document["runs"]:
        assert (run["recall"], run["recall_begun"]) == (pytest.approx(1 / 3), 1)
    assert "33.3% whole, 100.0% by its beginning at least" in output


def test_listed_beginnings_leave_the_bits_to_the_rest(
    catalog_folder: Path, capsys: Capture
) -> None:
    catalog = catalog_folder / "metrics.toml"
    beginnings = 'domain = "string"\nbeginnings = ["https://", "https://o"]\nbits = 12'
    catalog.write_text(catalog.read_text().replace('domain = "string"\nbits = 12', beginnings))
    truth = "https://a,60000\nhttps://o,30000\n,10000\n"
    document, _ = _rehearsal_output(capsys, "site", truth, "--runs", "2")
    for run in document["runs"]:
        assert (run["recall"], run["recall_begun"]) == (1, 1)
        assert {row["value"] for row in run["values"]} == {"https://a", "https://o", ""}


@pytest.mark.parametrize(
    ("beginnings", "message"),
    [
        ('beginnings = "https://"', "must be a list of 1 to 255 texts, none empty and none twice"),
        ("beginnings = []", "must be a list of 1 to 255 texts, none empty and none twice"),
        ('beginnings = ["a", "a"]', "lists a value twice; remove one"),
        (
            'mechanism = "cms"\nbeginnings = ["a"]',
            "cms is not a prefix tree; leave them out",
        ),
    ],
)
def test_beginnings_that_cannot_be_are_refused(
    catalog_folder: Path, capsys: Capture, beginnings: str, message: str
) -> None:
    catalog = catalog_folder / "metrics.toml"
    head, site = catalog.read_text().split("[metrics.site]")
    if "cms" in beginnings:
        site = site.replace('mechanism = "tree"\n', "").replace("bits = 12\ncells = 2048", "")
        beginnings += "\nhashes = 16\nwidth = 64"
    catalog.write_text(f"{head}[metrics.site]\n{beginnings}{site}")
    assert message in refusal_of(capsys, *_simulation("site", "a\n"))


@pytest.mark.parametrize(
    ("metric", "truth", "message"),
    [
        ("odd", "a,500\n", 'its value "b|c" contains |, which separates the values of a set'),
        ("crashed", "os,count\nl,1\n", "write a header that names a column for the value and each"),
        ("pair", "os,count\nl,1\n", "names a column for a part: os,mode; and count"),
    ],
)
@pytest.mark.usefixtures("catalog_folder")
def test_a_file_of_values_with_mistakes_is_refused(
    capsys: Capture, metric: str, truth: str, message: str
) -> None:
    assert message in refusal_of(capsys, *_simulation(metric, truth))


def test_a_catalog_without_a_shuffler_is_refused_with_the_missing_line(
    catalog_folder: Path, capsys: Capture
) -> None:
    catalog = catalog_folder / "metrics.toml"
    catalog.write_text(catalog.read_text().removeprefix('shuffler = "127.0.0.1:1"\n'))
    errors = refusal_of(capsys, *_simulation("pair", "a\n"))
    assert 'write shuffler = "shuffler.example.org' in errors
