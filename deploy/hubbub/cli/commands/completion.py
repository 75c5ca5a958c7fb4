"""`hubbub completion`: a script that completes hubbub's commands and options in a shell."""

import argparse
from typing import Final

from hubbub.cli.terminal.output import say

_SHELLS: Final = ("bash", "zsh", "tcsh")


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `completion` to the command line."""
    parser = commands.add_parser(
        "completion",
        description='bash: eval "$(hubbub completion bash)", in ~/.bashrc; '
        "zsh: hubbub completion zsh > a file _hubbub in a folder of $fpath.",
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell that reads it")
    parser.set_defaults(run=_completion)


def _completion(arguments: argparse.Namespace) -> int:
    import shtab  # noqa: PLC0415 of no use to any other command

    from hubbub.cli.main import whole_parser  # noqa: PLC0415 it imports every command, us too

    say(shtab.complete(whole_parser(), arguments.shell))
    return 0
