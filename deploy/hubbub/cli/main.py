"""The command line: what commands there are, and what an error looks like."""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import IO, Final, NoReturn

from hubbub.errors import HubbubError
from hubbub.errors.visible import visible_lines

__all__ = ["main", "whole_parser"]

# Only the module of the command that was asked for is imported: starting takes half as long.
_COMMANDS: Final = {
    "demo": "demo",
    "init": "init",
    "up": "up",
    "catalog": "catalog",
    "keys": "keys",
    "plan": "plan",
    "simulate": "simulate",
    "privacy": "privacy",
    "audit": "audit",
    "query": "query",
    "top": "query",
    "compare": "query",
    "trend": "query",
    "export": "export",
    "metrics": "status",
    "status": "status",
    "watch": "status",
    "release": "release",
    "load": "load",
    "rappor": "rappor",
    "ledger": "ledger",
    "completion": "completion",
}
_SERVICES: Final = {
    "shuffler": "run the shuffler: takes sealed reports, mixes, passes on",
    "aggregator": "run the aggregator: opens batches, adds up, answers",
}


_FIRST_ACTION: Final = {
    "privacy": ("card", {"card", "amplify", "compose", "crowd", "-h", "--help"})
}
"""Of some commands: the action where none is named, and all there are."""


class _Parser(argparse.ArgumentParser):
    """Quotes what was typed, in its errors, and is not turned round by it."""

    def _print_message(self, message: str, file: IO[str] | None = None) -> None:  # type: ignore[override]
        super()._print_message(visible_lines(message), file)


class _Version(argparse.Action):
    """Looks the version up where it is asked for, and not at every start."""

    def __call__(self, parser: argparse.ArgumentParser, *_given: object) -> NoReturn:
        from importlib.metadata import version  # noqa: PLC0415 as the class says

        print(f"hubbub {version('hubbub')}")  # noqa: T201 what was asked for
        parser.exit()


def main(arguments: Sequence[str]) -> int:
    """Run one command: its exit code; 2 with a message for what is refused, 130 after Ctrl-C."""
    if arguments and arguments[0] in _SERVICES:
        # A process of its own program: the shuffler's must never import what it may not know.
        os.execv(  # noqa: S606 our own interpreter
            sys.executable,
            [sys.executable, "-m", f"hubbub.{arguments[0]}", *arguments[1:]],
        )
    if arguments and (first := _FIRST_ACTION.get(arguments[0])):
        # `hubbub privacy metrics.toml` for `hubbub privacy card metrics.toml`.
        action = arguments[1] if len(arguments) > 1 else ""
        if action not in first[1]:
            arguments = [arguments[0], first[0], *arguments[1:]]
    given = _parser(arguments).parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code: int = given.run(given)
    except HubbubError as error:
        print(f"hubbub: {visible_lines(str(error))}", file=sys.stderr)  # noqa: T201 to whoever typed the command
        return 2
    except UnicodeEncodeError:
        # Bytes of the command line or of a file that are no UTF-8, on their way into a message.
        print("hubbub: a text holds what is no character; write it in UTF-8", file=sys.stderr)  # noqa: T201 as above
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read us has seen enough; leave nothing for the interpreter to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def whole_parser() -> argparse.ArgumentParser:
    """Knows every command."""
    return _parser(())


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Knows the command of these arguments; or all of them, where none is named."""
    parser = _Parser(
        prog="hubbub",
        description="Usage statistics under local differential privacy.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which this is, and exit")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    asked = _COMMANDS.get(arguments[0]) if arguments else None
    for module in (asked,) if asked else dict.fromkeys(_COMMANDS.values()):
        importlib.import_module(f"hubbub.cli.commands.{module}").add(commands)
    for service, purpose in _SERVICES.items():
        commands.add_parser(service, help=purpose)
    return parser


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
