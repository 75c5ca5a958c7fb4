"""`hubbub cross`: two parts of a metric as a table, or by a third, and how they go together."""

import argparse
from typing import Final

from hubbub.cli.terminal.cross_table import show_cross
from hubbub.cli.terminal.query_options import (
    add_format,
    add_range,
    add_where,
    asked_range,
    checked,
    document,
    where,
    write,
)
from hubbub.cli.terminal.service_client import ask
from hubbub.wire.v1.services_pb2 import CrossRequest

_EPILOG: Final = """
example:
  hubbub cross profile country theme --last 7d     of each country, who has which theme
  hubbub cross profile country theme version       the same for each version
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `cross` to the command line."""
    parser = commands.add_parser(
        "cross",
        description="Of a metric with parts: for each value of the first part, which share holds "
        "each value of the second, with intervals; and whether the two go together at all. "
        "Of a metric with more than two parts, name two; without, the first two are taken. A third "
        "has a table for each of its values, of a metric whose devices tell three together.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument("metric", help="its name; NAME/EPSILON for one tier alone")
    for name, whose in (("rows", "the rows"), ("columns", "the columns"), ("by", "tables")):
        parser.add_argument(
            name, metavar="PART", nargs="?", default="", help=f"whose values are {whose}"
        )
    add_range(parser)
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="of the intervals (%(default)s)"
    )
    add_format(parser)
    add_where(parser)
    parser.set_defaults(run=_cross)


def _cross(arguments: argparse.Namespace) -> int:
    request = CrossRequest(
        metric=arguments.metric,
        range=asked_range(arguments),
        confidence=arguments.confidence,
        rows=arguments.rows,
        columns=arguments.columns,
        by=arguments.by,
    )
    found = checked("cross", document(ask(where(arguments), "Cross", request)))
    if not write(arguments, "cross", found):
        show_cross(found)
    return 0
