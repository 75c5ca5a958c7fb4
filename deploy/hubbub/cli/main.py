"""The command line: dispatches commands, and prints errors."""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any, Final, NoReturn

from hubbub.cli.command_table import COMMANDS, load
from hubbub.errors import BadParameter, HubbubError
from hubbub.errors.message_words import did_you_mean, visible_lines
from hubbub.programs import command_line
from hubbub.programs.standard_streams import complain

_GROUPS: Final = {
    "begin": ("demo", "init", "up", "catalog", "keys"),
    "plan, check": ("plan", "simulate", "privacy", "audit"),
    "ask": (
        "query",
        "top",
        "compare",
        "trend",
        "cross",
        "breakdown",
        "experiment",
        "figures",
        "discover",
        "model",
        "release",
        "rappor",
    ),
    "look, mark": ("metrics", "status", "watch", "candidates", "mark"),
    "maintain": ("notice", "log", "forget", "totals", "backup", "verify", "restore"),
    "run": ("shuffler", "aggregator", "relay", "issuer", "load"),
    "anywhere": ("doctor", "ledger", "completion"),
}
"""What each command is for; as the help says it, and every command is in one."""

_SERVICES: Final = {
    "shuffler": "run the shuffler: receives sealed reports, and forwards them in mixed batches",
    "aggregator": "run the aggregator: opens batches, adds them up, answers queries",
    "relay": "run a relay: forwards sealed requests, so that the shuffler sees no address",
    "issuer": "run an issuer: gives tokens to accounts, and sees neither tokens nor reports",
}


_OVER_HTTP: Final = (
    "no longer exists: analysts query over HTTP; give --url https://HOST:PORT of "
    "--http-listen, and a token in HUBBUB_TOKEN"
)
_REPLACED_OPTIONS: Final = {
    "--query": _OVER_HTTP,
    "--tls": _OVER_HTTP,
    "compare --before": "is --epochs",
    "compare --after": "is --to",
}
"""Options of earlier versions, or of notebooks, and what is in their place."""
_PLANS: Final = {
    "--central": "hubbub plan central --epsilon E",
    "--model": "hubbub plan model KIND",
    "--attack": "hubbub plan attack",
    "--capacity": "hubbub plan capacity",
}
"""Options that made other commands of `hubbub plan`, and these commands."""


class _Parser(command_line.Parser):
    """Names the replacements of options."""

    def _suggestion(self, unread: Sequence[str]) -> str:
        options = [word.partition("=")[0] for word in unread]
        options += [f"{self.prog.removeprefix('hubbub ')} {option}" for option in options]
        if replaced := [f"{o} {_REPLACED_OPTIONS[o]}" for o in options if o in _REPLACED_OPTIONS]:
            raise BadParameter("; ".join(replaced))
        return super()._suggestion(unread)


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]  # noqa: SLF001 its only name
    """Adds the purpose of each command."""

    def add_parser(self, name: str, **settings: Any) -> argparse.ArgumentParser:
        """Adds a parser like argparse, with the purpose in the table of commands."""
        purpose = COMMANDS[name].purpose if name in COMMANDS else _SERVICES[name]
        settings["description"] = settings.get("description") or command_line.as_sentence(purpose)
        parser: argparse.ArgumentParser = super().add_parser(name, help=purpose, **settings)
        return parser


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_arguments: object) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415 as the class says

        print(f"hubbub {version('hubbub')}")  # noqa: T201 the requested output
        parser.exit()


