"""Commands: functions of their options, and the parser that suggests similar names."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from itertools import groupby, pairwise
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import IO, Any, Final, NoReturn

from hubbub.errors.message_words import absent_date, did_you_mean, several, similar, visible_lines
from hubbub.programs.option_parsing import add_options, parameters_of, read_fields

# No option has this form: numbers, with commas or colons between them, are values.
_NEGATIVE_NUMBER: Final = re.compile(r"-\.?\d")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MAX_DIGITS: Final = 40  # Larger numbers are useless here, and one with 310 digits is no float.


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command of a program, made from a function by `command`.

    Attributes:
        run: its parameters are the options, or sections of options; returns the exit code, where
            None means 0.
        name: one word, or two: a command and its action.
        text: description in the list of actions.
        description: text above the options in the command's own help.
        epilog: text below them.
    """

    run: Callable[..., int | None]
    name: str
    text: str = ""
    description: str = ""
    epilog: str = ""


def command(name: str, **texts: str) -> Callable[[Callable[..., int | None]], Command]:
    """Makes a command from a function; `texts` are fields of Command."""
    return lambda run: Command(run=run, name=name, **texts)


def commands_of(modules: Iterable[ModuleType]) -> list[Command]:
    """All commands that are defined in some modules, in order."""
    values = (value for module in modules for value in vars(module).values())
    return [value for value in values if isinstance(value, Command)]


def read_number(text: str) -> float:
    """Reads a float. Raises ArgumentTypeError with a readable message if `text` is no number."""
    try:
        return float(text)
    except ValueError:
        meant = "one like 0.5"
        with suppress(ValueError):  # of "95%", or of a decimal comma
            number = float(text[:-1]) / 100 if text.endswith("%") else float(text.replace(",", "."))
            meant = f"{number:g}"
        raise argparse.ArgumentTypeError(f"{text[:40]!a} is not a number; write {meant}") from None


def number_or(*words: str) -> Callable[[str], int | str]:
    """Makes a reader of a whole number or one of these words."""

    def read(text: str) -> int | str:
        try:
            return text if text in words else read_whole_number(text)
        except argparse.ArgumentTypeError as error:
            choices = " or ".join(f'"{word}"' for word in words)
            meant = did_you_mean(text, words)
            raise argparse.ArgumentTypeError(f"{error}, or {choices}{meant}") from None

    return read


def read_whole_number(text: str) -> int:
    """Reads a whole number, in digits or as 1e6.

    Raises ArgumentTypeError if it is not a whole number or has too many digits, with a readable
    message.
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("nan")
    if not number.is_finite() or number != number.to_integral_value():
        raise argparse.ArgumentTypeError(
            f"{text[:40]!a} is not a whole number; write one like 100 or 1e6"
        )
    if number.adjusted() >= _MAX_DIGITS:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!a}{'...' * bool(text[40:])} has more than {_MAX_DIGITS} digits; "
            "write a smaller number"
        )
    return int(number)


def _read_day(text: str) -> date:
    """Reads YYYY-MM-DD. Raises ArgumentTypeError with a readable message if `text` is no day."""
    dated = text if _DAY.fullmatch(text) else ""  # Python also reads 2026-W48, as its Monday
    try:
        return date.fromisoformat(dated)
    except ValueError:
        message = f"{text[:40]!a} is not a date; write YYYY-MM-DD"
        raise argparse.ArgumentTypeError(absent_date(text) or message) from None


def _read_path(text: str) -> Path:
    """Reads a path. Raises ArgumentTypeError for "", which Path() takes for this folder."""
    if not text:
        raise argparse.ArgumentTypeError(
            "'' is not a path; write a path, or . for the current folder"
        )
    return Path(text)


class HelpFormatter(argparse.HelpFormatter):
    """Wraps paragraphs, and keeps lists, whose lines are set in, as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        paragraphs = text.strip().split("\n\n")
        return "\n\n".join(p if "\n  " in p else fill(p, width, indent) for p in paragraphs)


