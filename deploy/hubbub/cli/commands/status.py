"""`hubbub metrics`, `status` and `watch`: what there is, where every report is, and as it comes."""

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

from hubbub.cli.terminal.answer_tables import show_estimates, show_metrics
from hubbub.cli.terminal.arrivals import watch_arrivals
from hubbub.cli.terminal.law_table import show_pipeline
from hubbub.cli.terminal.output import live, say
from hubbub.cli.terminal.query_options import OutputOptions, ServiceOptions
from hubbub.conservation import TERMS
from hubbub.errors import BatchTooSmall, ServiceUnavailable, StoreUnavailable
from hubbub.fields.rules import Interval
from hubbub.notebook import Connection
from hubbub.programs.command_line import Command
from hubbub.programs.options import argument, option, options

_WAITS: Final = "; waiting until it starts; Ctrl-C ends"


@options
class MetricsOptions:
    """Options of `hubbub metrics`."""

    output: OutputOptions
    service: ServiceOptions


@options
class LookOptions:
    """How often a service is looked at, and which."""

    every: float = option(
        "seconds between two updates (%(default)s)",
        default=2.0,
        within=Interval(0.1, 3600),
        unit="seconds",
    )
    service: ServiceOptions


@options
class StatusOptions:
    """Options of `hubbub status`."""

    format: Literal["table", "json"] = option("format of the output (%(default)s)", default="table")
    all: bool = option("show every epoch by itself, and every term", default=False)
    watch: bool = option("repeat when something changes, until Ctrl-C", default=False)
    look: LookOptions


@options
class WatchOptions:
    """Options of `hubbub watch`."""

    metric: str = argument(
        "show the estimates of this metric; without it the arriving reports", default=""
    )
    look: LookOptions


def _metrics(options: MetricsOptions) -> int:
    with options.service.connection() as connection:
        options.output.write(connection.metrics(), show_metrics)
    return 0


def _status(options: StatusOptions) -> int:
    with options.look.service.connection() as connection:
        if options.watch:
            return _watch_law(connection, options.look.every, whole=options.all)
        law = connection.status().document
        if options.format == "json":
            whole = {**law["total"], "windows": law["windows"], "balanced": law["balanced"]}
            names = ("windows", *TERMS, "balanced", "deleted")
            say(json.dumps({name: whole[name] for name in names}, indent=1))
        else:
            show_pipeline(law, whole=options.all)
        return 0 if law["balanced"] else 1


def _watch_law(connection: Connection, every_seconds: float, *, whole: bool = False) -> int:
    """The law, with what was counted a second since the last look."""
    before: list[tuple[float, int]] = []

    def look() -> tuple[object, Callable[[], None]]:
        try:
            law = connection.status().document
        except ServiceUnavailable as error:  # it comes back, or whoever watches ends this
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
    return 0


def _watch_what_comes(connection: Connection, every_seconds: float) -> int:
    """Single reports in development; of production, which remembers none, the law."""
    try:
        arrivals = _watched(connection, 0)
    except ServiceUnavailable:  # the law waits until it comes back
        return _watch_law(connection, every_seconds)
    if not arrivals["notice"]:
        return _watch_law(connection, every_seconds)
    watch_arrivals(arrivals, partial(_watched, connection), every_seconds)
    return 0


def _watched(connection: Connection, after: int) -> dict[str, Any]:
    """What arrived after the report of this number."""
    return connection.service.ask("/v1/arrivals", {"after": after})


def _watch(options: WatchOptions) -> int:
    with options.look.service.connection() as connection:
        if not options.metric:
            return _watch_what_comes(connection, options.look.every)

        def look() -> tuple[object, Callable[[], None]]:
            try:
                estimates = connection.estimates(options.metric).document
            except (BatchTooSmall, ServiceUnavailable, StoreUnavailable) as error:  # it may pass
                message = f"{error}{_WAITS if isinstance(error, ServiceUnavailable) else ''}"
                return message, lambda: say(message)
            return estimates, lambda: show_estimates(estimates)

        live(look, options.look.every)
    return 0


COMMANDS: Final = (
    Command(name="metrics", run=_metrics),
    Command(name="status", run=_status),
    Command(
        name="watch",
        run=_watch,
        description="In development it prints a line for each counted report: what was sent, and "
        "what it could have meant. In production it shows the conservation law, and "
        "the number of reports per second. On a terminal it redraws the screen; in a "
        "pipe it prints a line for each change.",
    ),
)
