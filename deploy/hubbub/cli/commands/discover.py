"""`hubbub discover`: finds frequent strings that nobody listed."""

import argparse
from pathlib import Path

from hubbub.catalog.values.list_versions import FINDER
from hubbub.cli.terminal.answer_tables import show_estimates
from hubbub.cli.terminal.output import say
from hubbub.cli.terminal.percentile_and_candidate_options import read_candidates
from hubbub.cli.terminal.query_options import AnswerOptions, metric_argument
from hubbub.errors import BadParameter
from hubbub.errors.message_words import several
from hubbub.fields.rules import NAME, Interval
from hubbub.notebook import Connection
from hubbub.programs.atomic_write import locked, read_output, write_output
from hubbub.programs.command_line import command, read_number
from hubbub.programs.option_parsing import option


def _false_share(text: str) -> float:
    """Reads a number; a metric's name in its place gets an error of its own."""
    try:
        return read_number(text)
    except argparse.ArgumentTypeError:
        if not NAME.fullmatch(text.partition("/")[0]):
            raise
        raise argparse.ArgumentTypeError(
            f"{text!a} is not a number; write the metric first: hubbub discover {text} --likely"
        ) from None


@command(
    "discover",
    description=f'Shows, for a metric with mechanism "{FINDER}", the frequent strings, each '
    "estimated from reports that were not used to find it, and the number of reports with "
    "other strings.",
)
def _discover(
    *,
    metric: str = metric_argument(),
    path: Path | None = option(
        "write the discovered whole strings to this new file, one per line; with --append to "
        "an existing file",
        name="--as-candidates",
        metavar="FILE",
        read=read_output,
    ),
    append: bool = option("append new strings to the file of --as-candidates"),
    likely: float = option(
        "also list strings that are likely but not certain; on average at most this share "
        "(%(const)s) of them are reported by nobody; --as-candidates includes them",
        default=0.0,
        bare=0.5,
        parse=_false_share,
        metavar="SHARE",
        within=Interval(0, 1, "[)"),
    ),
    answer: AnswerOptions,
) -> None:
    if append and not path:
        raise BadParameter("--append needs a file: name it with --as-candidates FILE")
    if path and path.exists() and not append:
        raise BadParameter(
            f"--as-candidates {path}: exists and may be a list of a catalog, so it is not "
            "overwritten; add --append to extend it, or name another file"
        )
    document = answer.ask(Connection.discover, show_estimates, metric, likely=likely).document
    if not path:
        return
    # Complete strings are written behind existing ones: the discovered, then the likely ones.
    values = sorted(document["values"], key=lambda value: int(value["rank"]))
    names = [value["value"] for value in values]
    names += [value["value"] for value in document["likely"]]
    complete = [name for name in names if name not in document["beginnings"]]
    lines = [name for name in complete if name and name.splitlines() == [name]]
    if not lines:
        raise BadParameter(
            f"--as-candidates {path}: no complete string was found, so nothing was written; "
            "request more epochs; if only beginnings are found, raise `bits`, or list "
            "them in `beginnings`"
        )
    with locked(path):
        before = read_candidates(path) if append and path.exists() else []
        new = [line for line in lines if line not in before]
        write_output("--as-candidates", path, "".join(f"{line}\n" for line in (*before, *new)))
    rest_count = len(names) - len(lines)
    say(
        f"{path}: {several(len(before) + len(new), 'string')}"
        + (f", {len(new):,} of them new" if append else "")
        + (f"; {rest_count:,} are not whole lines" if rest_count else "")
    )
