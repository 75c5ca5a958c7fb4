"""`hubbub metrics`, `status` and `watch`: what there is, where every report is, and as it comes."""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from hubbub.cli.terminal.answer_tables import show_estimates, show_metrics
from hubbub.cli.terminal.arrivals import watch_arrivals
from hubbub.cli.terminal.law_table import show_pipeline
from hubbub.cli.terminal.output import live, say
from hubbub.cli.terminal.query_options import add_format, add_where, asking, write
from hubbub.conservation import TERMS
from hubbub.errors import BadParameter, BatchTooSmall, ServiceUnavailable, StoreUnavailable
from hubbub.notebook import Connection

_WAITS: Final = "; waiting until it starts; Ctrl-C ends"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the three to the command line."""
    metrics = commands.add_parser("metrics")
    add_format(metrics)
    add_where(metrics)
    metrics.set_defaults(run=_metrics)
    status = commands.add_parser("status")
    status.add_argument(
        "--format", choices=("table", "json"), default="table", help="of the output (%(default)s)"
    )
    status.add_argument("--all", action="store_true", help="every epoch by itself, and every term")
    status.add_argument("--watch", action="store_true", help="as it changes, until Ctrl-C")
    _add_every(status)
    add_where(status)
    status.set_defaults(run=_status)
    watch = commands.add_parser(
        "watch",
        description="In development a line for each report that is counted: what was sent, and "
        "what it could have meant. In production the law, and how many reports are counted a "
        "second. On a terminal the picture is renewed; in a pipe there is a line whenever "
        "something changed.",
    )
    watch.add_argument("metric", nargs="?", help="its estimates; without, what arrives")
    _add_every(watch)
    add_where(watch)
    watch.set_defaults(run=_watch)


def _add_every(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every", type=float, default=2.0, help="seconds between two looks (%(default)s)"
    )


def _metrics(arguments: argparse.Namespace) -> int:
    with asking(arguments) as connection:
        answer = connection.metrics()
        if not write(arguments, answer):
            show_metrics(answer.document)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    _check_every(arguments.every)
    with asking(arguments) as connection:
        if arguments.watch:
            return _watch_law(connection, arguments.every, whole=arguments.all)
        law = connection.status().document
        if arguments.format == "json":
            whole = {**law["total"], "windows": law["windows"], "balanced": law["balanced"]}
            names = ("windows", *TERMS, "balanced", "deleted")
            say(json.dumps({name: whole[name] for name in names}, indent=1))
        else:
            show_pipeline(law, whole=arguments.all)
        return 0 if law["balanced"] else 1


def _watch_law(connection: Connection, every_seconds: float, *, whole: bool = False) -> int:
    """The law, with what was counted a second since the last look."""
    before: list[tuple[float, int]] = []

    def look() -> tuple[object, Callable[[], None]]:
        try:
            found = connection.status().document
        except ServiceUnavailable as error:  # it comes back, or whoever watches ends this
            said = f"{error}{_WAITS}"
            return said, lambda: say(said)
        now = time.monotonic(), int(found["total"]["counted"])
        rate = (now[1] - before[0][1]) / (now[0] - before[0][0]) if before else 0.0
        before[:] = [now]

        def show() -> None:
            show_pipeline(found, whole=whole)
            say(f"{rate:,.0f} reports counted a second")

        return found, show

    live(look, every_seconds)
    return 0


def _watch_what_comes(connection: Connection, every_seconds: float) -> int:
    """Single reports in development; of production, which remembers none, the law."""
    try:
        found = _watched(connection, 0)
    except ServiceUnavailable:  # the law waits until it comes back
        return _watch_law(connection, every_seconds)
    if not found["notice"]:
        return _watch_law(connection, every_seconds)
    watch_arrivals(found, partial(_watched, connection), every_seconds)
    return 0


def _watched(connection: Connection, after: int) -> dict[str, Any]:
    """What arrived after the report of this number."""
    return connection.service.ask("/v1/arrivals", {"after": after})


def _check_every(seconds: float) -> None:
    if not 0.1 <= seconds <= 3600:  # noqa: PLR2004 from ten a second to one an hour
        raise BadParameter(f"--every {seconds:g} is outside [0.1, 3600] seconds")


def _watch(arguments: argparse.Namespace) -> int:
    _check_every(arguments.every)
    with asking(arguments) as connection:
        if not arguments.metric:
            return _watch_what_comes(connection, arguments.every)

        def look() -> tuple[object, Callable[[], None]]:
            try:
                found = connection.estimates(arguments.metric).document
            except (BatchTooSmall, ServiceUnavailable, StoreUnavailable) as error:  # it may pass
                said = f"{error}{_WAITS if isinstance(error, ServiceUnavailable) else ''}"
                return said, lambda: say(said)
            return found, lambda: show_estimates(found)

        live(look, arguments.every)
    return 0
