"""`hubbub export`: a metric as a file, estimates or a trend, for spreadsheets and notebooks."""

import argparse
from pathlib import Path

from hubbub.cli.terminal.query_options import add_question, asking, question, write
from hubbub.errors import BadParameter

_MAX_SERIES = 50


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `export` to the command line."""
    export = commands.add_parser(
        "export",
        description="The format follows from the file's name, unless --format says it.",
    )
    add_question(export)
    export.add_argument("--by-epoch", action="store_true", help="a row per epoch and value")
    export.set_defaults(run=_export)


def _export(arguments: argparse.Namespace) -> int:
    if arguments.format == "table":
        arguments.format = _by_name(arguments.out)
    asked = question(arguments) | {"epochs": arguments.epochs}
    with asking(arguments) as connection:
        if arguments.by_epoch:
            write(arguments, connection.trend(arguments.metric, number=_MAX_SERIES, **asked))
        else:
            write(arguments, connection.estimates(arguments.metric, **asked))
    return 0


def _by_name(out: Path | None) -> str:
    """The format that a file's name says; CSV where there is no file."""
    if out is None:
        return "csv"
    known = {".csv": "csv", ".parquet": "parquet", ".json": "json"}
    try:
        return known[out.suffix]
    except KeyError:
        raise BadParameter(
            f"--out {out}: name it .csv, .parquet or .json, or give --format"
        ) from None
