"""`hubbub query`, `top`, `compare` and `trend`: answers, each with its interval and its picture."""

import argparse
from collections.abc import Callable
from typing import Any

from hubbub.cli.terminal.answer_tables import show_changes, show_estimates, show_top, show_trend
from hubbub.cli.terminal.query_options import add_question, asking, question, write
from hubbub.notebook import Answer, Connection


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the four questions to the command line."""
    query = commands.add_parser("query")
    add_question(query)
    query.add_argument(
        "--anytime",
        action="store_true",
        help="intervals that hold at every look while the epochs fill, all of them together",
    )
    query.set_defaults(run=_query)
    top = commands.add_parser("top")
    add_question(top)
    top.add_argument("--number", "-n", type=int, default=10, help="how many (%(default)s)")
    top.set_defaults(run=_top)
    compare = commands.add_parser(
        "compare",
        description="--last or --epochs say what was before; --to or --to-last what came after. "
        "Without them the newest epoch that takes no more reports is compared with the one before; "
        "where devices report once a period, whole periods.",
    )
    add_question(compare)
    after = compare.add_mutually_exclusive_group()
    after.add_argument(
        "--to", default="", metavar="EPOCHS", help="as --epochs (newest, where before is named)"
    )
    after.add_argument("--to-last", default="", help="as --last")
    compare.set_defaults(run=_compare)
    trend = commands.add_parser("trend")
    add_question(trend)
    trend.add_argument("--value", action="append", default=[], help="one to follow (repeat)")
    trend.add_argument("--number", "-n", type=int, default=5, help="or so many (%(default)s)")
    trend.set_defaults(run=_trend)


def _query(arguments: argparse.Namespace) -> int:
    asked = question(arguments) | {"epochs": arguments.epochs, "anytime": arguments.anytime}
    return _show(arguments, lambda to: to.estimates(arguments.metric, **asked), show_estimates)


def _top(arguments: argparse.Namespace) -> int:
    asked = question(arguments) | {"epochs": arguments.epochs, "number": arguments.number}
    return _show(arguments, lambda to: to.top(arguments.metric, **asked), show_top)


def _compare(arguments: argparse.Namespace) -> int:
    asked = question(arguments) | {
        "before": arguments.epochs,
        "after": arguments.to,
        "to_last": arguments.to_last,
        "order": "listed",
    }
    return _show(arguments, lambda to: to.compare(arguments.metric, **asked), show_changes)


def _trend(arguments: argparse.Namespace) -> int:
    asked = question(arguments) | {
        "epochs": arguments.epochs,
        "values": arguments.value,
        "number": arguments.number,
    }
    return _show(arguments, lambda to: to.trend(arguments.metric, **asked), show_trend)


def _show(
    arguments: argparse.Namespace,
    ask: Callable[[Connection], Answer],
    show: Callable[[Any], None],
) -> int:
    """Ask, and write the answer to a file or show it as a table."""
    with asking(arguments) as connection:
        answer = ask(connection)
        if not write(arguments, answer):
            show(answer.document)
    return 0
