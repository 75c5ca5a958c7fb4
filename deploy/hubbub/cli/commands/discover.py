"""`hubbub discover`: the strings that people hold, though nobody listed them."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hubbub.cli.terminal.answer_tables import show_estimates
from hubbub.cli.terminal.output import say, several
from hubbub.cli.terminal.query_options import (
    add_format,
    add_range,
    add_where,
    asked_range,
    checked,
    document,
    where,
    write,
)
from hubbub.cli.terminal.service_client import ask
from hubbub.errors import BadParameter
from hubbub.wire.v1.services_pb2 import EstimateRequest

_FINDS: Final = "tree"
_EPILOG: Final = """
examples:
  hubbub discover plugins --last 7d
  hubbub discover plugins --as-candidates plugins.txt     for the next question that counts them
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `discover` to the command line."""
    parser = commands.add_parser(
        "discover",
        description=f'Of a metric with mechanism "{_FINDS}": the frequent strings, each counted by '
        "reports that had no part in finding it, and how many reports are of others.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    parser.add_argument("metric", help="its name; NAME/EPSILON for one tier alone")
    add_range(parser)
    parser.add_argument(
        "--confidence", type=float, default=0.95, help="of the intervals (%(default)s)"
    )
    parser.add_argument(
        "--as-candidates",
        type=Path,
        metavar="FILE",
        help="write the strings that were found whole there, one a line",
    )
    add_format(parser)
    add_where(parser)
    parser.set_defaults(run=_discover)


def _discover(arguments: argparse.Namespace) -> int:
    request = EstimateRequest(
        metric=arguments.metric, range=asked_range(arguments), confidence=arguments.confidence
    )
    found = checked("estimates", document(ask(where(arguments), "Estimate", request)))
    if found["mechanism"] != _FINDS:
        raise BadParameter(
            f'metric "{found["metric"]}" is answered by {found["mechanism"]}, which finds no '
            f'strings: ask with hubbub query, or give a metric mechanism = "{_FINDS}"'
        )
    if not write(arguments, "estimates", found):
        show_estimates(found)
    if arguments.as_candidates:
        _write(arguments.as_candidates, found)
    return 0


def _write(path: Path, found: Mapping[str, Any]) -> None:
    """The strings that were found whole, the most frequent first."""
    values = sorted(found["values"], key=lambda value: int(value["rank"]))
    names = [value["value"] for value in values]
    whole = [name for name in names if name not in found["beginnings"]]
    lines = [name for name in whole if name and name.splitlines() == [name]]
    if not lines:
        raise BadParameter(
            f"--as-candidates {path}: no string was found whole, so nothing was written; ask for "
            "more epochs; "
            "where only beginnings are found, raise `bits`, or list them in `beginnings`"
        )
    try:
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise BadParameter(
            f"--as-candidates {path}: cannot be written: {error.strerror}"
        ) from error
    left = len(names) - len(lines)
    say(
        f"{path}: {several(len(lines), 'string')}"
        + (f"; {left:,} are no whole lines" if left else "")
    )