class Parser(argparse.ArgumentParser):
    """An argument parser that quotes what was typed in its errors, with control characters visible.

    A command that has `actions` can also go without one: if the first word is none of them, its own
    options and arguments are read.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.actions: argparse._SubParsersAction[Any] | None = None
        self._unknown: list[str] = []
        self._negative_number_matcher = _NEGATIVE_NUMBER
        self.register("type", float, read_number)
        self.register("type", int, read_whole_number)
        self.register("type", date, _read_day)
        self.register("type", Path, _read_path)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Checks a choice like argparse, and suggests a similar one."""
        choices = [str(choice) for choice in action.choices or ()]
        if choices and str(value) not in choices:
            others = f"; choose from {', '.join(choices)}"
            remedy = did_you_mean(str(value), choices, otherwise=others)
            raise argparse.ArgumentError(action, f"there is no {str(value)[:40]!a}{remedy}")

    def parse_known_args(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        namespace: argparse.Namespace | None = None,
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parses like argparse; each command refuses unknown options itself, by its own name."""
        args = sys.argv[1:] if args is None else args
        if self.actions is not None and args:
            if args[0] in self.actions.choices:
                parser: Parser = self.actions.choices[args[0]]
                return parser.parse_known_args(args[1:], namespace)
            suggestion = did_you_mean(args[0], self.actions.choices)
            # Any text may be a name, and a path is one of a file.
            paths = [a for a in self._actions if not a.option_strings and a.type is Path]
            if suggestion and paths and not Path(args[0]).exists():
                self.error(f"there is no {args[0]!a}{suggestion}")
            self.actions.nargs = argparse.SUPPRESS  # takes no value
        self._refuse_misplaced_catalog(args)
        names = self._option_string_actions
        self._unknown = [
            word
            for word in args
            if word.startswith("--")
            and not any(n.startswith(word.partition("=")[0]) for n in names)
        ]
        parsed, unread = super().parse_known_args(args, namespace)
        if unread:
            self.error(f"unrecognized arguments: {' '.join(unread)}{self._suggestion(unread)}")
        return parsed, unread

    def _refuse_misplaced_catalog(self, args: Sequence[str]) -> None:
        """Ends if a catalog is typed as an argument of a command that takes it as an option."""
        if "--catalog" not in self._option_string_actions:
            return
        for former, word in pairwise(("", *args)):
            if word.endswith(".toml") and not (word.startswith("-") or former.startswith("-")):
                self.error(f"{word}: name the catalog by an option: --catalog {word}")

    def _suggestion(self, unread: Sequence[str]) -> str:
        """Suggests the action that has the first unknown option, or the most similar option.

        Without an unknown option it names the arguments that the command takes.
        """
        typed = next((word.partition("=")[0] for word in unread if word.startswith("--")), "")
        if any(typed == f"--{action.dest}" for action in self._actions):
            return f"; it is an argument without a name: leave {typed} out"
        if not typed:
            names = [
                str(action.metavar or action.dest)
                for action in self._actions
                if not action.option_strings and action.nargs != argparse.SUPPRESS
            ]
            limit = f"at most {several(len(names), 'argument')}: {' '.join(names)}"
            return f"; it takes {limit if names else 'no arguments'}"
        for action in self._actions:
            for parser in action.choices.values() if isinstance(action.choices, dict) else ():
                if typed in parser._option_string_actions:  # noqa: SLF001 its only name
                    return f"; {typed} is an option of: {parser.prog}"
        # Without the dashes, which all options have in common.
        options = {option.lstrip("-"): option for option in self._option_string_actions}
        meant = similar(typed.lstrip("-"), options)
        return f'; did you mean "{options[meant]}"?' if meant else ""

    def error(self, message: str) -> NoReturn:
        """Ends with the message, which names the actions where one is missing, and no usage.

        The usage of a command with many options would push the message off the screen. An unknown
        option is named before a missing argument.
        """
        missing = ("the following arguments are", "one of the arguments", "argument ACTION")
        if (unknown := self._unknown) and message.startswith(missing):
            message = f"unrecognized arguments: {' '.join(unknown)}{self._suggestion(unknown)}"
        for action in self._actions:
            name = str(action.metavar or action.dest)
            if action.choices and message.endswith(f"are required: {name}"):
                message += f" (choose from {', '.join(map(str, action.choices))})"
        self.exit(2, f"{self.prog}: error: {message}\nsee {self.prog} --help\n")

    def _print_message(self, message: str, file: IO[str] | None = None) -> None:  # type: ignore[override]
        super()._print_message(visible_lines(message), file)


def add_commands(
    commands: "argparse._SubParsersAction[Any]",
    added: Iterable[Command],
    examples: Mapping[str, str] = MappingProxyType({}),
    description: str = "",
) -> None:
    """Adds commands to the command line; those of two words become actions of their first word.

    Those of the same first word follow one another; its help prints `description` above them.
    `examples` are lines for the end of each command's help, by its name.
    """
    for name, group in groupby(added, lambda command: command.name.partition(" ")[0]):
        members = {command.name.partition(" ")[2]: command for command in group}
        group_command = members.pop("", None)
        texts: dict[str, Any] = {"description": description or None}
        if group_command:
            texts = _texts(group_command, examples)
        parser = commands.add_parser(name, **texts)
        if members:
            actions = parser.add_subparsers(required=group_command is None, metavar="ACTION")
            for action, command in members.items():
                texts = _texts(command, examples)
                _add_options(actions.add_parser(action, help=command.text, **texts), command)
            if group_command:
                parser.actions = actions
        if group_command:
            _add_options(parser, group_command)


def _texts(command: Command, examples: Mapping[str, str]) -> dict[str, Any]:
    lines = examples.get(command.name)
    return {
        "description": command.description or as_sentence(command.text) or None,
        "epilog": f"{command.epilog}\n\nexamples:\n{lines}" if lines else command.epilog,
        "formatter_class": HelpFormatter,
    }


def as_sentence(purpose: str) -> str:
    """An entry of a list of commands as a sentence."""
    return f"{purpose[0].upper()}{purpose[1:]}." if purpose else ""


def _add_options(parser: argparse.ArgumentParser, command: Command) -> None:
    """Adds the options that are the parameters of the command's function."""
    section = parameters_of(command.run)
    add_options(parser, section)
    parser.set_defaults(run=lambda namespace: command.run(**read_fields(section, namespace)) or 0)
