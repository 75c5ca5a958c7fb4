"""`hubbub rappor decode`: decodes a collection made with the original RAPPOR tools, from files.

params: a header k,h,m,p,q,f and one line of numbers: bits, hashes, cohorts, and RAPPOR's chances.
counts: a line per cohort: its reports, then how many of them had bit 1, bit 2, ... set.
map: a line per candidate: its name, then for every cohort and hash the bit it sets, as
    cohort * k + bit + 1. Hashing is done by whoever made the map; a .gz file is read as well.
"""

import csv
import re
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Final, TextIO

import numpy as np
import numpy.typing as npt

from hubbub.aggregator.exported_files import inert
from hubbub.analysis.strings.rappor_decoding import Decoded, decode_counts
from hubbub.analysis.strings.rappor_equations import Collection, Places, padded_places
from hubbub.errors import BadParameter
from hubbub.errors.message_words import visible
from hubbub.fields.rules import Interval
from hubbub.mechanisms.two_step_response import channel
from hubbub.programs.atomic_write import read_output, write_output
from hubbub.programs.command_line import command
from hubbub.programs.option_parsing import option
from hubbub.programs.text_files import csv_rows

COLUMNS: Final = (
    "string",
    "estimate",
    "std_error",
    "proportion",
    "prop_std_error",
    "prop_low_95",
    "prop_high_95",
    "p_value",
    "detected",
)
_NAMES: Final = ("k", "h", "m", "p", "q", "f")
# Converting a number such as 1e-99999999 to a fraction would take all memory.
_NUMBER: Final = re.compile(r"[0-9./]{1,60}([eE][+-]?[0-9]{1,3})?")
# More than all people, and small enough that no sum of counts exceeds 64 bits.
_MAX_REPORTS: Final = 10**12
_MAX_BITS: Final = 1 << 16
_MAX_CELLS: Final = 1 << 24


def read_collection(params: Path, counts: Path) -> Collection:
    """Reads the bit counts of a collection, and its parameters.

    Raises BadParameter, with file, line and remedy, if a file cannot be read or is malformed.
    """
    numbers = _read_params(params)
    bits, hashes, cohorts = (int(numbers[name]) for name in "khm")
    rows: list[list[int]] = []
    for line, row in csv_rows(counts):
        if not rows:
            _refuse_heading(row[0], f"{counts}:{line}")
        cells = _whole_numbers(row, f"{counts}:{line}", _MAX_REPORTS)
        if len(cells) != bits + 1:
            raise BadParameter(
                f"{counts}:{line}: {len(cells)} numbers, {bits + 1} expected "
                f"(the cohort's reports, then {bits} bits, the k of {params})"
            )
        if max(cells) > cells[0]:
            raise BadParameter(
                f"{counts}:{line}: a bit is counted {max(cells)} times in {cells[0]} reports; "
                "the first number must be the cohort's reports"
            )
        rows.append(cells)
    if len(rows) != cohorts:
        raise BadParameter(
            f"{counts}: {len(rows)} lines, {cohorts} expected (a line per cohort, m in {params})"
        )
    if (reports := sum(cells[0] for cells in rows)) > _MAX_REPORTS:
        raise BadParameter(f"{counts}: {reports} reports in all, above {_MAX_REPORTS}; correct it")
    chances = channel(*(Fraction(numbers[name]) for name in "fpq"))
    return Collection(np.array(rows, dtype=np.int64), hashes, chances)


