"""`hubbub metrics`, `status` and `watch`: the metrics, where reports are, and those that arrive."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from hubbub.cli.terminal import answer_tables
from hubbub.cli.terminal.output import explain, likeliest, live, say, say_json, short_payload
from hubbub.cli.terminal.query_options import OutputOptions, ServiceOptions
from hubbub.conservation import TERMS
from hubbub.errors import BatchTooSmall, ServiceUnavailable, StoreUnavailable
from hubbub.errors.message_words import at_most, several
from hubbub.fields.rules import Interval
from hubbub.notebook import Connection
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import argument, option, options
from hubbub.query_results.answer_table import Row, cell, columns_of, rows

Found = Mapping[str, Any]
_WAITS: Final = "; waiting until it starts; Ctrl-C ends"


@options
class LookOptions:
    """Options for the interval of looks, and the service to look at."""

    every: float = option(
        "seconds between two updates (%(default)s)",
        default=2.0,
        within=Interval(0.1, 3600),
        unit="seconds",
    )
    service: ServiceOptions


@options
class StatusOptions:
    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")
    all: bool = option("show every epoch by itself, and every term")
    watch: bool = option("repeat when something changes, until Ctrl-C")
    look: LookOptions


@command("metrics")
def _metrics(output: OutputOptions, service: ServiceOptions) -> None:
    with service.connection() as connection:
        output.write(connection.metrics(), answer_tables.show_metrics)


@command("status")
def _status(options: StatusOptions) -> int:
    with options.look.service.connection() as connection:
        if options.watch:
            _watch_law(connection, options.look.every, whole=options.all)
            return 0
        law = connection.status().document
        if options.format == "json":
            terms = {**law["total"], "windows": law["windows"], "balanced": law["balanced"]}
            names = ("windows", *TERMS, "balanced", "deleted")
            say_json({name: terms[name] for name in names})
        else:
            show_pipeline(law, whole=options.all)
            answer_tables.say_expired(connection.metrics().document)
        return 0 if law["balanced"] else 1


def _watch_law(connection: Connection, every_seconds: float, *, whole: bool = False) -> None:
    """Shows the conservation law repeatedly, with reports counted per second."""
    before: list[tuple[float, int]] = []

    def look() -> tuple[object, Callable[[], None]]:
        try:
            law = connection.status().document
        except ServiceUnavailable as error:  # it comes back, or the watching person ends this
            message = f"{error}{_WAITS}"
            return message, lambda: say(message)
        now = time.monotonic(), int(law["total"]["counted"])
        rate = (now[1] - before[0][1]) / (now[0] - before[0][0]) if before else 0.0
        before[:] = [now]

        def show() -> None:
            show_pipeline(law, whole=whole)
            say(f"{rate:,.0f} reports counted a second")

        return law, show

    live(look, every_seconds)


@command(
    "watch",
    description="In development it prints a line for each counted report: what was sent, and "
    "what it could have meant. In production it shows the conservation law, and "
    "the number of reports per second. On a terminal it redraws the screen; in a "
    "pipe it prints a line for each change.",
)
def _watch(
    *,
    metric: str = argument(
        "show the estimates of this metric; without it the arriving reports", default=""
    ),
    look: LookOptions,
) -> None:
    with look.service.connection() as connection:

        def arrivals_after(number: int) -> dict[str, Any]:
            return connection.service.ask("/v1/arrivals", {"after": number})

        if not metric:
            try:
                arrivals = arrivals_after(0)
            except ServiceUnavailable:  # the balance waits until it comes back
                arrivals = {"notice": ""}
            if arrivals["notice"]:  # production stores no single reports
                watch_arrivals(arrivals, arrivals_after, look.every)
            else:
                _watch_law(connection, look.every)
            return

        def look_again() -> tuple[object, Callable[[], None]]:
            try:
                estimates = connection.estimates(metric).document
            except (BatchTooSmall, ServiceUnavailable, StoreUnavailable) as error:  # it may pass
                message = f"{error}{_WAITS if isinstance(error, ServiceUnavailable) else ''}"
                return message, lambda: say(message)
            return estimates, lambda: answer_tables.show_estimates(estimates)

        live(look_again, look.every)


def watch_arrivals(answer: Found, after: Callable[[int], Found], every_seconds: float) -> None:
    """Shows what was found, and then what arrives, until Ctrl-C.

    `after` returns what arrived after the report with a number.
    """
    explain(answer["notice"])
    explain("Every report as it is counted, what was sent in hex, and what it could have meant:")
    last_number, message = 0, ""
    while True:
        for arrival in answer["arrivals"]:
            meanings = [(meant["value"], meant["probability"]) for meant in arrival["meanings"]]
            likeliest_value = likeliest(meanings, arrival["others"]) or "any string"
            payload = short_payload(arrival["payload"])
            say(
                f"{arrival['at'][11:19]}  {arrival['stream']}  {arrival['date']}  "
                f"epsilon {at_most(arrival['epsilon'], '.3f')}  {payload}  {likeliest_value}"
            )
            last_number = arrival["number"]
        time.sleep(every_seconds)
        try:
            answer, message = after(last_number), ""
        except ServiceUnavailable as error:  # it comes back, or the watching person ends this
            answer = {"arrivals": []}
            if str(error) != message:
                message = str(error)
                explain(message)


# More streams do not fit a screen; those that need attention come first.
_STREAMS: Final = 12
_UNSURE: Final = ("pooled", "in_flight", "rejected", "withheld")


def show_pipeline(answer: Mapping[str, Any], *, whole: bool = False) -> None:
    """Shows the conservation law, and a line per stream over its epochs; unknown terms are "?".

    If `whole`, it shows a line per window, and every term.
    """
    windows = rows("status", answer)
    total = {**answer["total"], "stream": "all", "date": ""}
    if whole:
        come = "acknowledged + dummies" if total["dummies"] else "acknowledged"
        heading = f"{come} = {' + '.join(name.replace('_', ' ') for name in _shown_terms(total))}"
        answer_tables.show_table("status", answer, heading, [*windows, total])
    else:
        streams: dict[str, list[Row]] = {}
        for window in windows:
            streams.setdefault(window["stream"], []).append(window)
        _show_streams(answer, [_summed_terms(*stream) for stream in streams.items()], total)
    answer_tables.say_below("status", answer)


def _show_streams(answer: Mapping[str, Any], streams: Sequence[Row], total: Row) -> None:
    """Shows as many streams as fit, first those in which reports wait or are lost."""
    if not streams:
        answer_tables.say_notice(answer)
        explain(_equation(answer, total))
        return
    by_unsure = sorted(streams, key=lambda stream: -sum(stream[term] or 0 for term in _UNSURE))
    # Streams out of balance come first, then those with most waiting or refused reports.
    ordered = sorted(by_unsure, key=lambda stream: stream["balanced"] is not False)
    # The line that counts the others has room for one of them.
    fitting = _STREAMS if len(ordered) > _STREAMS + 1 else len(ordered)
    table_rows, others = ordered[:fitting], ordered[fitting:]
    columns = columns_of("status", answer)
    if answer["waiting"]:
        columns = [column for column in columns if column.field != "pooled"]
    visible_columns = [
        column
        for column in columns
        if column.field not in TERMS or any(stream[column.field] != 0 for stream in streams)
    ]
    left_out = [column.title for column in columns if column not in visible_columns]
    shown_rows = [*table_rows, total] if len(streams) > 1 else table_rows
    answer_tables.show_table(
        "status", answer, _equation(answer, total), shown_rows, columns=visible_columns
    )
    if others:
        are_settled = not any(stream[term] for stream in others for term in _UNSURE)
        explain(
            f"and {several(len(others), 'stream')} more"
            f"{', without waiting or refused reports' if are_settled else ''}: hubbub status --all"
        )
    if left_out:
        explain(f"0 in all of them: {', '.join(left_out)}")
    explain("single epochs: hubbub status --all")


def _equation(answer: Mapping[str, Any], total: Row) -> str:
    """The law with its figures, and whether it holds."""
    texts = {
        column.field: f"{cell(column, total, of_means=False)} {column.title}"
        for column in columns_of("status", answer)
        if column.field in TERMS
    }
    if answer["waiting"] and total["pooled"] is None:
        texts["pooled"] = "pooled (not shown)"
    come = texts["acknowledged"]
    if total["dummies"]:
        come += f" + {texts['dummies']}"
    parts = " + ".join(texts[term] for term in _shown_terms(total))
    if not answer["complete"]:
        return f"{come} = {parts}"
    verdict = "The law balances." if answer["balanced"] else "THE LAW DOES NOT BALANCE."
    return f"{come} = {parts}. {verdict}"


def _shown_terms(total: Row) -> list[str]:
    """The states of accepted reports; fillers only if there are some."""
    return [term for term in TERMS[2:] if term != "fillers" or total["fillers"]]


def _summed_terms(name: str, windows: Sequence[Row]) -> Row:
    """The terms of a stream over all its epochs; None for unknown ones."""
    terms: Row = {}
    for term in TERMS:
        counts = [window[term] for window in windows]
        terms[term] = None if None in counts else sum(counts)
    verdicts = {window["balanced"] for window in windows}
    balanced = False if False in verdicts else None if None in verdicts else True
    date = windows[0]["date"] if len(windows) == 1 else several(len(windows), "epoch")
    return {"stream": name, "date": date, **terms, "balanced": balanced}
