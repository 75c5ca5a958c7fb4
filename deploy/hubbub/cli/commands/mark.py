"""`hubbub mark`: days on which something happened, shown on every trend."""

import argparse
from urllib.parse import quote

from hubbub.cli.terminal.output import say, table
from hubbub.cli.terminal.query_options import add_where, asking

_MARKS = "/v1/marks"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `mark` to the command line."""
    parser = commands.add_parser(
        "mark",
        description="Marks a day, as of a release or an incident, on the trends of the page.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    adding = actions.add_parser("add", help="mark a day")
    adding.add_argument("name", help="what the mark is called")
    adding.add_argument("--on", required=True, metavar="DATE", help="the day, as 2026-11-22")
    adding.add_argument("--text", default="", help="what happened, in a sentence")
    adding.add_argument("--metric", default="", help="whose trend has it; all without")
    adding.set_defaults(run=_add)
    listing = actions.add_parser("list", help="the marks that are set, by date")
    listing.set_defaults(run=_list)
    removing = actions.add_parser("remove", help="forget one")
    removing.add_argument("name", help="what the mark is called")
    removing.add_argument("--metric", default="", help="whose mark, where several have this name")
    removing.set_defaults(run=_remove)
    for action in (adding, listing, removing):
        add_where(action)


def _add(arguments: argparse.Namespace) -> int:
    mark = {"date": arguments.on, "text": arguments.text, "metric": arguments.metric}
    with asking(arguments) as connection:
        saved = connection.service.ask(_path(arguments.name), body=mark, method="PUT")
        say(f"{saved['date']}: {saved['name']}, on {saved['metric'] or 'all metrics'}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    with asking(arguments) as connection:
        rows = [
            (mark["date"], mark["name"], mark["metric"] or "all", mark["text"])
            for mark in connection.service.ask(_MARKS)["marks"]
        ]
        table("Marks", ("date", "name", "metric", "what happened"), rows, text_columns=4)
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    with asking(arguments) as connection:
        metric = {"metric": arguments.metric}
        connection.service.ask(_path(arguments.name), metric, method="DELETE")
    say(f"{arguments.name}: removed")
    return 0


def _path(name: str) -> str:
    return f"{_MARKS}/{quote(name, safe='')}"
