"""`hubbub query`, `top`, `compare` and `trend`: answers, each with its interval and its picture."""

import argparse

from hubbub.cli.asking import (
    add_question,
    asked_range,
    candidates,
    document,
    where,
    write,
)
from hubbub.cli.pictured import show_changes, show_estimates, show_top, show_trend
from hubbub.cli.remote import ask
from hubbub.wire.v1.services_pb2 import (
    CompareRequest,
    EstimateRequest,
    Range,
    TopRequest,
    TrendRequest,
)

__all__ = ["add"]


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the four questions to the command line."""
    query = commands.add_parser("query", help="estimates of one metric, with their intervals")
    add_question(query)
    query.set_defaults(run=_query)
    top = commands.add_parser("top", help="the most frequent values, and how sure their order is")
    add_question(top)
    top.add_argument("--number", "-n", type=int, default=10, help="how many (%(default)s)")
    top.set_defaults(run=_top)
    compare = commands.add_parser(
        "compare",
        help="what differs between two ranges of epochs",
        description="--last or --epochs say what was before; --to or --to-last what came after.",
    )
    add_question(compare)
    after = compare.add_mutually_exclusive_group()
    after.add_argument("--to", default="", metavar="EPOCHS", help="as --epochs (newest)")
    after.add_argument("--to-last", default="", help="as --last")
    compare.set_defaults(run=_compare)
    trend = commands.add_parser("trend", help="the most frequent values, epoch by epoch")
    add_question(trend)
    trend.add_argument("--value", action="append", default=[], help="one to follow (repeat)")
    trend.add_argument("--number", "-n", type=int, default=5, help="or so many (%(default)s)")
    trend.set_defaults(run=_trend)


def _query(given: argparse.Namespace) -> int:
    request = EstimateRequest(
        metric=given.metric,
        range=asked_range(given),
        confidence=given.confidence,
        candidates=candidates(given),
    )
    found = document(ask(where(given), "Estimate", request))
    if not write(given, "estimates", found):
        show_estimates(found)
    return 0


def _top(given: argparse.Namespace) -> int:
    request = TopRequest(
        metric=given.metric,
        range=asked_range(given),
        confidence=given.confidence,
        candidates=candidates(given),
        number=max(given.number, 0),
    )
    found = document(ask(where(given), "Top", request))
    if write(given, "top", found):
        return 0
    show_top(found)
    return 0


def _compare(given: argparse.Namespace) -> int:
    request = CompareRequest(
        metric=given.metric,
        before=asked_range(given),
        after=Range(last=given.to_last, epochs=given.to),
        confidence=given.confidence,
        candidates=candidates(given),
    )
    found = document(ask(where(given), "Compare", request))
    if write(given, "compare", found):
        return 0
    show_changes(found)
    return 0


def _trend(given: argparse.Namespace) -> int:
    epochs = asked_range(given)
    request = TrendRequest(
        metric=given.metric,
        range=epochs if given.last or given.epochs else Range(epochs="all"),
        confidence=given.confidence,
        candidates=candidates(given),
        values=given.value,
        number=max(given.number, 0),
    )
    found = document(ask(where(given), "Trend", request))
    if write(given, "trend", found):
        return 0
    show_trend(found)
    return 0
