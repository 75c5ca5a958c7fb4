"""`hubbub breakdown`: a metric by what is public of devices, each part beside all others."""

import argparse
from typing import Final

from hubbub.cli.terminal.breakdown_table import show_breakdown
from hubbub.cli.terminal.query_options import add_question, asking, question, write

_EPILOG: Final = """
examples:
  hubbub breakdown crashed --by version --last 7d     of each version, how many crashed
  hubbub query crashed@version=2.1+2.2                one answer of two of them together
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `breakdown` to the command line."""
    parser = commands.add_parser(
        "breakdown",
        description="Of a metric with a breakdown: for each value of a public field the shares "
        "among its reports, and how they differ from those of all other values together. A value "
        "with fewer reports than the minimum batch has no answer.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    add_question(parser)
    parser.add_argument("--by", default="", metavar="FIELD", help="which field (the first)")
    parser.set_defaults(run=_breakdown)


def _breakdown(arguments: argparse.Namespace) -> int:
    asked = question(arguments) | {"epochs": arguments.epochs, "by": arguments.by}
    with asking(arguments) as connection:
        answer = connection.breakdown(arguments.metric, **asked)
        if not write(arguments, answer):
            show_breakdown(answer.document)
    return 0
