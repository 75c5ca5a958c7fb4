"""Options of commands: fields of a dataclass, and the parser made of them."""

from datetime import date
from math import inf
from pathlib import Path
from typing import Any, Literal

import pytest

from hubbub.errors import BadParameter
from hubbub.fields.rules import Interval
from hubbub.programs.command_line import Parser, add_commands, command
from hubbub.programs.option_parsing import Exclusive, Group, argument, option, options

_EITHER = Exclusive(required=True)


@options
class Door:
    listen: str = option("where", name="--http-listen", default="")


@options
class Everything:
    catalog: Path = argument("a file", default=Path("metrics.toml"))
    door: Door
    share: float = option("a share", default=0.5, within=Interval(0, 1, "(]"))
    most: int | None = option("a number", other_name="-n", default=None, within=Interval(1, 10_000))
    every: float = option("seconds", default=1.0, within=Interval(0, inf, "()"))
    names: tuple[str, ...] = option("repeated", name="--name", default=())
    ends: tuple[float, float] = option("two", default=(0.0, 1.0), group=Group("ends"))
    kind: Literal["table", "json"] = option("one of two", default="table")
    quick: bool = option("a switch", default=False, exclusive=_EITHER)
    slow: bool = option("another", default=False, exclusive=_EITHER)
    day: date | None = option("a day", default=None)
    draws: int | None = option("perhaps without a number", default=None, bare=0)
    loss: float = option("or inf", default=1.0, within=Interval(0.5, inf))
    pause: float = option("long", default=1.0, within=Interval(0.1, 3600), unit="seconds")


def _parsed(*words: str) -> Any:
    option_sets: list[Everything] = []

    def run(options: Everything) -> int:
        option_sets.append(options)
        return 0

    parser = Parser(prog="it")
    commands = parser.add_subparsers(required=True)
    add_commands(commands, [command("one two")(run)])
    namespace = parser.parse_args(["one", "two", *words])
    assert namespace.run(namespace) == 0
    return option_sets[0]


def test_a_whole_number_may_have_an_exponent() -> None:
    assert _parsed("--quick", "--most", "1e3").most == 1000


def test_an_option_may_have_another_name() -> None:
    assert _parsed("--quick", "-n", "7") == _parsed("--quick", "--most", "7")


def test_a_missing_option_has_the_default_of_its_field() -> None:
    assert _parsed("--quick") == Everything(door=Door(), quick=True)


def test_every_kind_of_annotation_is_read() -> None:
    typed = "m.toml --http-listen h:1 --share 1 --most 7 --name a --name b --ends 2 3 --kind json"
    typed += " --day 2026-11-22"
    assert _parsed(*typed.split(), "--slow", "--draws") == Everything(
        catalog=Path("m.toml"),
        door=Door(listen="h:1"),
        share=1.0,
        most=7,
        names=("a", "b"),
        ends=(2.0, 3.0),
        kind="json",
        slow=True,
        day=date(2026, 11, 22),
        draws=0,
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--share", "0"], "--share 0 is outside (0, 1]"),
        (["--share", "nan"], "--share nan is outside (0, 1]"),
        (["--most", "20000"], "--most 20000 is outside [1, 10000]"),
        (["--every", "0"], "--every 0 is not above 0"),
        (["--every", "inf"], "--every inf is outside (0, inf)"),
        (["--every", "nan"], "--every nan is outside (0, inf)"),
        (["--loss", "nan"], "--loss nan is outside [0.5, inf]"),
        (["--loss", "0"], "--loss 0 is below 0.5"),
        (["--pause", "0"], "--pause 0 is outside [0.1, 3600] seconds"),
        (["--most", "10000001"], "--most 10000001 is outside [1, 10000]"),
        (["--most", "1e39"], f"--most 1{'0' * 39} is outside [1, 10000]"),
    ],
)
def test_a_number_outside_its_interval_is_refused_by_the_options_name(
    words: list[str], message: str
) -> None:
    with pytest.raises(BadParameter) as refused:
        _parsed("--quick", *words)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--quick", "--shere", "1"], 'did you mean "--share"?'),
        (["--quick", "--kind", "jsan"], 'did you mean "json"?'),
        (["--quick", "--share", "5%"], "'5%' is not a number; write 0.05"),
        (["--quick", "--day", "soon"], "'soon' is not a date; write YYYY-MM-DD"),
        (["--quick", "--day", "2026-W48"], "'2026-W48' is not a date; write YYYY-MM-DD"),
        (["--quick", "--most", "2.5"], "'2.5' is not a whole number; write one like 100 or 1e6"),
        (["--quick", "--most", "nan"], "'nan' is not a whole number"),
        (["--quick", "--most", "1" * 41], f"'{'1' * 40}'... has more than 40 digits; write a"),
        (["--quick", "--most", "1" * 5000], f"'{'1' * 40}'... has more than 40 digits; write a"),
        (["--quick", "--most", "1e999999999"], "'1e999999999' has more than 40 digits"),
        (["--quick", "--slow"], "not allowed with"),
        ([], "one of the arguments --quick --slow is required"),
    ],
)
def test_a_misspelled_word_is_refused_with_the_right_one(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        _parsed(*words)
    assert message in capsys.readouterr().err


def _run_outer(
    path: Path = argument("a file", default=Path("metrics.toml")),
    few: int = option("a number", default=1),
    deep_few: int = option("a number of few", default=1, needs="few"),
) -> int:
    return few + len(path.name) if deep_few else 0


def _run_inner(share: float = option("a share", default=0.5)) -> int:
    return int(100 * share)


def _outcome(*words: str) -> int:
    parser = Parser(prog="it")
    commands = [
        command("plan")(_run_outer),
        command("plan inner", text="further")(_run_inner),
    ]
    add_commands(parser.add_subparsers(required=True), commands)
    namespace = parser.parse_args(["plan", *words])
    code: int = namespace.run(namespace)
    return code


def test_a_command_with_actions_runs_itself_without_an_action() -> None:
    assert _outcome() == 1 + len("metrics.toml")
    assert _outcome("it.toml", "--few", "5") == 5 + len("it.toml")
    assert _outcome("--few", "5", "inner") == 5 + len("inner")
    assert _outcome("inner") == 50
    assert _outcome("inner", "--share", ".1") == 10


def test_an_option_of_an_action_is_refused_with_the_action(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        _outcome("--share", "1")
    assert "--share is an option of: it plan inner" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        _outcome("--help")
    assert "further" in capsys.readouterr().out


def test_an_option_is_refused_without_its_required_option() -> None:
    with pytest.raises(BadParameter, match="--deep-few goes with --few: add that, or leave it out"):
        _outcome("--deep-few", "3")
    assert _outcome("--deep-few", "3", "--few", "2") == 2 + len("metrics.toml")
