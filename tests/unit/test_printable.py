"""What was said by others is shown and never obeyed: in a terminal, in CSV, in what is wrong."""

import csv
import io
import json
import logging
import re
import sys
from pathlib import Path

import pytest

from hubbub.aggregator.exported_files import inert, to_csv
from hubbub.cli.commands import rappor
from hubbub.cli.main import main
from hubbub.cli.terminal import output
from hubbub.errors.message_words import at_least, at_most, visible, visible_lines
from tests.conftest import CATALOG
from tests.support.commands import Capture, refusal_of

MANY = "\x1b\u202e\u200b\ufeff\x00\x07\x7f\x9b\u2066\u2028\u3164\U000e0101\ud800"
HOSTILE = f"\x1b[31m\u202eev\u200bil{MANY}:skull:[red]"
UNSEEN = set(MANY)


def test_invisible_and_control_characters_are_escaped_and_others_unchanged() -> None:
    assert not set(visible(HOSTILE)) & UNSEEN
    assert visible("\x1b\u202e\U000e0101\n") == r"\u001b\u202e\udb40\udd01\u000a"
    for harmless in ("größer", "日本語", "עברית", "\U0001f600", "a b", r"\u0041"):
        assert visible(harmless) == harmless
    assert visible_lines("a\n\tb\x1b") == "a\n\\u0009b\\u001b"


def test_bounds_are_rounded_to_their_safe_side_and_chances_are_never_certain() -> None:
    for bound, form, down, up in (
        (0.1 + 0.2, ".1f", "0.3", "0.3"),
        (2.7182, ".1f", "2.7", "2.8"),
        (1.0986, ".3g", "1.09", "1.1"),
        (0.0, ".3f", "0.000", "0.000"),
        (float("inf"), ".3f", "inf", "inf"),
    ):
        assert (at_least(bound, form), at_most(bound, form)) == (down, up)
    meanings = [("a", 1 - 4e-4), ("b", 3e-4), ("c", 0.0)]
    shown = "a more than 99.9%, b less than 0.1%, c 0.0%, or 2 others"
    assert output.likeliest(meanings, 2) == shown


def test_json_stays_the_same_json() -> None:
    for text in (HOSTILE.replace("\ud800", ""), "\U000e0101\x7f"):
        document = json.dumps({"a": text}, indent=1, ensure_ascii=False)
        assert json.loads(visible_lines(document)) == {"a": text}


def test_tables_and_lines_are_of_text_alone(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    output.say(HOSTILE)
    output.table(HOSTILE, [HOSTILE, "b"], [[HOSTILE, HOSTILE]])
    message_text = capsys.readouterr().out
    assert not set(message_text) & UNSEEN
    assert ":skull:[red]" in message_text, "no emoji, no markup"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    output.table("title", ["a", "b"], [[HOSTILE, HOSTILE]])
    message_text = capsys.readouterr().out
    assert "\x1b[1mtitle\x1b[0m" in message_text, "bold, of our own"
    assert not set(re.sub("\x1b\\[[01]m", "", message_text)) & UNSEEN


def test_no_command_shows_a_catalogs_control_characters(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "metrics.toml"
    hostile = r"\u001b[31m\u202eevil\u200b\ufeff\u0007"
    path.write_text(
        CATALOG.replace('"Colour theme in use', f'"{hostile} theme in use', 1).replace(
            '"light"', f'"{hostile}"', 1
        )
    )
    for command in (
        ["catalog", "check", str(path)],
        *(
            ["privacy", "card", str(path), "--format", f]
            for f in ("table", "markdown", "html", "json")
        ),
        ["plan", str(path)],
    ):
        main(command)
        output = capsys.readouterr()
        assert not set(output.out + output.err) & UNSEEN, command
    path.write_text(CATALOG.replace("[metrics.theme]", f'[metrics."{hostile}"]'))
    assert main(["catalog", "check", str(path)]) == 2
    output = capsys.readouterr()
    assert not set(output.err) & UNSEEN
    assert "rename the metric" in output.err
    assert not set(refusal_of(capsys, "catalog", "check", "\x1b]0;title\x07\u202e")) & UNSEEN
    assert not set(refusal_of(capsys, "catalog", "check", "a", "\x1b]0;title\x07\u202e")) & UNSEEN


def test_logs_of_services_and_of_the_client_are_text_alone(capfd: Capture) -> None:
    from hubbub.client.stderr_log import log_to_stderr
    from hubbub.runtime.monitoring.logs import write_logs

    root, log = logging.getLogger(), logging.getLogger("hubbub.client")
    before = list(root.handlers), root.level, list(log.handlers), log.level
    try:
        write_logs("text")
        log_to_stderr("info")
        logging.getLogger("hubbub.client").warning("%s", HOSTILE)
    finally:
        root.handlers, root.level, log.handlers, log.level = before
    errors = capfd.readouterr().err
    assert errors.count("WARNING") == 2
    assert not set(errors) & UNSEEN


FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "\u00a0=1",
    "\ufeff=1",
    "\u200b=1",
    "\u202e=1",
    "\uff1d1",
    "\uff0b1",
    "\uff0d1",
    "\uff20A",
    " \uff1d1",
    "\ufe661",
    "\u2212" + "1",
    "\x00=1",
    " \t\u200b\ufeff \uff1d1",
    "\tx",
    "\rx",
    "\nx",
    "\u3164=1",
    "\U000e0101=1",
    "\u3000+1",
]


@pytest.mark.parametrize("text", FORMULAS, ids=ascii)
def test_no_cell_of_csv_is_a_formula_after_any_prefix(text: str) -> None:
    _, (cell,) = csv.reader(io.StringIO(to_csv([{"a": text}]), newline=""))
    assert cell == "'" + text
    out = io.StringIO()
    rappor.write_results(out, iter([(text, 1, 1, 0, 0, 0, 0, 0, "true")]))
    assert next(csv.reader(io.StringIO(out.getvalue().partition("\n")[2], newline="")))[0] == cell


@pytest.mark.parametrize("text", ["", "a=1", " x", "1", "5-3", "ü", "a@b", "(=1)", "\u200bx"])
def test_a_text_that_is_no_formula_is_unchanged(text: str) -> None:
    assert inert(text) == text


def test_no_value_begins_a_row_of_its_own() -> None:
    for text in ("x\r=1+1", "x\n=1+1", "x\r\n=1+1"):
        assert to_csv([{"a": text, "b": 1}]) == f'a,b\n"{text}",1\n'


def test_a_caller_that_left_before_its_answer_fills_no_log(capfd: Capture) -> None:
    from hubbub.runtime.monitoring.logs import write_logs

    root = logging.getLogger()
    before = list(root.handlers), root.level
    try:
        write_logs("text")
        of_grpc = logging.getLogger("grpc._cython.cygrpc")
        of_grpc.error("%s raised in core by servicer method [%s]", "ExecuteBatchError", "/a/B")
        of_grpc.error("Unexpected [ValueError] raised by servicer method [/a/B]")
    finally:
        root.handlers, root.level = before
    errors = capfd.readouterr().err
    assert "ExecuteBatchError" not in errors
    assert "ValueError" in errors