def read_map(path: Path, collection: Collection) -> tuple[list[str], Places]:
    """Reads the candidates' names, and the cells that each sets, as Design takes them.

    Raises BadParameter as above, or if a candidate occurs twice.
    """
    bits, cohorts, hashes = collection.bits, collection.cohorts, collection.hashes
    width, size = cohorts * hashes, cohorts * bits
    home = np.repeat(np.arange(cohorts, dtype=np.int32), hashes)
    lines: dict[str, int] = {}
    rows: list[npt.NDArray[np.int32]] = []
    for line, row in csv_rows(path):
        location = f"{path}:{line}"
        if not rows and len(row) > 1:
            _refuse_heading(row[1], location)
        name, cells = row[0], _whole_numbers(row[1:], location, size)
        if len(cells) != width or min(cells) < 1:
            raise BadParameter(
                f"{location}: {len(cells)} positions, {width} expected in [1, {size}] "
                f"({hashes} for each of {cohorts} cohorts, cohort * {bits} + bit + 1)"
            )
        places = np.array(cells, dtype=np.int32) - 1
        places.sort()
        if not np.array_equal(places // bits, home):
            raise BadParameter(
                f"{location}: a cohort has more or fewer than {hashes} positions; "
                "was the map made for these parameters?"
            )
        if lines.setdefault(name, line) != line:
            before = f"the candidate of line {lines[name]}"
            raise BadParameter(f"{location}: repeats {before}; remove one")
        rows.append(places)
    if not rows:
        raise BadParameter(f"{path}: contains no candidate; write one per line")
    return list(lines), padded_places(np.stack(rows), size)


def result_rows(
    names: Sequence[str], decoded: Decoded, reports: int
) -> Iterator[tuple[str | int, ...]]:
    """Yields a row of COLUMNS per candidate: detected ones first, largest first.

    The interval of a candidate that was not detected ranges from 0 to the most that the counts
    allow; its estimate is 0 unless it makes the histogram more likely.
    """
    order = np.lexsort((decoded.p_values, -decoded.fitted, ~decoded.detected))
    for index in order.tolist():
        estimate, stderr = float(decoded.fitted[index]), float(decoded.stderrs[index])
        low = max(float(decoded.low[index]), 0.0) if decoded.detected[index] else 0.0
        high = max(float(decoded.high[index]), 0.0)
        yield (
            names[index],
            round(estimate),
            round(stderr),
            *(f"{share / reports:.7g}" for share in (estimate, stderr, low, high)),
            f"{decoded.p_values[index]:.4g}",
            "true" if decoded.detected[index] else "false",
        )


def write_results(file: TextIO, rows: Iterator[tuple[str | int, ...]]) -> None:
    """Writes the rows as CSV, with texts quoted as in the original tools, and no formulas."""
    csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerow(COLUMNS)
    for name, *figures in rows:
        quoted = inert(str(name)).replace('"', '""')
        file.write(f'"{quoted}",{",".join(map(str, figures))}\n')


def _read_params(path: Path) -> dict[str, str]:
    rows = list(csv_rows(path))
    remedy = f"write a header {','.join(_NAMES)} and a line of numbers"
    if len(rows) != 2 or sorted(rows[0][1]) != sorted(_NAMES) or len(rows[1][1]) != len(_NAMES):  # noqa: PLR2004 two lines
        line = rows[-1][0] if rows else 1
        raise BadParameter(f"{path}:{line}: not the parameters of a collection; {remedy}")
    line, numbers = rows[1][0], dict(zip(rows[0][1], rows[1][1], strict=True))
    for name in _NAMES:
        top = {"k": _MAX_BITS, "h": 64, "m": _MAX_CELLS}.get(name)
        text = numbers[name].strip()
        try:
            right = bool(_NUMBER.fullmatch(text)) and (
                1 <= int(text) <= top if top else 0 <= Fraction(text) <= 1
            )
        except (ValueError, ZeroDivisionError):
            right = False
        if not right:
            expected = f"a whole number in [1, {top}]" if top else "a number in [0, 1]"
            raise BadParameter(f"{path}:{line}: {name} must be {expected}; correct it")
        numbers[name] = text
    if int(numbers["k"]) * int(numbers["m"]) > _MAX_CELLS or int(numbers["k"]) < int(numbers["h"]):
        raise BadParameter(f"{path}:{line}: k * m must be at most {_MAX_CELLS}, and h at most k")
    if not (Fraction(numbers["p"]) < Fraction(numbers["q"]) and Fraction(numbers["f"]) < 1):
        raise BadParameter(
            f"{path}:{line}: needs p < q and f < 1: otherwise reports contain no information"
        )
    return numbers


def _whole_numbers(fields: Sequence[str], location: str, top: int) -> list[int]:
    """Reads whole numbers in [0, top]."""
    numbers: list[int] = []
    try:
        numbers.extend(map(int, fields))
    except ValueError:  # the numbers before it are in the list
        place = f"{location}: number {len(numbers) + 1}"
        raise BadParameter(f"{place} is not a whole number; correct it") from None
    if not (numbers and min(numbers) >= 0 and max(numbers) <= top):
        raise BadParameter(f"{location}: a number is outside [0, {top}]; correct it")
    return numbers


def _refuse_heading(cell: str, location: str) -> None:
    """Raises BadParameter if the cell of a first line, which should be a number, is a name."""
    if cell.strip()[:1].isalpha():
        raise BadParameter(
            f"{location}: a heading, with {cell[:40]!a} in the place of a number; remove that line"
        )


# More rows than this are for a file, not for eyes.
_ROWS = 50
_TWINS = 10
_CONFIDENCE = 0.95  # the columns are named after it
_UNLIKELY = 1e-3


@command(
    "rappor decode",
    text="estimate which candidate strings were reported, and how often",
    description=(
        "Reads the files of the original tools and estimates which candidates were reported, how "
        "often, with standard errors. Without --out it prints a table on a terminal, CSV in a "
        "pipe."
    ),
)
def _decode(
    params: Path = option("file with a header k,h,m,p,q,f and a line of numbers", metavar="FILE"),
    counts: Path = option(
        "file with a line per cohort: reports, then each bit's count", metavar="FILE"
    ),
    places: Path = option(
        "file with a line per candidate: name, then its positions; plain or .gz",
        name="--map",
        metavar="FILE",
    ),
    fdr: float = option(
        "largest expected share of wrong strings among the detected ones (%(default)s)",
        default=0.05,
        metavar="RATE",
        within=Interval(0, 1, "()"),
    ),
    out: Path | None = option("write the results here, as CSV", metavar="FILE", read=read_output),
) -> None:
    _progress("reading ...")
    collection = read_collection(params, counts)
    names, cells = read_map(places, collection)
    _progress(f"decoding {len(names):,} candidates ...")
    decoded = decode_counts(collection, cells, fdr, _CONFIDENCE)
    _progress("")
    rows = result_rows(names, decoded, collection.reports)
    if out:
        results = StringIO()
        write_results(results, rows)
        write_output("--out", out, results.getvalue())
    elif sys.stdout.isatty():
        _show(list(rows))
    else:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        write_results(sys.stdout, rows)
    # The summary is on standard error, so that a pipe gets results only.
    for line in _summary(collection.reports, names, decoded, fdr):
        print(visible(line), file=sys.stderr)  # noqa: T201 to whoever typed the command


def _summary(reports: int, names: Sequence[str], decoded: Decoded, fdr: float) -> list[str]:
    """The lines on how many candidates were detected, what remains, and which are alike."""
    detected = int(decoded.detected.sum())
    summary_line = (
        f"{reports:,} reports, {len(names):,} candidates, {detected:,} detected at a "
        f"false discovery rate of {fdr:.0%}; not explained by any candidate: "
    )
    if decoded.others and decoded.misfit:
        other_share, error = (amount / reports for amount in decoded.others)
        misfit, chance = decoded.misfit
        summary_line += (
            f"{other_share:.1%} of the reports (standard error {error:.1%}); misfit {misfit:.2f}, "
            f"where 1 is expected (p {chance:.2g})"
        )
        if chance < _UNLIKELY:
            summary_line += ": a string that is not a candidate shares bits with them"
    else:
        summary_line += "unknown, since there are too many candidates for these bits"
    lines = [summary_line] + [
        "set the same bits in every cohort, so each has the figures of all together: "
        + ", ".join(f'"{names[index]}"' for index in group)
        for group in decoded.twins[:_TWINS]
    ]
    if len(decoded.twins) > _TWINS:
        lines.append(f"... and {len(decoded.twins) - _TWINS} more groups of such candidates")
    return lines


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


def _progress(doing: str) -> None:
    """Shows the current step on a terminal; nothing in a pipe."""
    if sys.stderr.isatty():
        print(f"\r\033[K{doing}", end="", file=sys.stderr, flush=True)  # noqa: T201
