"""`hubbub breakdown`: a metric by what is public of devices, each part beside all others."""

import argparse
from typing import Final

from hubbub.cli.terminal.breakdown_table import show_breakdown
from hubbub.cli.terminal.query_options import (
    add_question,
    asked_range,
    checked,
    details,
    document,
    where,
    write,
)
from hubbub.cli.terminal.service_client import ask
from hubbub.wire.v1.services_pb2 import BreakdownRequest

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
    request = BreakdownRequest(
        metric=arguments.metric,
        range=asked_range(arguments),
        by=arguments.by,
        **details(arguments),
    )
    found = checked("breakdown", document(ask(where(arguments), "Breakdown", request)))
    if not write(arguments, "breakdown", found):
        show_breakdown(found)
    return 0