def main(arguments: Sequence[str]) -> int:
    """Runs one command; returns its exit code: 2 with a message for an error, 130 after Ctrl-C."""
    arguments = arguments[1:] if arguments[:1] == ["--"] else arguments
    if arguments and arguments[0] in _SERVICES:
        # A separate process, since the shuffler must never import what it may not know.
        os.execv(  # noqa: S606 our own interpreter
            sys.executable,
            [sys.executable, "-m", f"hubbub.{arguments[0]}", *arguments[1:]],
        )
    # A shell starts background jobs with Ctrl-C ignored; kill -INT must work nevertheless.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is under nohup
        signal.signal(signal.SIGHUP, _interrupt)
    if set(arguments) - {"--version"} == {"--verify"}:
        from hubbub.programs.installed_hashes import verify  # noqa: PLC0415 as _Version says

        lines, is_whole = verify()
        print("\n".join(map(visible_lines, lines)))  # noqa: T201 the requested output
        return 0 if is_whole else 1
    try:
        _refuse_mistyped(arguments)
        # Importing only the command's module starts twice as fast and needs fewer packages.
        names = [word for word in arguments[:1] if word in COMMANDS]
        namespace = _parser(names).parse_args(arguments or ["--help"])
        code: int = namespace.run(namespace)
    except HubbubError as error:
        return complain(str(error))
    except UnicodeEncodeError:
        # Bytes of the command line or of a file that are not UTF-8, quoted in a message.
        return complain("a text contains an invalid character; write it in UTF-8")
    except KeyboardInterrupt:
        return 130
    return code


def _refuse_mistyped(arguments: Sequence[str]) -> None:
    """Raises BadParameter for a form of version 0.1, or a first word that is no command.

    It names today's command, or suggests one.
    """
    command, first_argument = [*arguments, "", ""][:2]
    if command == "export":
        raise BadParameter(
            "export is part of other commands: hubbub query METRIC --out FILE; "
            "with a row per epoch, hubbub trend METRIC --number 50 --out FILE"
        )
    if command == "privacy" and (
        first_argument.endswith(".toml") or first_argument in {"--format", "--delta"}
    ):
        raise BadParameter("the card is a command of its own: hubbub privacy card metrics.toml")
    if command == "plan" and first_argument not in {"central", "model", "attack", "capacity"}:
        for option in (word.partition("=")[0] for word in arguments):
            if option in _PLANS:
                raise BadParameter(f"plan {option} is a command of its own: {_PLANS[option]}")
    names = [*COMMANDS, *_SERVICES]
    if arguments and command not in names and not command.startswith("-"):
        remedy = did_you_mean(command, names, otherwise="; hubbub --help lists them")
        raise BadParameter(f'there is no command "{command}"{remedy}')


def whole_parser(services: Mapping[str, Any] = MappingProxyType({})) -> command_line.Parser:
    """The parser of every command with all options.

    `services` are the parsers of the services, which are programs of their own; without them only
    their names are known. Raises MissingDependency if a command imports what is not installed here.
    """
    names: dict[str, str] = {}
    for name, entry in COMMANDS.items():
        names.setdefault(entry.module or name, name)
    return _parser([*names.values()], services)


def _parser(
    command_names: Sequence[str], services: Mapping[str, Any] = MappingProxyType({})
) -> command_line.Parser:
    """The parser of these commands; if none, of all their names and purposes."""
    parser = _Parser(
        prog="hubbub",
        description="Usage statistics under local differential privacy.",
        formatter_class=command_line.HelpFormatter,
        epilog="by purpose:\n"
        + "\n".join(f"  {group:<13}{', '.join(names)}" for group, names in _GROUPS.items()),
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version, and exit")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="compare the installed files with what their wheels recorded, and exit",
    )
    commands = parser.add_subparsers(
        title="commands", required=True, metavar="COMMAND", action=_Commands
    )
    text = Path(__file__).with_name("examples.txt").read_text("utf-8")
    entries = (entry.partition("\n") for entry in text.strip().split("\n\n"))
    examples = {name: lines for name, _, lines in entries}
    for name in command_names:
        modules = load(name)
        description = getattr(modules[0], "DESCRIPTION", "")
        command_line.add_commands(
            commands, command_line.commands_of(modules), examples, description
        )
    for name in [*([] if command_names else COMMANDS), *_SERVICES]:
        commands.add_parser(name)
    commands.choices.update(services)
    return parser


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
