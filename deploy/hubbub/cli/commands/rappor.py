"""`hubbub rappor decode`: decodes a collection made with the original RAPPOR tools."""

import sys
from io import StringIO, TextIOWrapper
from pathlib import Path

from hubbub.analysis.strings.decode import Decoded, decode_counts
from hubbub.cli.rappor_files import COLUMNS, read_collection, read_map, result_rows, write_results
from hubbub.errors.printable import visible
from hubbub.fields.rules import Interval
from hubbub.programs.atomic_write import read_output, write_output
from hubbub.programs.command_line import command
from hubbub.programs.options import option, options

# More rows than this are for a file, not for eyes.
_ROWS = 50
_TWINS = 10
_CONFIDENCE = 0.95  # the columns are named after it
_UNLIKELY = 1e-3


@options
class DecodeOptions:
    params: Path = option("file with a header k,h,m,p,q,f and a line of numbers", metavar="FILE")
    counts: Path = option(
        "file with a line per cohort: reports, then each bit's count", metavar="FILE"
    )
    map: Path = option(
        "file with a line per candidate: name, then its positions; plain or .gz", metavar="FILE"
    )
    fdr: float = option(
        "largest expected share of wrong strings among the detected ones (%(default)s)",
        default=0.05,
        metavar="RATE",
        within=Interval(0, 1, "()"),
    )
    out: Path | None = option("write the results here, as CSV", metavar="FILE", read=read_output)


@command(
    "rappor decode",
    text="estimate which candidate strings were reported, and how often",
    description=(
        "Reads the files of the original tools and estimates which candidates were reported, how "
        "often, with standard errors. Without --out it prints a table on a terminal, CSV in a "
        "pipe."
    ),
)
def _decode(options: DecodeOptions) -> None:
    _progress("reading ...")
    collection = read_collection(options.params, options.counts)
    names, places = read_map(options.map, collection)
    _progress(f"decoding {len(names):,} candidates ...")
    decoded = decode_counts(collection, places, options.fdr, _CONFIDENCE)
    _progress("")
    rows = result_rows(names, decoded, collection.reports)
    if options.out:
        results = StringIO()
        write_results(results, rows)
        write_output("--out", options.out, results.getvalue())
    elif sys.stdout.isatty():
        _show(list(rows))
    else:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        write_results(sys.stdout, rows)
    _summary(names, decoded, collection.reports, options.fdr)


def _show(rows: list[tuple[str | int, ...]]) -> None:
    from hubbub.cli.terminal.output import say, table  # noqa: PLC0415 drawing costs as long as decoding

    detected = [dict(zip(COLUMNS, row, strict=True)) for row in rows if row[-1] == "true"]
    table(
        "detected",
        ("string", "estimate", "std. error", "share", "95% interval", "p-value"),
        [
            (
                str(row["string"]),
                f"{row['estimate']:,}",
                f"{row['std_error']:,}",
                f"{float(row['proportion']):.2%}",
                f"{float(row['prop_low_95']):.2%} to {float(row['prop_high_95']):.2%}",
                f"{float(row['p_value']):.2g}",
            )
            for row in detected[:_ROWS]
        ],
    )
    rest_count = len(detected) - _ROWS
    more_text = f"{rest_count:,} more were detected, " if rest_count > 0 else ""
    say(f"{more_text}{len(rows) - len(detected):,} were not: --out FILE writes them all")


def _summary(names: list[str], decoded: Decoded, reports: int, rate: float) -> None:
    """Summarises the decoding on standard error, so that a pipe gets results only."""
    detected = int(decoded.detected.sum())
    first = (
        f"{reports:,} reports, {len(names):,} candidates, {detected:,} detected at a false "
        f"discovery rate of {rate:.0%}; not explained by any candidate: "
    )
    if decoded.others and decoded.misfit:
        others, error = (amount / reports for amount in decoded.others)
        misfit, chance = decoded.misfit
        first += (
            f"{others:.1%} of the reports (standard error {error:.1%}); misfit {misfit:.2f}, "
            f"where 1 is expected (p {chance:.2g})"
        )
        if chance < _UNLIKELY:
            first += ": a string that is not a candidate shares bits with them"
    else:
        first += "unknown, since there are too many candidates for these bits"
    lines = [first] + [
        "set the same bits in every cohort, so each has the figures of all together: "
        + ", ".join(f'"{names[index]}"' for index in group)
        for group in decoded.twins[:_TWINS]
    ]
    if len(decoded.twins) > _TWINS:
        lines.append(f"... and {len(decoded.twins) - _TWINS} more groups of such candidates")
    for line in lines:
        print(visible(line), file=sys.stderr)  # noqa: T201 to whoever typed the command


def _progress(doing: str) -> None:
    """Shows the current step on a terminal; nothing in a pipe."""
    if sys.stderr.isatty():
        print(f"\r\033[K{doing}", end="", file=sys.stderr, flush=True)  # noqa: T201
