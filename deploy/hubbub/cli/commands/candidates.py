"""`hubbub candidates`: lists of strings to look for, saved by name where answers are asked."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from hubbub.cli.terminal.candidate_file import read_candidates
from hubbub.cli.terminal.output import say, several, table
from hubbub.cli.terminal.query_options import add_where, where
from hubbub.cli.terminal.service_client import ask
from hubbub.wire.v1.services_pb2 import (
    ListCandidatesRequest,
    RemoveCandidatesRequest,
    SaveCandidatesRequest,
    ShowCandidatesRequest,
)


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
    request = SaveCandidatesRequest(name=arguments.name, candidates=strings, add=True)
    saved = ask(where(arguments), "SaveCandidates", request)
    say(f"{saved.name}: {several(saved.total, 'string')}; look for them with --list {saved.name}")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    found = ask(where(arguments), "ListCandidates", ListCandidatesRequest()).lists
    rows = [
        (one.name, f"{datetime.fromtimestamp(one.saved, UTC):%Y-%m-%d}", f"{one.total:,}")
        for one in found
    ]
    table("Saved lists", ("name", "saved on", "strings"), rows, text_columns=2)
    return 0


def _show(arguments: argparse.Namespace) -> int:
    request = ShowCandidatesRequest(name=arguments.name)
    for string in ask(where(arguments), "ShowCandidates", request).candidates:
        say(string)
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    ask(where(arguments), "RemoveCandidates", RemoveCandidatesRequest(name=arguments.name))
    say(f"{arguments.name}: removed")
    return 0
