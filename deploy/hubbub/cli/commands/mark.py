"""`hubbub mark`: days on which something happened, shown on every trend."""

import argparse

from hubbub.cli.terminal.output import say, table
from hubbub.cli.terminal.query_options import add_where, where
from hubbub.cli.terminal.service_client import ask
from hubbub.wire.v1.services_pb2 import ListMarksRequest, Mark, RemoveMarkRequest


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
    mark = Mark(
        name=arguments.name, date=arguments.on, text=arguments.text, metric=arguments.metric
    )
    saved = ask(where(arguments), "SaveMark", mark)
    say(f"{saved.date}: {saved.name}, on {saved.metric or 'all metrics'}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    found = ask(where(arguments), "ListMarks", ListMarksRequest()).marks
    rows = [(one.date, one.name, one.metric or "all", one.text) for one in found]
    table("Marks", ("date", "name", "metric", "what happened"), rows, text_columns=4)
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    request = RemoveMarkRequest(name=arguments.name, metric=arguments.metric)
    ask(where(arguments), "RemoveMark", request)
    say(f"{arguments.name}: removed")
    return 0
