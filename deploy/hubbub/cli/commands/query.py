"""`hubbub query`, `top`, `compare` and `trend`: answers, each with its interval and its picture."""

import argparse
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from hubbub.cli.terminal.answer_tables import show_changes, show_estimates, show_top, show_trend
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
from hubbub.query_results import QueryName
from hubbub.wire.v1.services_pb2 import (
    CompareRequest,
    EstimateRequest,
    Range,
    TopRequest,
    TrendRequest,
)


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
    request = EstimateRequest(
        metric=arguments.metric,
        range=asked_range(arguments),
        anytime=arguments.anytime,
        **details(arguments),
    )
    return _tell(arguments, ("Estimate", "estimates"), request, show_estimates)


def _top(arguments: argparse.Namespace) -> int:
    number = max(arguments.number, 0)  # what is too few the service says
    request = TopRequest(
        metric=arguments.metric, range=asked_range(arguments), number=number, **details(arguments)
    )
    return _tell(arguments, ("Top", "top"), request, show_top)


def _compare(arguments: argparse.Namespace) -> int:
    after = Range(last=arguments.to_last, epochs=arguments.to)
    request = CompareRequest(
        metric=arguments.metric, before=asked_range(arguments), after=after, **details(arguments)
    )
    return _tell(arguments, ("Compare", "compare"), request, show_changes)


def _trend(arguments: argparse.Namespace) -> int:
    request = TrendRequest(
        metric=arguments.metric,
        range=asked_range(arguments, "all"),
        values=arguments.value,
        number=max(arguments.number, 0),
        **details(arguments),
    )
    return _tell(arguments, ("Trend", "trend"), request, show_trend)


def _tell(
    arguments: argparse.Namespace,
    names: tuple[str, QueryName],
    request: Message,
    show: Callable[[dict[str, Any]], None],
) -> int:
    """Ask, and write or show the answer. names: of the call, and of what its rows are."""
    found = checked(names[1], document(ask(where(arguments), names[0], request)))
    if not write(arguments, names[1], found):
        show(found)
    return 0
