"""`hubbub release`: published numbers, with noise of their own, paid from a budget."""

import getpass
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from hubbub.cli.terminal.output import day_of, explain, listing, say, table
from hubbub.cli.terminal.query_options import ServiceOptions, parse_epochs
from hubbub.errors.message_words import at_least, at_most
from hubbub.privacy.central_releases import CONFIDENCE, QUERIES
from hubbub.privacy.composition import Event, compose
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument, option, options
from hubbub.query_results.answer_table import End, number_text

_RELEASES: Final = "/v1/releases"

Document = Mapping[str, Any]


@options
class ReleaseOptions:
    metric: str | None = argument("name of the metric in the catalog")
    what: str = argument("what to publish (%(default)s)", default="histogram", choices=QUERIES)
    value: str = option('value to count, for the query "count"', default="")
    epochs: tuple[str, ...] = option(
        "closed epochs, as 2026-11-22 or 2026-11-01..2026-11-07 (repeatable); without it the "
        "newest closed epoch",
        name="--epoch",
        other_name="--epochs",
        parse=parse_epochs,
    )
    purpose: str = option(
        "purpose in the budget of the catalog; a metric with a crowd needs no purpose", default=""
    )
    by: str = option("who makes the release, for the record (you)", default="")
    delta: float = option("delta of all releases together (%(default)s)", default=1e-6)
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")
    service: ServiceOptions


@command(
    "release",
    description="Publishes numbers of a metric with noise of their own. Without a metric it lists "
    "past releases and the remaining budget.",
)
def _release(options: ReleaseOptions) -> None:
    with options.service.connection() as connection:
        if options.metric is None:
            _show_record(connection.service.ask(_RELEASES), options)
            return
        release = connection.service.ask(
            _RELEASES,
            body={
                "metric": options.metric,
                "query": options.what,
                "value": options.value,
                "dates": ",".join(options.epochs),
                "purpose": options.purpose,
                "by": options.by or getpass.getuser(),
            },
        )
        if options.format == "json":
            # The most common value has a name only.
            values = [
                {name: figure for name, figure in value.items() if figure is not None}
                for value in release["values"]
            ]
            say(json.dumps({**release, "values": values}, indent=1, ensure_ascii=False))
        else:
            _show(release)


def _show(release: Document) -> None:
    how = "as it is, no noise added"
    if not release["promised"]:
        delta = f", delta {release['delta']:g}" if release["delta"] else ""
        how = f"by {release['mechanism']}, epsilon {release['epsilon']:g}{delta}"
    title = f"{release['metric']}: {release['query']} {how}, {release['dates']}"
    if release["query"] == "mode":
        say(title)
        say(f"the most common value: {release['values'][0]['value']}")
    else:

        def figure(value: Document, part: str, end: End = "") -> str:
            if release["query"] == "mean":
                return number_text(value[part], value["stderr"], end=end)
            return f"{value[part]:,.0f}"

        table(
            title,
            ("value", "estimate", "std. error", "of it released", f"{CONFIDENCE:.0%} interval"),
            [
                (
                    value["value"],
                    *(figure(value, part) for part in ("estimate", "stderr", "noise")),
                    f"{figure(value, 'low', 'low')} to {figure(value, 'high', 'high')}",
                )
                for value in release["values"]
            ],
        )
    if release["promised"]:
        explain(
            f"published as it is, on {_day(release)}: nothing is charged. It keeps the promise "
            "with which each of its epochs was collected, central epsilon "
            f"{release['promised']:g} at delta {release['promised_delta']:g}"
        )
        return
    when = "released before, on " if release["again"] else "released and paid for, on "
    remaining = "a budget whose rest only callers with access to all metrics see"
    if release["epsilon_left"] is not None:
        epsilon, delta = _rest_text(release["epsilon_left"]), _rest_text(release["delta_left"])
        remaining = f"epsilon {epsilon} and delta {delta} left this year"
    explain(f"{when}{_day(release)}; {release['purpose']} has {remaining}")


def _show_record(record: Document, options: ReleaseOptions) -> None:
    composed = _total_loss(record["records"], options.delta) if record["records"] else None
    if options.format == "json":
        document = {
            "records": record["records"],
            "purposes": record["purposes"],
            "together": composed,
            "unreadable": record["unreadable"],
        }
        say(json.dumps(document, indent=1, ensure_ascii=False))
        return
    if record["records"]:
        names = ("purpose", "by", "metric", "query", "value", "mechanism")
        listing(
            "What was released",
            record["records"],
            {
                "on": _day,
                **{name: f"{{{name}}}" for name in names},
                "epsilon": "{epsilon:g}",
                "delta": "{delta:g}",
            },
            text_columns=7,
        )
    else:
        say("nothing was released yet")
    if purposes := record["purposes"]:
        listing(
            "What each purpose may spend this year",
            purposes,
            {
                "purpose": "{purpose}",
                "epsilon": "{epsilon:g}",
                "left": lambda purpose: _rest_text(purpose["epsilon_left"]),
                "delta": "{delta:g}",
                "delta left": lambda purpose: _rest_text(purpose["delta_left"]),
            },
        )
    else:
        explain("the catalog has no [budget]: only answers of crowds are released, as they are")
    if record["unreadable"]:
        explain(
            f"{record['unreadable']} entries of the record are unreadable; their largest "
            "possible cost is counted"
        )
    if composed is not None:
        explain(
            f"All releases together reveal epsilon {at_most(composed['best'], '.4g')} at most "
            f"about one person, at delta {composed['delta']:g}; the epsilons paid add up to "
            f"{at_most(sum(line['epsilon'] for line in record['records']), '.6g')}"
        )


def _rest_text(remaining: float | None) -> str:
    return "hidden" if remaining is None else at_least(remaining, ".6g")


def _total_loss(records: Sequence[Document], delta: float) -> dict[str, Any]:
    """The total privacy loss of everything released, for a person in all of it.

    A crowd's epoch counts once, however often it is published: all is computed from the same.
    """
    charged = (line for line in records if not line["promised"])
    paid = [Event(epsilon=line["epsilon"], delta=line["delta"]) for line in charged]
    crowds = {
        (line["metric"], epoch): Event(epsilon=line["promised"], delta=line["promised_delta"])
        for line in records
        if line["promised"]
        for epoch in line["epochs"]
    }
    events = [*paid, *crowds.values()]
    # No statement holds with a smaller delta than that of all releases together.
    delta = max(delta, 2 * sum(event.delta for event in events))
    composition = compose(events, delta)
    return {"delta": delta, "basic": composition.basic, "best": composition.best}


def _day(line: Document) -> str:
    return f"{day_of(line['at'])}"
