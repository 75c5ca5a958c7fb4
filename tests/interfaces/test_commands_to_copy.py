"""Take it with you: what is printed for shell and notebook gives the same numbers as it stands."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hubbub.aggregator.query.epoch_range import EpochRange
from hubbub.aggregator.query.estimating import EstimateQuery
from hubbub.aggregator.web.commands_to_copy import Reached, commands
from hubbub.installation.local_run import program, shell_path
from tests.interfaces.running_aggregator import STRINGS, House
from tests.support import web
from tests.support.pasted_code import in_notebook, in_shell


@pytest.mark.parametrize(
    ("metric", "parameters", "strings"),
    [
        ("theme", {}, []),
        ("theme", {"tier": "0.5", "last": "7d", "confidence": "0.9"}, []),
        ("theme", {"anytime": "true"}, []),
        ("homepage", {"epochs": "yesterday"}, [*STRINGS, 'it\'s "$HOME" & `more`']),
    ],
)
def test_printed_commands_run_without_tokens(
    home: House, tmp_path: Path, metric: str, parameters: dict[str, str], strings: list[str]
) -> None:
    def answer_over_http(question: str) -> Any:
        url, body = f"{home.page}/v1/metrics/{metric}/{question}", {"candidates": strings}
        response = web.post(url, params=parameters, json=body) if strings else None
        return (response or web.get(url, params=parameters)).json()

    command_lines, estimates = answer_over_http("commands"), answer_over_http("estimates")
    by_name = {value["value"]: value for value in estimates["values"]}
    in_json = f"{command_lines['shell']} --format json"
    by_command = json.loads(in_shell(in_json, tmp_path))
    assert {value["value"]: value for value in by_command["values"]} == by_name
    by_notebook = in_notebook(command_lines["notebook"])
    assert {value["value"]: value for value in by_notebook["values"]} == by_name
    assert by_command["dates"] == by_notebook["dates"] == estimates["dates"]


def test_newest_is_the_epoch_that_was_shown_and_names_are_no_code() -> None:
    query = EstimateQuery(range=EpochRange(epochs="newest"), candidates=("a'; rm -rf /; '",))
    command_lines = commands("theme", query, "2026-11-22", Reached("https://h", tokens=True))
    assert "epochs='2026-11-22'" in command_lines.notebook
    line = command_lines.shell.splitlines()[-1]
    assert line == "hubbub query theme --epochs=2026-11-22 --candidates=strings.txt --url https://h"
    assert 'environ["HUBBUB_TOKEN"]' in command_lines.notebook
    reached = Reached("http://h", tokens=False)
    often = commands("theme", EstimateQuery(anytime=True), "2026-11-22", reached)
    assert "--anytime" in often.shell
    assert "anytime=True" in often.notebook
    many = EstimateQuery(candidates=tuple(map(str, range(201))))
    assert "save them as a list" in commands("page", many, "", reached).shell


def test_a_command_has_no_absolute_path_where_a_shorter_name_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shell_path(tmp_path / "a home") == "'a home'"
    assert shell_path(Path("/elsewhere/home")) == "/elsewhere/home"
    script = Path(sys.executable).with_name("hubbub")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == str(script)
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "hubbub"


def test_an_invalid_origin_is_refused(home: House) -> None:
    url = f"{home.page}/v1/metrics/theme/commands"
    response = web.get(url, params={"origin": "https://stats.example.org"}).json()
    assert "connect('https://stats.example.org')" in response["notebook"]
    for wrong in ("javascript:alert(1)", "https://a/';rm", "https://a b"):
        assert web.get(url, params={"origin": wrong}).status_code == 422
