"""`hubbub release`: numbers for outside, with noise of their own, paid from a budget."""

import argparse
import getpass
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hubbub.cli.terminal.output import explain, say, table
from hubbub.cli.terminal.query_options import add_where, document, where
from hubbub.cli.terminal.service_client import release, releases
from hubbub.privacy.composition import Event, compose
from hubbub.privacy.releases import CONFIDENCE, QUERIES
from hubbub.wire.v1.services_pb2 import (
    ListReleasesResponse,
    PurposeBudget,
    ReleasedValue,
    ReleaseRecord,
    ReleaseRequest,
    ReleaseResponse,
)


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `release` to the command line."""
    parser = commands.add_parser(
        "release",
        description="Without a metric: what was released, by whom, and what is left.",
    )
    parser.add_argument("metric", nargs="?", help="its name in the catalog")
    parser.add_argument(
        "what", nargs="?", choices=QUERIES, default="histogram", help="the query (%(default)s)"
    )
    parser.add_argument("--value", default="", help="the value to count, of: count")
    parser.add_argument(
        "--epoch",
        "--epochs",
        action="append",
        default=[],
        help="closed ones, as 2026-11-22 or 2026-11-01..2026-11-07 (repeat); the newest",
    )
    parser.add_argument(
        "--purpose", default="", help="of the catalog's budget; a metric with a crowd needs none"
    )
    parser.add_argument("--by", default="", help="who asks, for the record (you)")
    parser.add_argument(
        "--delta", type=float, default=1e-6, help="of the sum of what was released (%(default)s)"
    )
    parser.add_argument(
        "--format", choices=("table", "json"), default="table", help="of the output (%(default)s)"
    )
    add_where(parser)
    parser.set_defaults(run=_release)


def _release(arguments: argparse.Namespace) -> int:
    if arguments.metric is None:
        _show_record(releases(where(arguments)), arguments)
        return 0
    made = release(
        where(arguments),
        ReleaseRequest(
            metric=arguments.metric,
            query=arguments.what,
            value=arguments.value,
            dates=",".join(arguments.epoch),
            purpose=arguments.purpose,
            by=arguments.by or getpass.getuser(),
        ),
    )
    if arguments.format == "json":
        say(json.dumps(_made_json(made), indent=1, ensure_ascii=False))
    else:
        _show(made)
    return 0


def _show(made: ReleaseResponse) -> None:
    record = made.record
    cost = f"epsilon {record.epsilon:g}" + (f", delta {record.delta:g}" if record.delta else "")
    how = "as it is, no noise added" if record.promised else f"by {record.mechanism}, {cost}"
    title = f"{record.metric}: {record.query} {how}, {record.dates}"
    if record.query == "mode":
        say(title)
        say(f"the most common value: {made.values[0].value}")
    else:
        digits = ",.5g" if record.query == "mean" else ",.0f"
        table(
            title,
            ("value", "estimate", "std. error", "of it released", f"{CONFIDENCE:.0%} interval"),
            [
                (
                    value.value,
                    f"{value.estimate:{digits}}",
                    f"{value.stderr:{digits}}",
                    f"{value.noise:{digits}}",
                    f"{value.low:{digits}} to {value.high:{digits}}",
                )
                for value in made.values
            ],
        )
    if record.promised:
        explain(
            f"published as it is, on {_day(record)}: nothing is charged. It keeps the promise that "
            f"each of its epochs was collected with, central epsilon {record.promised:g} at delta "
            f"{record.promised_delta:g}"
        )
        return
    again = "released before, on " if made.again else "released and paid for, on "
    left = f"epsilon {made.epsilon_left:g} and delta {made.delta_left:g} left this year"
    if not made.HasField("epsilon_left"):
        left = "a rest that is shown to callers who see all metrics"
    explain(f"{again}{_day(record)}; {record.purpose} has {left}")


def _show_record(found: ListReleasesResponse, arguments: argparse.Namespace) -> None:
    together = _together(found.records, arguments.delta) if found.records else None
    if arguments.format == "json":
        told = {
            "records": [document(record) for record in found.records],
            "purposes": [document(purpose) for purpose in found.purposes],
            "together": together,
            "unreadable": found.unreadable,
        }
        say(json.dumps(told, indent=1, ensure_ascii=False))
        return
    if found.records:
        table(
            "What was released",
            ("on", "purpose", "by", "metric", "query", "value", "mechanism", "epsilon", "delta"),
            [
                (
                    _day(record),
                    record.purpose,
                    record.by,
                    record.metric,
                    record.query,
                    record.value,
                    record.mechanism,
                    f"{record.epsilon:g}",
                    f"{record.delta:g}",
                )
                for record in found.records
            ],
            text_columns=7,
        )
    else:
        say("nothing was released yet")
    _show_budgets(found.purposes)
    if found.unreadable:
        explain(
            f"{found.unreadable} entries of the record cannot be read as they stand; what they "
            "may have spent is counted"
        )
    if together is not None:
        explain(
            f"All of it together says epsilon {together['best']:.4g} at most about one person, at "
            f"delta {together['delta']:g}; the epsilons paid add up to "
            f"{sum(record.epsilon for record in found.records):g}"
        )


def _show_budgets(purposes: Sequence[PurposeBudget]) -> None:
    if purposes:
        table(
            "What each purpose may spend this year",
            ("purpose", "epsilon", "left", "delta", "left"),
            [
                (
                    one.purpose,
                    f"{one.epsilon:g}",
                    f"{one.epsilon_left:g}" if one.HasField("epsilon_left") else "hidden",
                    f"{one.delta:g}",
                    f"{one.delta_left:g}" if one.HasField("delta_left") else "hidden",
                )
                for one in purposes
            ],
        )
    else:
        explain("the catalog has no [budget]: what leaves as a crowd is released as it is, no more")


def _together(records: Sequence[ReleaseRecord], delta: float) -> dict[str, Any]:
    """All that was released about one person who is in all of it.

    A crowd's epoch counts once, however often it is published: all of it is made of the same.
    """
    paid = [Event(record.epsilon, delta=record.delta) for record in records if not record.promised]
    crowds = {
        (record.metric, epoch): Event(record.promised, delta=record.promised_delta)
        for record in records
        if record.promised
        for epoch in record.epochs
    }
    events = [*paid, *crowds.values()]
    # Below what they fail with together nothing can be said.
    delta = max(delta, 2 * sum(event.delta for event in events))
    found = compose(events, delta)
    return {"delta": delta, "basic": found.basic, "best": found.best}


def _day(record: ReleaseRecord) -> str:
    return f"{datetime.fromtimestamp(record.at, UTC):%Y-%m-%d}"


def _value_json(value: ReleasedValue) -> dict[str, Any]:
    if not value.HasField("estimate"):
        return {"value": value.value}
    return document(value)


def _made_json(made: ReleaseResponse) -> dict[str, Any]:
    return {
        **document(made.record),
        "values": [_value_json(value) for value in made.values],
        "again": made.again,
        "epsilon_left": made.epsilon_left if made.HasField("epsilon_left") else None,
        "delta_left": made.delta_left if made.HasField("delta_left") else None,
    }
