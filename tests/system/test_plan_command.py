"""`hubbub plan`, as a team types it before a launch."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hubbub.cli.main import main
from hubbub.errors.message_words import at_least, at_most
from tests.conftest import CATALOG
from tests.support.catalogs import metric_toml
from tests.support.commands import Capture, document_of, output_of, refusal_of

pytestmark = pytest.mark.thorough

MORE = metric_toml(
    "hours", mechanism="mean.piecewise", epsilon=1.0, domain="number", low=0, high=24, min_batch=20
)


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    (tmp_path / "known.txt").write_text("a.example\nb.example\n")
    text = CATALOG.replace('domain = "string"', 'domain = "string"\ncandidates = "known.txt"')
    (tmp_path / "metrics.toml").write_text(text + MORE)
    return str(tmp_path / "metrics.toml")


def test_the_attack_measures_every_metric_against_its_bound(catalog: str, capsys: Capture) -> None:
    arguments = ["plan", "attack", catalog, "--fake", "0.1", "--simulate", "3000"]
    rows = document_of(capsys, *arguments, "--format", "json")
    assert [row["metric"] for row in rows] == ["theme", "crashed", "editor", "homepage", "hours"]
    for row in rows:
        assert row["worth"] > 1
        assert row["gain"] == pytest.approx(0.1 * (row["worth"] - row["true_share"]))
        # One drawing of 3,000 reports at epsilon 1: its own error, and of strings the decoder's.
        assert row["measured"] == pytest.approx(row["gain"], abs=0.25)


def test_plan_attack_names_the_fakes_that_each_change_takes(catalog: str, capsys: Capture) -> None:
    words = "plan", "attack", catalog, "--metric", "theme"
    out = output_of(capsys, *words)
    [row] = document_of(capsys, *words, "--format", "json")
    gain, takes = (
        at_most(100 * row["gain"], "+.2f"),
        at_least(100 * row["fake_for_1_percent"], ".3f"),
    )
    assert re.search(rf"theme .* {at_most(row['worth'], '.2f')} +{re.escape(gain)}% +{takes}%", out)
    assert "1% takes: share of fake reports that adds 1%" in out
    assert "crashed" not in out


def test_with_tokens_accounts_limit_the_effect_of_fakes(tmp_path: Path, capsys: Capture) -> None:
    source = tmp_path / "metrics.toml"
    line = 'tokens = { issuer = "https://issuer.example.org", devices = 2 }\n'
    source.write_text(line + CATALOG)
    arguments = ["plan", "attack", str(source), "--accounts", "50", "--others", "10000"]
    rows = {row["metric"]: row for row in document_of(capsys, *arguments, "--format", "json")}
    # Two devices; of crashed three reports of each of three tiers.
    assert {name: row["fake_reports"] for name, row in rows.items()} == {
        "theme": 100,
        "editor": 100,
        "crashed": 900,
        "homepage": 10_000,
    }
    for row in rows.values():
        assert row["fake"] == row["fake_reports"] / (row["fake_reports"] + 10_000)
        assert row["gain"] == pytest.approx(row["fake"] * (row["worth"] - row["true_share"]))
    assert "50 accounts beside 10,000 honest reports an epoch" in output_of(capsys, *arguments)
    assert "--accounts needs --others N" in refusal_of(capsys, *arguments[:-2])
    source.write_text(CATALOG)
    assert main(arguments) == 2
    assert "--accounts limits nothing, since the catalog has no tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "name", "form"),
    [
        ("--values 16 --reports 1e5 --error 0.01", "epsilon", ".3f"),
        ("central --values 16 --reports 20000 --epsilon 1", "epsilon_central", ".3f"),
        ("model logistic --features 6", "shuffled_epsilon", ".3g"),
    ],
)
def test_no_bound_is_printed_below_what_is_computed(
    typed: str, name: str, form: str, capsys: Capture
) -> None:
    words = ["plan", *typed.split()]
    output = output_of(capsys, *words)
    for row in document_of(capsys, *words, "--format", "json")["rows"]:
        assert f" {at_most(row[name], form)} " in output.replace("\n", " ")


@pytest.mark.parametrize("wrong", [["--set", "1", "1"], ["--set", "40", "50"], ["--parts", "3"]])
def test_an_impossible_option_is_named_with_an_example(wrong: list[str], capsys: Capture) -> None:
    errors = refusal_of(capsys, "plan", *wrong, "--epsilon", "1", "--reports", "1e4")
    assert f"{wrong[0]}: " in errors
    assert f"for example: hubbub plan {wrong[0]} " in errors


@pytest.mark.parametrize(
    ("unused", "message"),
    [
        ("--values 4 --epsilon 1 --dummies 200", "--dummies is an option of: hubbub plan central"),
        ("--metric theme --accounts 2", "--accounts is an option of: hubbub plan attack"),
        ("--metric theme --others 9", "--others is an option of: hubbub plan attack"),
    ],
)
def test_an_option_of_another_question_is_refused(
    catalog: str, unused: str, message: str, capsys: Capture
) -> None:
    assert message in refusal_of(capsys, "plan", catalog, "--reports", "30000", *unused.split())


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("--values 16 --reports 30000 --central 1", "hubbub plan central --epsilon E"),
        ("--model logistic --features 64", "hubbub plan model KIND"),
        ("metrics.toml --attack", "hubbub plan attack"),
        ("--capacity --devices=1e8", "hubbub plan capacity"),
    ],
)
def test_a_former_form_of_a_command_is_refused_with_the_new_one(
    words: str, command: str, capsys: Capture
) -> None:
    error = refusal_of(capsys, "plan", *words.split())
    assert f"is a command of its own: {command}\n" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--fake 1", "--fake 1 is outside (0, 1)"),
        ("--fake nan", "--fake nan is outside (0, 1)"),
        ("--targets 0", "--targets 0 is outside"),
        ("--simulate 5", "--simulate 5 is outside"),
        ("--metric colour", 'metric "colour" is not in '),
        ("--metric thme", 'theme; did you mean "theme"?'),
    ],
)
def test_plan_attack_names_impossible_arguments(
    catalog: str, arguments: str, message: str, capsys: Capture
) -> None:
    assert message in refusal_of(capsys, "plan", "attack", catalog, *arguments.split())


def _json(arguments: list[str], capsys: Capture) -> dict[str, Any]:
    document: dict[str, Any] = document_of(capsys, "plan", *arguments, "--format", "json")
    return document


def test_a_plan_computes_the_third_figure_from_two(capsys: Capture) -> None:
    arguments = ["--values", "128"]
    document = _json([*arguments, "--epsilon", "1", "--reports", "100000"], capsys)
    best = document["rows"][0]
    assert document["recommended"] == best["mechanism"] == "projective"
    back = _json([*arguments, "--epsilon", "1", "--detect", str(best["detectable"])], capsys)
    assert back["rows"][0]["reports"] == pytest.approx(100_000, rel=0.001)
    again = _json([*arguments, "--reports", "1e5", "--error", str(best["stderr"])], capsys)
    assert again["rows"][0]["epsilon"] == pytest.approx(1, rel=0.02)


def test_a_metric_of_a_catalog_is_planned_with_its_fields(catalog: str, capsys: Capture) -> None:
    for name in ("theme", "homepage", "hours"):
        words = [catalog, "--metric", name, "--reports", "40000", "--simulate"]
        document = _json(words, capsys)
        assert name != "homepage" or document["question"]["size"] == 2  # candidates
        drawn = document["simulated"]
        assert drawn["mechanism"] == document["metric"]["mechanism"]
        assert 0.2 * drawn["predicted"] < drawn["rms"] + 1e-3 < 4 * drawn["predicted"] + 2e-3
    out = output_of(capsys, "plan", catalog, "--metric", "theme", "--reports", "1000", "--simulate")
    assert "recommended: " in out
    assert "unary.oue *" in out
    assert re.search("^  light ", out, re.MULTILINE)
    assert "s.e." in out


def test_an_effect_is_planned_for_all_percentiles_of_its_metric(
    tmp_path: Path, capsys: Capture
) -> None:
    fields = {"edges": [*range(20)], "percentiles": [50, 99], "mechanism": "grr", "epsilon": 4.0}
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG + metric_toml("wait", kind="number", **fields))
    words = [str(path), "--metric", "wait", "--effect", "0.05"]
    own, *single = (
        _json([*words, *percentile], capsys)["rows"][0]["reports"]
        for percentile in ([], ["--percentile", "50"], ["--percentile", "99"])
    )
    assert own == pytest.approx(max(single), rel=0.01)
    assert own > 1.1 * min(single)


@pytest.mark.parametrize("kind", [".png", ".svg"])
def test_a_plan_is_drawn(kind: str, tmp_path: Path, capsys: Capture) -> None:
    arguments = ["plan", "--values", "12", "--epsilon", "1", "--reports", "9000", "--plot"]
    assert main([*arguments, str(tmp_path / f"plan{kind}")]) == 0
    drawn = (tmp_path / f"plan{kind}").read_bytes()
    assert drawn.startswith(b"\x89PNG" if kind == ".png" else b"<?xml")
    assert len(drawn) > 10_000
    assert "drawn to" in capsys.readouterr().err
    assert "must end in .png or .svg" in refusal_of(capsys, *arguments, str(tmp_path / "plan.gif"))
    assert "cannot be written" in refusal_of(capsys, *arguments, str(tmp_path / "no" / "plan.png"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--values 3", "--error, --detect, --within or --effect"),
        ("--values 3 --epsilon 1 --reports 9 --error 0.1", "give two of"),
        ("--ranges 16 0 60 --epsilon 2 --percentile 95 --within .02", "use 100 buckets"),
        ("--epsilon 1 --reports 9", "describe the question"),
        ("--values 1 --epsilon 1 --reports 9", "count 1 is outside [2, "),
        ("--values 4 --epsilon 99 --reports 9", "--epsilon 99 is outside"),
        ("--values 4 --epsilon 1 --reports 0", "reports 0 is outside"),
        ("--values 4 --error 0.1 --reports 0", "reports 0 is outside"),
        ("--values 4 --detect 0.1 --reports -5", "reports -5 is outside"),
        (
            "--values 4 --epsilon 1 --reports 9 --simulate 5",
            "5: to plan a metric of this catalog, add --metric NAME",
        ),
        ("--values 4 --epsilon 1 --reports 9 --simulate --seed -1", "--seed -1 is below 0"),
        ("--ranges 4 0 9 --epsilon 1 --effect .1", "needs a --percentile: name one"),
        ("--values 3 --epsilon 1 --ratio .4 .1 --effect .05", "and then the larger denominator's"),
        ("--values 3 --epsilon 1 --ratio .1 .4 --effect .9", "0.25 moves by 0.75 at most, to 0"),
        ("--vector 2 1 --epsilon 1 --ratio .4 0 --reports 9", "of at least 0 and then one in"),
        ("--ranges 4 0 9 --epsilon 1 --percentile 50 --effect .7", "0.7 is outside (0, 0.5)"),
        ("--values 4 --epsilon 1 --error 2", "--error 2 is outside (0, 1): write 2% as 0.02"),
        ("--values 4 --epsilon 1 --detect 0", "--detect 0 is outside (0, 1)"),
        ("--values 4 --epsilon 1 --error nan", "--error nan is outside (0, 1)"),
        ("--values 4 --reports 10 --error 0.0001", "10 reports are too few"),
        ("--mean 24 0 --epsilon 1 --reports 9", "--mean: low 24.0 and high 0.0 are not a range"),
        ("--ranges 9 24 0 --epsilon 1 --reports 9", "for example: hubbub plan --ranges 12 0 60"),
        ("--values 4 --epsilon 1 --detect 0.1 --whose reporters", "--whose goes with --error"),
        ("--parts 7,16", "'7,16' has commas; separate the numbers by blanks"),
        ("central --values 9 --reports 9000 --epsilon 1 --dummies noize", 'mean "noise"?'),
    ],
)
def test_an_impossible_plan_is_named(arguments: str, message: str, capsys: Capture) -> None:
    assert message in refusal_of(capsys, "plan", *arguments.split())


@pytest.mark.parametrize("options", ["--parts 7 16", "--values 200"])
@pytest.mark.parametrize("reports", [1, 40])
def test_plan_simulate_draws_the_requested_number_of_reports(
    options: str, reports: int, capsys: Capture
) -> None:
    arguments = [*options.split(), "--epsilon", "1", "--reports", str(reports), "--simulate"]
    assert _json(arguments, capsys)["simulated"]["reports"] == reports


def test_strings_that_nobody_lists_are_planned_beside_candidates(capsys: Capture) -> None:
    arguments = ["plan", "--strings", "1000", "--epsilon", "4", "--reports"]
    assert main([*arguments, "1000000"]) == 0
    assert '"tree" finds a string that 0.353% of 1,000,000 reports' in capsys.readouterr().out
    assert main([*arguments, "1000000", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["found_unlisted"] == pytest.approx(0.00353, rel=0.01)
    assert '"tree" finds' not in output_of(capsys, *arguments, "8")


MORE_KINDS = metric_toml(
    "plugins",
    period="30d",
    report_on="one day",
    kind="set",
    mechanism="auto",
    most=2,
    epsilon=2.0,
    values=["spell", "git", "vim", "tabs"],
    min_batch=20,
) + metric_toml(
    "profile",
    mechanism="auto",
    epsilon=2.0,
    parts={"theme": ["light", "dark"], "country": ["de", "fr", "it"], "new": ["true", "false"]},
    min_batch=20,
)


def test_sets_parts_and_periods_are_planned(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(CATALOG + MORE_KINDS)
    for name, estimates, people in (("plugins", 4, 30), ("profile", 16, 1)):
        document = _json(
            [str(path), "--metric", name, "--reports", "50000", "--simulate", "--epsilon", "2"],
            capsys,
        )
        assert document["people_a_report"] == people
        drawn = document["simulated"]["values"]
        assert len(drawn) == estimates
        for value in drawn:  # one in 2 million
            assert abs(value["estimated"] - value["true"]) < 5 * value["stderr"]
    [row] = _json(["--set", "40", "5", "--epsilon", "2", "--reports", "1e5"], capsys)["rows"]
    [back] = _json(
        ["--set", "40", "5", "--epsilon", "2", "--detect", str(row["detectable"])], capsys
    )["rows"]
    # Marks are judged by whole reports, so a share is found by a few reports more or less.
    assert back["reports"] == pytest.approx(100_000, rel=0.005)
    [row] = _json(["--parts", "7", "16", "14", "2", "--epsilon", "1", "--reports", "1e5"], capsys)[
        "rows"
    ]
    assert row["mechanism"] == "pairs"
    assert main(["plan", "central", "--set", "40", "5", "--epsilon", "1", "--reports", "9000"]) == 2
    assert "sets have no crowd" in capsys.readouterr().err
    assert main(["plan", str(path), "--metric", "plugins", "--reports", "100"]) == 0
    assert "from 30 times as many people" in capsys.readouterr().out


def test_a_metric_of_all_parts_is_planned_with_its_own_dummies(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "metrics.toml"
    parts = {"theme": ["light", "dark"], "country": ["de", "fr", "it"], "new": ["true", "false"]}
    fields = {"central_epsilon": 1, "crowd": 3000, "max_local_epsilon": 16, "dummies": "noise"}
    path.write_text(CATALOG + metric_toml("profile", mechanism="auto", parts=parts, **fields))
    words = [str(path), "--metric", "profile", "--reports", "3000"]
    assert "3 parts, 12 cells of 3 parts in all" in output_of(capsys, "plan", *words)
    assert main(["plan", "central", *words, "--epsilon", "1", "--max-local", "16"]) == 0
    assert 'dummies = "noise"' in capsys.readouterr().out


# Each form, with what it needs; and the options beside it that it reads, by what they begin with.
FORMS = {
    "values": ("--values 4", "reports epsilon error detect permanent simulate plot"),
    "values error": (
        "--values 4 --error .1",
        "reports epsilon whose permanent simulate plot",
    ),
    "strings": ("--strings 9", "reports epsilon error detect permanent simulate plot"),
    "mean": ("--mean 0 1", "reports epsilon error detect simulate plot"),
    "ranges": ("--ranges 4 0 1", "reports epsilon error detect simulate plot"),
    "set": ("--set 9 2", "reports epsilon error detect simulate plot"),
    "parts": ("--parts 3 4", "reports epsilon error detect simulate plot"),
    "drawn": (
        "--values 4 --simulate",
        "reports epsilon error detect permanent seed plot",
    ),
    "metric": ("--metric theme", "catalog reports epsilon error detect simulate plot strings"),
    "central": (
        "central --values 4 --epsilon 1 --reports 9000",
        "honest max-local dummies delta",
    ),
    "central model": (
        "central --model linear --features 9 --epsilon 1 --reports 9000",
        "honest max-local delta",
    ),
    "model": ("model linear --features 9", "reports epsilon"),
    "attack": ("attack", "catalog metric fake accounts targets simulate"),
    "accounts": ("attack --accounts 2", "catalog metric others targets simulate"),
    "capacity": (
        "capacity",
        "catalog metric devices per-day per-visit door peak outage cluster machine",
    ),
    "by day": (
        "capacity --per-day 1",
        "devices epoch per-visit door peak outage cluster machine",
    ),
}
OPTIONS = """
catalog.toml|--metric theme|--values 3|--strings 3|--mean 0 1|--ranges 3 0 1|--set 9 2|--parts 2 3
--reports 9|--epsilon 1|--error .1|--detect .1|--whose reporters|--permanent-epsilon 1|--simulate
--seed 2|--plot x.svg|--fake 0.01|--accounts 2|--others 9|--targets 1
--honest 0.9|--max-local 16|--dummies 7|--delta 1e-6|--features 9|--classes 3
--devices 1e8|--per-day 1|--epoch week|--per-visit 1|--door grpc|--peak 3|--outage-hours 1
--cluster-nodes 1|--machine-cores 4|--machine-gb 16
"""
"""Every option that some form reads and some other does not."""


@pytest.mark.parametrize("form", FORMS)
def test_plan_refuses_an_unused_option_by_its_name(
    form: str, catalog: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(Path(catalog).parent)
    question, reader = FORMS[form]
    options = {word for word in question.split() if word.startswith("--")}
    refused = 0
    for option in OPTIONS.replace("\n", "|").strip("|").split("|"):
        name = option.split()[0]
        if name in options or name.lstrip("-").startswith(tuple(reader.split())):
            continue
        if {name, *options} >= {"--metric", "--strings"}:
            continue  # a metric, and how many strings are looked for in it
        try:
            code = main(["plan", *question.split(), *option.split()])
        except SystemExit as ended:
            code = int(ended.code or 0)
        assert code == 2, option
        error = capsys.readouterr().err
        assert ("catalog" if option == "catalog.toml" else name.lstrip("-")) in error, error
        refused += 1
    assert refused > 15


def test_a_plan_names_the_base_of_its_shares_and_the_fields_to_write(
    catalog: str, capsys: Capture
) -> None:
    assert main(["plan", "--vector", "16", "5", "--epsilon", "2", "--reports", "1e5"]) == 0
    assert "as a share of the range, 10 wide" in capsys.readouterr().out
    crowd = ["plan", "central", "--reports", "9000", "--epsilon", "1"]
    assert main([*crowd, "--parts", "2", "3", "2"]) == 0
    assert "crowd = 9000; for tables of 3 also ways = 3" in capsys.readouterr().out
    output = output_of(capsys, *crowd, "--parts", "2", "3", "2", "2", "--dummies", "noise")
    assert 'crowd = 9000, max_local_epsilon = 16, dummies = "noise"' in output
    rows = re.findall(r"^ +((?:\d+ x )+\d+) +\d+ +([\d.]+) +([\d.]+) ", output, re.MULTILINE)
    assert [table for table, _, _ in rows][:3] == ["2 x 3", "2 x 2", "2 x 2"]
    assert float(rows[0][2]) == pytest.approx(2.83 * 2, rel=0.01), "a sum of four cells"
    assert len(rows) == 6 + 4
    listed = re.findall(r"\d x \d .* ([\d.]+) +([\d.]+)\n", output)[:6]
    errors = [float(error) for row in listed for error in row]
    assert errors == pytest.approx([6 * 2.83] * 12, rel=0.02), "six metrics share the promise"
    error = refusal_of(capsys, "plan", catalog)
    assert "to plan a metric of this catalog, add --metric NAME" in error


def test_two_forms_at_once_and_strings_of_none_are_refused(catalog: str, capsys: Capture) -> None:
    for both in (
        "attack --per-day 1",
        "capacity --fake .1",
        "model linear --features 2 --dummies 1",
    ):
        assert "unrecognized arguments: --" in refusal_of(capsys, "plan", *both.split())
    assert main(["plan", catalog, "--metric", "theme", "--strings", "5", "--reports", "900"]) == 2
    assert '--strings is only for strings; "theme" has others' in capsys.readouterr().err


def test_a_long_plan_of_percentiles_shows_its_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    moments = itertools.count(0.0, 61.0)
    monkeypatch.setattr("hubbub.cli.terminal.progress.time.monotonic", lambda: next(moments))
    question = ["plan", "--ranges", "4", "0", "9", "--percentile", "50", "--within", "0.2"]
    assert main([*question, "--epsilon", "2"]) == 0
    assert "comparing mechanisms: 1 of 3 done, 1 min\n" in capsys.readouterr().err
    assert main([*question, "--reports", "5000"]) == 0
    assert "comparing mechanisms: 1 of 3 done, 1 min\n" in capsys.readouterr().err
