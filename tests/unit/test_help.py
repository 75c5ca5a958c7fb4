"""Help of the command line: every option of every command says what it is."""

import argparse
import itertools
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.aggregator.settings import parser as aggregator_parser
from hubbub.cli.main import main, whole_parser
from hubbub.cli.terminal import progress
from hubbub.relay.settings import parser as relay_parser
from hubbub.shuffler.settings import parser as shuffler_parser
from tests.support.commands import Capture, output_of, refusal_of


def _options(parser: argparse.ArgumentParser, path: str) -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, subparser in action.choices.items():
                yield from _options(subparser, f"{path} {name}")
        else:
            yield path, action


def test_every_option_is_described() -> None:
    options = [*_options(whole_parser(), "hubbub")]
    assert len(options) > 500
    for path, action in options:
        purpose = (action.help or "").partition("(")[0].strip()
        assert purpose, f"{path}: {'/'.join(action.option_strings) or action.dest} has no help"


def _commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    if parser.get_default("run"):
        yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                yield from _commands(subparser)


def test_every_command_has_valid_examples() -> None:
    whole = whole_parser()
    commands = [*_commands(whole)]
    assert len(commands) > 60
    for command in commands:
        _, _, examples = (command.epilog or "").partition("examples:\n")
        assert f"  {command.prog} " in f"{examples} ".replace("\n", " \n"), command.prog
        for example in examples.splitlines():
            assert len(example) <= 100
            words = shlex.split(example.strip().split("   ")[0])
            assert words[0] == "hubbub"
            whole.parse_args(words[1:])


