"""What commands that ask a running hubbub share: where it is, which epochs, candidates, formats."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import Message

from hubbub.aggregator.publishing.table_files import to_csv, to_parquet
from hubbub.cli.terminal.candidate_file import read_candidates
from hubbub.cli.terminal.output import say
from hubbub.cli.terminal.service_client import Endpoints, read_endpoints
from hubbub.errors import BadParameter, ServiceUnavailable
from hubbub.errors.addresses import check_address
from hubbub.query_results import QueryName, is_of_means, whole_rows
from hubbub.wire.v1.services_pb2 import Range

_FORMATS: Final = ("table", "json", "csv", "parquet")


def add_where(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the services are."""
    parser.add_argument(
        "--home", type=Path, default=Path(".hubbub"), help="folder of `hubbub up` (%(default)s)"
    )
    parser.add_argument("--query", help="HOST:PORT of the aggregator's queries, without --home")
    parser.add_argument("--tls", help="folder of certificates; plain text without it")


def where(arguments: argparse.Namespace) -> Endpoints:
    """The endpoints that were chosen. Raises BadParameter for an address that is none."""
    if arguments.query:
        check_address("--query", arguments.query)
        return Endpoints(arguments.query, arguments.tls)
    return read_endpoints(arguments.home)


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


def asked_range(arguments: argparse.Namespace, otherwise: str = "") -> Range:
    """Which epochs are meant, or `otherwise` if none was named."""
    return Range(
        last=arguments.last, epochs=arguments.epochs or ("" if arguments.last else otherwise)
    )


def details(arguments: argparse.Namespace) -> dict[str, Any]:
    """What every question has besides its metric and its epochs."""
    strings = read_candidates(arguments.candidates) if arguments.candidates else []
    return {"confidence": arguments.confidence, "candidates": strings, "lists": arguments.lists}


def checked(question: str, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer that holds together, so that it can be shown.

    question: of which the answer is, as in hubbub.query_results.

    Raises:
        ServiceUnavailable: a part refers to one that is not there.
    """
    if not _HOLDS[question](answer):
        raise ServiceUnavailable(
            "the answer does not hold together and cannot be shown: is the service of this version?"
        )
    return answer


def document(message: Message) -> dict[str, Any]:
    """An answer as JSON-ready data: the same names and numbers as over HTTP."""
    return {field.name: _told(message, field) for field in message.DESCRIPTOR.fields}


def _told(message: Message, field: Any) -> Any:
    given = getattr(message, field.name)
    if field.is_repeated:
        return [document(one) for one in given] if field.message_type else list(given)
    if field.has_presence and not message.HasField(field.name):
        return None
    return document(given) if field.message_type else given


def write(arguments: argparse.Namespace, question: QueryName, answer: Mapping[str, Any]) -> bool:
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
            made: str | bytes = json.dumps(answer, indent=1, ensure_ascii=False) + "\n"
        case "csv":
            made = to_csv(whole_rows(question, answer))
        case _:
            made = to_parquet(whole_rows(question, answer))
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


def _has_epochs(trend: Mapping[str, Any]) -> bool:
    told = {epoch["epoch"] for epoch in trend["epochs"]}
    return all(point["epoch"] in told for one in trend["series"] for point in one["points"])


def _has_all(value: Mapping[str, Any]) -> bool:
    return all(value[part] is not None for part in ("share", "rank", "detected", "consistent"))


_HOLDS: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "estimates": lambda found: (
        is_of_means("estimates", found) or all(map(_has_all, found["values"]))
    ),
    "top": lambda found: all(one["value"] and _has_all(one["value"]) for one in found["values"]),
    "compare": lambda _found: True,
    "trend": _has_epochs,
    "cross": lambda found: found["association"] is not None,
    "breakdown": lambda _found: True,
    "metrics": lambda _found: True,
    "status": lambda _found: True,
    "model": lambda _found: True,
}
