"""Wrong calls of a newcomer: each is refused with what, where, and the remedy."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hubbub.cli.main import main
from tests.support.commands import Capture, document_of, output_of, refusal_of

NEW = "catalog new a --description A --owner a@example.org"
NO_FOLDER = "No such file or directory; check the path; the folder of a file must exist"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _new_catalog(capsys: Capture) -> None:
    output_of(capsys, *NEW.replace("new a", "new theme").split(), "--values", "light,dark")


@pytest.mark.parametrize(
    ("typed", "where"),
    [
        (f"{NEW} --values b,c --catalog none/m.toml", "none/m.toml"),
        ("catalog codegen metrics.toml --python none/a.py", "--python none/a.py"),
        ("keys session none/file", "none/file"),
        ("keys token none/file --name n", "none/file"),
        ("keys account none/file --name n", "none/file"),
        ("plan --values 4 --epsilon 1 --reports 1e4 --plot none/a.svg", "--plot none/a.svg"),
    ],
)
def test_a_file_in_no_folder_is_refused_with_a_remedy(
    typed: str, where: str, capsys: Capture
) -> None:
    _new_catalog(capsys)
    assert f"{where}: cannot be written: {NO_FOLDER}" in refusal_of(capsys, *typed.split())


@pytest.mark.parametrize(
    "typed",
    [
        "simulate theme --values none.csv --previous none",
        "catalog build --keys keys --previous none",
        "query theme --url http://127.0.0.1:1 --authority none",
    ],
)
def test_a_file_that_is_named_but_missing_is_refused(typed: str, capsys: Capture) -> None:
    _new_catalog(capsys)
    option = typed.split()[-2]
    refused = refusal_of(capsys, *typed.split())
    assert f"{option} none: does not exist; check the path, or leave it out" in refused


def test_an_error_that_no_number_of_reports_reaches_has_no_recommendation(capsys: Capture) -> None:
    typed = "plan --values 2 --epsilon 1 --error 1e-12"
    refused = refusal_of(capsys, *typed.split())
    assert "no number of reports up to 1e+15 reaches this goal at epsilon 1; accept" in refused


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("plan --parts 1 2 --epsilon 1 --reports 9", "--parts: write the number of values of each"),
        ("plan --parts 2 --epsilon 1 --reports 9", "--parts: write the number of values of each"),
        (
            "plan --values 2 --strings 3 --epsilon 1 --reports 9",
            "--values and --strings are 2 questions: leave all but one out",
        ),
        (
            "mark add a/b --on 2026-11-22 --url http://127.0.0.1:1",
            "the name 'a/b' has a /, which no name has: leave it out",
        ),
        ("verify nofile", "nofile: is not a folder; give that of a backup"),
        (
            "plan --set 5 40 --epsilon 1 --reports 9",
            "--set: 40 of 5 values is impossible; the number of values comes first: swap the two",
        ),
        ("plan --values 2 --epsilon 0.0001 --reports 9", "--epsilon 0.0001 is outside ["),
        ("plan model ridge --features 3 --epsilon 99", "--epsilon 99 is outside ["),
        ("privacy amplify --epsilon -1 --reports 9", "--epsilon -1 is outside (0, 16]"),
        (f"{NEW} --edges 10,5.5,1", "--edges: must ascend: write 1, 5.5, 10"),
        ("candidates add theme none", "cannot be read: No such file or directory; check the path"),
    ],
)
def test_a_refusal_names_the_typed_text(typed: str, message: str, capsys: Capture) -> None:
    assert message in refusal_of(capsys, *typed.split())


def test_an_empty_tier_is_refused(capsys: Capture) -> None:
    refused = refusal_of(capsys, "query", "theme/", "--url", "http://127.0.0.1:1")
    assert '"theme/" ends without a tier; write theme, or theme/EPSILON' in refused


@pytest.mark.parametrize("command", ["new", "tls", "gateway", "issuer", "witness --name w"])
def test_keys_in_a_file_are_refused_with_a_remedy(command: str, capsys: Capture) -> None:
    Path("file").touch()
    action, *options = command.split()
    refused = refusal_of(capsys, "keys", action, "file", *options)
    assert "cannot be written: File exists; something else is there: name another place" in refused


def test_existing_keys_and_certificates_are_refused_with_the_renewal(
    capsys: Capture,
) -> None:
    for words, remedy in (
        (["keys", "new", "keys"], "hubbub keys rotate keys"),
        (["keys", "tls", "tls"], "hubbub keys tls tls --renew"),
    ):
        output_of(capsys, *words)
        assert "choose another folder, or" in (refused := refusal_of(capsys, *words))
        assert remedy in refused
        output_of(capsys, *remedy.split()[1:])


def test_a_named_folder_that_is_no_folder_is_a_fault_and_that_of_init_needs_its_address(
    capsys: Capture,
) -> None:
    assert main(["doctor", "--home", "nowhere", "--tls", "nothing"]) == 1
    printed = capsys.readouterr().out
    assert "nowhere: is not a folder" in printed
    assert "nothing: is not a folder" in printed
    _new_catalog(capsys)
    output_of(capsys, "init", "made")
    assert main(["doctor", "--home", "made"]) == 1
    printed = capsys.readouterr().out
    assert "made was made by hubbub init: start its services, and give --url https://" in printed
    assert "hubbub up" not in printed


@contextmanager
def _standard_input(content: bytes) -> Iterator[None]:
    """A pipe with this content, as the descriptor 0 and as sys.stdin."""
    earlier, (read_end, write_end) = os.dup(0), os.pipe()
    os.write(write_end, content)
    os.close(write_end)
    os.dup2(read_end, 0)
    os.close(read_end)
    try:
        with pytest.MonkeyPatch.context() as patch, open(0, closefd=False) as standard_input:
            patch.setattr(sys, "stdin", standard_input)
            yield
    finally:
        os.dup2(earlier, 0)
        os.close(earlier)


PEOPLE = ("light,3000\ndark,2000\n", "day,value,count\n2026-11-22,light,3000\n")


@pytest.mark.parametrize(
    ("option", "people"), [*(("--values", people) for people in PEOPLE), ("--catalog", PEOPLE[0])]
)
def test_a_rehearsal_reads_a_pipe_as_it_reads_a_file(
    people: str, option: str, capsys: Capture
) -> None:
    _new_catalog(capsys)
    Path("people.csv").write_text(people)
    words = ["simulate", "theme", "--values", "people.csv", "--runs", "2", "--seed", "1", "--json"]
    expected = document_of(capsys, *words)
    content = people.encode() if option == "--values" else Path("metrics.toml").read_bytes()
    for path in ("-", "/dev/stdin"):
        with _standard_input(content):
            assert document_of(capsys, *words, option, path)["runs"] == expected["runs"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("--values 4 --reports 10", 'values = ["a", "b", "c", "d"]'),
        (
            "--values 4 --reports 500 --max-local 0.9 --delta 1e-6 --honest 0.5",
            'values = ["a", "b"]',
        ),
        ("--values 4 --reports 5000", 'values = ["a", "b", "c", "d"]'),
        ("--values 4 --reports 300 --dummies 50", 'values = ["a", "b", "c", "d"]'),
        pytest.param(
            "--values 2 --reports 300 --dummies noise",
            'values = ["a", "b"]',
            marks=pytest.mark.thorough,
        ),
        ("--values 4 --reports 300 --dummies devices", 'values = ["a", "b", "c", "d"]'),
        pytest.param("--strings 4 --reports 500", "", marks=pytest.mark.thorough),
        pytest.param(
            "--parts 3 2 --reports 500",
            'parts = { a = ["x", "y", "z"], b = ["x", "y"] }',
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            "--mean 0 10 --reports 500",
            'kind = "number"\nlow = 0.0\nhigh = 10.0',
            marks=pytest.mark.thorough,
        ),
        (
            "--ranges 4 0 10 --reports 5000",
            'kind = "number"\nlow = 0.0\nhigh = 10.0\nbuckets = 4\nmechanism = "wave"',
        ),
    ],
)
def test_a_catalog_takes_the_fields_that_a_plan_advises(
    question: str, kind: str, capsys: Capture
) -> None:
    planned = output_of(capsys, "plan", "central", "--epsilon", "1.5", *question.split())
    _, _, advice = planned.partition("in metrics.toml: ")
    fields = advice.partition("\n")[0].partition(";")[0].replace(", ", "\n")
    if "mechanism" not in fields + kind:
        fields += '\nmechanism = "auto"'
    Path("metrics.toml").write_text(
        'shuffler = "shuffler.example.org:443"\n[metrics.a]\ndescription = "A"\n'
        'owner = "a@example.org"\nexpires = 2999-01-01\nepoch = "day"\n'
        f"limits = {{ reports_per_epoch = 1, lifetime_epsilon = 500.0 }}\n"
        f"{kind}\n{fields}\n"
    )
    assert "no problem found" in output_of(capsys, "catalog", "check")


@pytest.mark.parametrize(
    "typed",
    [
        "--values 4 --reports 5000 --delta 1",
        "--values 4 --reports 5000 --honest 0",
        "--values 4 --reports 5",
        "--values 4 --reports 1e7",
        "--model linear --features 3 --reports 5000 --delta 1",
        "--model linear --features 3 --reports 5000 --honest 0",
    ],
)
def test_a_promise_that_no_catalog_may_contain_is_not_planned(typed: str, capsys: Capture) -> None:
    words = ["plan", "central", "--epsilon", "1", *typed.split()]
    assert f"{typed.split()[-2]} " in (refused := refusal_of(capsys, *words))
    assert re.search(r"in a catalog, \w+ must be", refused)


@pytest.mark.parametrize("epsilon", ["0.001", "1.5", "16"])
def test_strings_are_planned_at_every_epsilon(epsilon: str, capsys: Capture) -> None:
    output_of(capsys, *["plan", "--strings", "10", "--reports", "500", "--epsilon"], epsilon)


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("--range 0 1 --buckets 1000", "--buckets 1000 is outside [2, 256]; with --percentiles"),
        ("--values b,c --experiment x --arms b=-2", "with weights, whole numbers from 0 on"),
    ],
)
def test_a_wrong_number_of_a_new_metric_is_refused_by_its_option(
    typed: str, problem: str, capsys: Capture
) -> None:
    assert problem in refusal_of(capsys, *NEW.split(), *typed.split())


def test_a_day_that_does_not_exist_is_refused_by_its_line(capsys: Capture) -> None:
    _new_catalog(capsys)
    Path("days.csv").write_text("day,value\n2026-02-30,light\n")
    refused = refusal_of(capsys, "simulate", "theme", "--values", "days.csv")
    assert "days.csv: line 2: write a day that exists" in refused