def test_no_command_shows_help_and_a_slip_what_was_meant(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert "usage: hubbub" in capsys.readouterr().out
    assert 'no command "statu"; did you mean "status"?' in refusal_of(capsys, "statu")
    err = refusal_of(capsys, "\x1b[31mzzz")
    assert "hubbub --help lists them" in err
    assert "\x1b" not in err
    for slip in (["privacy", "crad"], ["privacy", "crad", "metrics.toml"]):
        err = refusal_of(capsys, *slip)
        assert "hubbub privacy: error" in err
        assert "there is no 'crad'; did you mean \"card\"?" in err
    assert "hubbub privacy card metrics.toml" in refusal_of(capsys, "privacy", "metrics.toml")


def test_verify_needs_no_version(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("hubbub.programs.installed_hashes.verify", lambda: (["whole"], True))
    for words in (["--verify"], ["--version", "--verify"]):
        assert output_of(capsys, *words) == "whole\n"


def test_help_names_every_command_once_by_its_purpose() -> None:
    parser = whole_parser()
    [subparsers] = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    lines = parser.format_help().partition("by purpose:")[2].strip().splitlines()
    named = [name for line in lines for name in line.strip()[13:].split(", ")]
    assert sorted(named) == sorted(subparsers.choices)


def test_plan_capacity_needs_no_catalog_and_names_its_assumptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "one report per device and day" in output_of(capsys, "plan", "capacity")
    for command in ("plan attack", "plan --metric theme"):
        refusal = refusal_of(capsys, *command.split())
        assert "metrics.toml does not exist here: name a catalog" in refusal
        assert "hubbub catalog new NAME writes one" in refusal
        assert "plan attack" not in refusal
    assert "for example: hubbub plan --values 128" in refusal_of(capsys, "plan")


def test_watch_says_that_it_waits_for_a_service_that_does_not_run(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hubbub.cli.terminal.output.time.sleep", interrupt)
    for command in (["watch", "theme"], ["watch"], ["status", "--watch"]):
        assert main([*command, "--url", "http://127.0.0.1:9"]) == 130
        assert "; waiting until it starts; Ctrl-C ends" in capsys.readouterr().out


def test_in_a_pipe_progress_is_a_line_a_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    moments = iter(range(0, 10_000, 25))
    monkeypatch.setattr("hubbub.cli.terminal.progress.time.monotonic", lambda: float(next(moments)))
    assert list(progress.tracked(range(6), 6, "proofs")) == list(range(6))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["proofs: 3 of 6 done, 1 min", "proofs: 6 of 6 done, 2 min"]


def test_a_long_command_announces_its_duration_and_a_remedy_after_one_step(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    moments = iter((0.0, 2.1, 4.2, 0.0, 0.1, 0.2))
    monkeypatch.setattr("hubbub.cli.terminal.progress.time.monotonic", lambda: next(moments))
    runs = progress.tracked(range(200), 200, "rehearsing", "fewer --runs take less")
    assert [next(runs), next(runs)] == [0, 1]
    runs.close()  # type: ignore[attr-defined]
    error = "rehearsing: all 200 take about 7 minutes; fewer --runs take less\n"
    assert capsys.readouterr().err == error
    assert list(progress.tracked(range(2), 2, "rehearsing", "fewer --runs take less")) == [0, 1]
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("step", "announced"), [(0.004, ""), (0.1, "2 minutes"), (1.49, "25 minutes")]
)
def test_a_first_step_that_is_slower_than_the_others_announces_nothing(
    step: float, announced: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    moments = itertools.chain([0.0], itertools.count(1.0, step))
    monkeypatch.setattr("hubbub.cli.terminal.progress.time.monotonic", lambda: next(moments))
    runs = progress.tracked(range(1000), 1000, "rehearsing", "fewer --runs take less")
    for _ in itertools.islice(runs, 600):
        pass
    printed = capsys.readouterr().err.partition("; ")[0]
    assert printed.removeprefix("rehearsing: all 1,000 take about ") == announced


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("query", "theme", "--confidence", "95%"), "'95%' is not a number; write 0.95"),
        (("query", "theme", "--confidence", "0,9"), "'0,9' is not a number; write 0.9"),
        (("watch", "--every", "often"), "'often' is not a number; write one like 0.5"),
        (("top", "theme", "-n", "ten"), "'ten' is not a whole number; write one like 100"),
        (("forget", "theme", "--before", "tomorrow"), "'tomorrow' is not a date; write YYYY-MM-DD"),
        (("forget", "theme", "--before", "2026-11-31"), "2026-11-31 does not exist in"),
        (("query", "theme", "--format", "jsn"), "there is no 'jsn'; did you mean \"json\"?"),
        (("keys", "tls", ""), "argument folder: '' is not a path; write a path"),
        (("keys", "tls", "t", "--authorities", ""), "argument --authorities: '' is not a path"),
        (("catalog", "build", "--keys", "k", "--out", ""), "argument --out: '' is not a path"),
        (("keys", "new", "k", "--days", "1" * 400), "--days: '1111"),
        (("privacy", "amplify", "--epsilon", "1", "--reports", "2.5"), "write one like 100 or 1e6"),
        (("keys", "token", "t", "--days", "2.5"), "write one like 100 or 1e6"),
        (("audit", "--samples", "2.5"), "write one like 100 or 1e6"),
        (("up", "--port", "2.5"), "write one like 100 or 1e6"),
        (("plan", "--values", "2.5"), "write one like 100 or 1e6"),
        (("mark",), "required: ACTION (choose from "),
        (("catalog", "chekc"), "there is no 'chekc'; did you mean \"check\"?"),
    ],
)
def test_a_wrong_number_day_or_choice_is_refused_with_a_sentence(
    arguments: tuple[str, ...], message: str, capsys: Capture
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("keys", "tls", "."), "folder . has no name at its end; add one, as in ./NAME"),
        (("keys", "tls", "/"), "folder / has no name at its end"),
        (("catalog", "build", "--keys", "k", "--out", "."), "--out . has no name at its end"),
        (("catalog", "build", "--keys", "k", "--out", ".."), "--out .. has no name at its end"),
        (("model", "publish", "--out", "."), "--out .: cannot be written: Is a directory"),
        (("catalog", "new", "a", "--catalog", "/"), "--catalog / has no name at its end"),
    ],
)
def test_a_path_that_others_are_placed_beside_must_have_a_name(
    words: tuple[str, ...], message: str, capsys: Capture
) -> None:
    assert message in refusal_of(capsys, *words)


