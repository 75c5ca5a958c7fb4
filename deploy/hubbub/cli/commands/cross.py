"""`hubbub cross`: two parts of a metric as a table, or by a third, and how they go together."""

import argparse
from typing import Final

from hubbub.cli.terminal.cross_table import show_cross
from hubbub.cli.terminal.query_options import (
    add_format,
    add_range,
    add_where,
    asking,
    write,
)

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
    with asking(arguments) as connection:
        answer = connection.cross(
            arguments.metric,
            arguments.rows,
            arguments.columns,
            arguments.by,
            last=arguments.last,
            epochs=arguments.epochs,
            confidence=arguments.confidence,
        )
        if not write(arguments, answer):
            show_cross(answer.document)
    return 0
