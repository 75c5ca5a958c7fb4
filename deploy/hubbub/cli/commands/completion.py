"""`hubbub completion`: a script that completes hubbub's commands and options in a shell."""

from typing import Literal

from hubbub.aggregator import settings as aggregator
from hubbub.cli.terminal.output import say
from hubbub.issuer import settings as issuer
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument
from hubbub.relay import settings as relay
from hubbub.shuffler import settings as shuffler


@command(
    "completion",
    description="Prints a script that completes hubbub's commands in your shell. For bash, add "
    'this line to ~/.bashrc: eval "$(hubbub completion bash)". For zsh, write the script to a file '
    "_hubbub in a folder of $fpath.",
)
def _completion(shell: Literal["bash", "zsh", "tcsh"] = argument("your shell")) -> None:
    import shtab  # noqa: PLC0415 no other command needs it

    from hubbub.cli.main import whole_parser  # noqa: PLC0415 it imports every command, us too

    services = (aggregator.parser(), issuer.parser(), relay.parser(), shuffler.parser())
    parsers = {parser.prog.removeprefix("hubbub "): parser for parser in services}
    say(shtab.complete(whole_parser(parsers), shell))