def test_services_refuse_wrong_numbers_and_unknown_options_with_the_same_text(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for parser, wrong in (
        (shuffler_parser(), ("--peer-rate", "many")),
        (aggregator_parser(), ("--http-rate", "many")),
        (relay_parser(), ("--peer-rate", "many")),
    ):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)
        assert "'many' is not a number; write one like 0.5" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["hubbub relay", "--per-rate=1"])
    with pytest.raises(SystemExit):
        relay_parser().parse_args()
    assert '--per-rate=1; did you mean "--peer-rate"?' in capsys.readouterr().err, "not what lacks"


@pytest.mark.parametrize(
    ("typed", "whose"),
    [
        (["ledger", "--home"], "hubbub ledger"),
        (["keys", "token", "tokens.json", "--list"], "hubbub keys token"),
        (["keys", "new", "--foo"], "hubbub keys new"),
    ],
)
def test_an_unknown_option_is_refused_by_its_command_in_two_lines(
    typed: list[str], whose: str, capsys: Capture
) -> None:
    errors = refusal_of(capsys, *typed)
    message, remedy = errors.splitlines()
    assert message.startswith(f"{whose}: error: unrecognized arguments: {typed[-1]}")
    assert remedy == f"see {whose} --help"


FURTHER = "error: unrecognized arguments:"


@pytest.mark.parametrize(
    ("typed", "remedy"),
    [
        ("cross m a b c d", f"{FURTHER} d; it takes at most 4 arguments: metric PART PART PART\n"),
        ("status theme", f"{FURTHER} theme; it takes no arguments\n"),
        ("up metrics.toml", "metrics.toml: name the catalog by an option: --catalog metrics.toml"),
        ("init house metrics.toml", "name the catalog by an option: --catalog metrics.toml"),
        ("init metrics.toml", "name the catalog by an option: --catalog metrics.toml"),
        ("catalog new metrics.toml", "name the catalog by an option: --catalog metrics.toml"),
        ("simulate my.toml theme --values v.csv", "by an option: --catalog my.toml"),
        ("catalog check --catalog m.toml", "an argument without a name: leave --catalog out"),
        ("plan attack --catalog m.toml", "an argument without a name: leave --catalog out"),
        ("compare m --before=A --after B", "compare --before is --epochs; compare --after is --to"),
        ("query theme --confidance", 'arguments: --confidance; did you mean "--confidence"?'),
        ("query theme --confidance=.9", '--confidance=.9; did you mean "--confidence"?'),
        ("model", "required: model\n"),  # "publish" is an action, not a model
        ("completion", "required: shell (choose from bash, "),
        ("top theme --limit 5", f"{FURTHER} --limit 5\n"),  # only its dashes are in other options
        ("top theme --lst a", "--lst a; did you mean"),
        ("backup b --recipient a", f"{FURTHER} --recipient\n"),  # --for or --passphrase is missing
        ("notice --stop theme", f"{FURTHER} --stop; --stop is an option of: hubbub notice make\n"),
        ("query --metric theme", "an argument without a name: leave --metric out"),
        ("plan cental --epsilon 1", """there is no 'cental'; did you mean "central"?"""),
    ],
)
def test_common_wrong_commands_are_refused_with_the_right_one(
    typed: str, remedy: str, capsys: Capture
) -> None:
    assert remedy in refusal_of(capsys, *typed.split())


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("audit", "it must be in this log"),
        ("cosign", "bundle of an app; it names the log"),
        ("publish", "bundle of the app, which is in this log"),
    ],
)
def test_each_action_on_a_log_describes_its_own_bundle(
    action: str, text: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["log", action, "--help"])
    assert text in capsys.readouterr().out


def test_a_key_path_that_is_no_folder_is_refused_without_an_error_number(
    tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "file"
    file.touch()
    printed = refusal_of(capsys, "keys", "gateway", str(file))
    assert "cannot be written: File exists; something else is there" in printed
    assert "Errno" not in printed
    assert main(["keys", "account", str(tmp_path), "--name", "a"]) == 2
    assert "make one with: hubbub keys account FILE --name NAME" in capsys.readouterr().err
