"""What commands that ask a running hubbub share: where it is, which epochs, candidates, formats."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from hubbub.aggregator.publishing.table_files import to_csv, to_parquet
from hubbub.cli.terminal.candidate_file import read_candidates
from hubbub.cli.terminal.output import say
from hubbub.cli.terminal.service_client import Endpoints, read_endpoints
from hubbub.errors import BadParameter
from hubbub.notebook import Answer, Connection
from hubbub.notebook.service import MISSHAPEN
from hubbub.query_results import whole_rows

_TOKEN: Final = "HUBBUB_TOKEN"  # noqa: S105 the name of a variable
_AUTHORITY: Final = "HUBBUB_CA"
_FORMATS: Final = ("table", "json", "csv", "parquet")


def add_where(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the services are."""
    parser.add_argument(
        "--home", type=Path, default=Path(".hubbub"), help="folder of `hubbub up` (%(default)s)"
    )
    parser.add_argument(
        "--url",
        help="address of the aggregator's HTTP face, in place of --home; a token for it goes in "
        f"the variable {_TOKEN}",
    )
    parser.add_argument(
        "--authority",
        metavar="FILE",
        help=f"ca.pem, where the certificate of --url is of an authority of your own "
        f"({_AUTHORITY}; else the system's)",
    )


def where(arguments: argparse.Namespace) -> Endpoints:
    """The endpoints that were chosen. A token is sent to an address that was named, and no other.

    Raises:
        ServiceUnavailable: nothing was started in the folder.
    """
    if not arguments.url:
        return read_endpoints(arguments.home)
    authority = arguments.authority or os.environ.get(_AUTHORITY)
    return Endpoints(
        page=arguments.url, token=os.environ.get(_TOKEN, "").strip(), authority=authority
    )


@contextmanager
def asking(arguments: argparse.Namespace) -> Iterator[Connection]:
    """The connection to the service that was chosen, until its answers are shown.

    Raises:
        ServiceUnavailable: an answer is not as hubbub's are, and cannot be shown.
    """
    connection = where(arguments).connection
    try:
        yield connection
    except UnicodeEncodeError:  # of what was typed
        raise
    except MISSHAPEN as error:
        raise connection.service.alien(error) from error


def add_question(parser: argparse.ArgumentParser) -> None:
    """Add what every question about one metric has."""
    parser.add_argument(
        "metric", help="its name; NAME/EPSILON for one tier alone, NAME@os=linux for a part"
    )
    add_range(parser)
    parser.add_argument(
        "--candidates",
        type=Path,
        help="file of strings to look for, one a line; without it and --list, the catalog's own",
    )
    parser.add_argument(
        "--list",
        dest="lists",
        action="append",
        default=[],
        metavar="NAME",
        help="a list of hubbub candidates to look for, or catalog for its own (repeat)",
    )
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="of the intervals (%(default)s)"
    )
    add_format(parser)
    add_where(parser)


def add_range(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which epochs are meant."""
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--last", default="", help="7 (epochs), 12h, 7d or 4w, counted back from now")
    when.add_argument(
        "--epochs",
        "--epoch",
        default="",
        help="newest (without --last), closed, all, yesterday, 2026-11-22, A..B, or A,B; or "
        "by number",
    )


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how the answer is written, and where."""
    parser.add_argument(
        "--format", choices=_FORMATS, default="table", help="of the output (%(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write it there, not to the screen"
    )


def question(arguments: argparse.Namespace) -> dict[str, Any]:
    """What every question has besides its metric, as the methods of a Connection take it."""
    strings = read_candidates(arguments.candidates) if arguments.candidates else []
    return {
        "last": arguments.last,
        "confidence": arguments.confidence,
        "candidates": strings,
        "lists": arguments.lists,
    }


def write(arguments: argparse.Namespace, answer: Answer) -> bool:
    """Write an answer as asked for; False if it is to be a table, which is the caller's to show.

    Raises:
        BadParameter: the file cannot be written, or the format needs one.
    """
    match arguments.format:
        case "table":
            if arguments.out:
                raise BadParameter("--out takes --format json, csv or parquet")
            return False
        case "json":
            made: str | bytes = json.dumps(answer.document, indent=1, ensure_ascii=False) + "\n"
        case "csv":
            made = to_csv(whole_rows(answer.question, answer.document))
        case _:
            made = to_parquet(whole_rows(answer.question, answer.document))
            if not arguments.out and sys.stdout.isatty():
                raise BadParameter("Parquet is not for a screen: give --out FILE")
    raw = made.encode() if isinstance(made, str) else made
    if not arguments.out and isinstance(made, str) and sys.stdout.isatty():
        say(made.rstrip("\n"))
        return True
    if not arguments.out:
        sys.stdout.buffer.write(raw)
        sys.stdout.flush()
        return True
    try:
        arguments.out.write_bytes(raw)
    except OSError as error:
        raise BadParameter(f"--out {arguments.out}: cannot be written: {error.strerror}") from error
    say(f"{arguments.out}: {len(raw):,} bytes")
    return True
