"""`hubbub candidates`: lists of strings to look for, saved by name where answers are asked."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from hubbub.cli.terminal.candidate_file import read_candidates
from hubbub.cli.terminal.output import say, several, table
from hubbub.cli.terminal.query_options import add_where, asking

_LISTS = "/v1/candidates"


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `candidates` to the command line."""
    parser = commands.add_parser(
        "candidates",
        description="What `query`, `top`, `compare`, `trend` and `export` take by --list NAME.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    adding = actions.add_parser("add", help="save the lines of a file, or add them to a list")
    adding.add_argument("name", help="what the list is called")
    adding.add_argument("file", type=Path, help="one string a line, plain or .gz")
    adding.set_defaults(run=_add)
    listing = actions.add_parser("list", help="the lists that are saved")
    listing.set_defaults(run=_list)
    showing = actions.add_parser("show", help="the strings of one, a line each")
    showing.add_argument("name", help="what the list is called")
    showing.set_defaults(run=_show)
    removing = actions.add_parser("remove", help="forget one")
    removing.add_argument("name", help="what the list is called")
    removing.set_defaults(run=_remove)
    for action in (adding, listing, showing, removing):
        add_where(action)


def _add(arguments: argparse.Namespace) -> int:
    strings = read_candidates(arguments.file, "FILE")
    with asking(arguments) as connection:
        saved = connection.service.ask(
            _path(arguments.name), {"add": "true"}, {"candidates": strings}, method="PUT"
        )
        name, number = saved["name"], several(saved["total"], "string")
    say(f"{name}: {number}; look for them with --list {name}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    with asking(arguments) as connection:
        rows = [
            (
                saved["name"],
                f"{datetime.fromtimestamp(saved['saved'], UTC):%Y-%m-%d}",
                f"{saved['total']:,}",
            )
            for saved in connection.service.ask(_LISTS)["lists"]
        ]
    table("Saved lists", ("name", "saved on", "strings"), rows, text_columns=2)
    return 0


def _show(arguments: argparse.Namespace) -> int:
    with asking(arguments) as connection:
        for string in connection.service.ask(_path(arguments.name))["candidates"]:
            say(string)
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    with asking(arguments) as connection:
        connection.service.ask(_path(arguments.name), method="DELETE")
    say(f"{arguments.name}: removed")
    return 0


def _path(name: str) -> str:
    return f"{_LISTS}/{quote(name, safe='')}"
