"""Wrong calls of a newcomer: each is refused with what, where, and the remedy."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.cli.main import main
from tests.support.commands import output_of, refusal_of

NEW = "catalog new a --description A --owner a@example.org"
NO_FOLDER = "No such file or directory; check the path; the folder of a file must exist"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _new_catalog(capsys: pytest.CaptureFixture[str]) -> None:
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
    typed: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _new_catalog(capsys)
    assert f"{where}: cannot be written: {NO_FOLDER}" in refusal_of(capsys, *typed.split())


@pytest.mark.parametrize("command", ["new", "tls", "gateway", "issuer", "witness --name w"])
def test_keys_in_a_file_are_refused_with_a_remedy(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").touch()
    action, *options = command.split()
    refused = refusal_of(capsys, "keys", action, "file", *options)
    assert "cannot be written: File exists; something else is there: name another place" in refused


def test_keys_and_certificates_that_exist_are_refused_with_what_renews_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, remedy in (
        (["keys", "new", "keys"], "hubbub keys rotate keys"),
        (["keys", "tls", "tls"], "hubbub keys tls tls --renew"),
    ):
        output_of(capsys, *words)
        assert "choose another folder, or" in (refused := refusal_of(capsys, *words))
        assert remedy in refused
        output_of(capsys, *remedy.split()[1:])


def test_a_folder_that_is_named_and_is_none_is_a_fault(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["doctor", "--home", "nowhere", "--tls", "nothing"]) == 1
    printed = capsys.readouterr().out
    assert "nowhere: is not a folder" in printed
    assert "nothing: is not a folder" in printed


PEOPLE = ("light,3000\ndark,2000\n", "day,value,count\n2026-11-22,light,3000\n")


@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("option", ["--values", "--catalog"])
def test_a_rehearsal_reads_a_pipe_as_it_reads_a_file(
    people: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _new_catalog(capsys)
    Path("people.csv").write_text(people)
    words = ["simulate", "theme", "--values", "people.csv", "--runs", "2", "--seed", "1", "--json"]
    expected = json.loads(output_of(capsys, *words))
    content = people.encode() if option == "--values" else Path("metrics.toml").read_bytes()
    for path in ("-", "/dev/stdin"):
        piped = subprocess.run(
            [sys.executable, "-m", "hubbub.cli", *words, option, path],
            input=content,
            capture_output=True,
            check=True,
        )
        assert json.loads(piped.stdout)["runs"] == expected["runs"]
