"""Rows as CSV and Parquet files, for other programs."""

import csv
import io
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

from hubbub.aggregator.object_storage import arrow
from hubbub.errors.printable import UNSEEN
from hubbub.query_results.rows import Row

_CONTROLS: Final = frozenset(map(chr, range(0x20)))

# Characters at the begin of a cell that make a spreadsheet read a formula, with their full-width
# and small forms, which it normalizes.
_FORMULA: Final = frozenset("=+-@\N{MINUS SIGN}")


def to_csv(table: Sequence[Row]) -> str:
    """Rows as CSV (RFC 4180) with a header; numbers with all digits.

    A ' precedes a text that a spreadsheet would run as a formula, since devices supply the values.
    """
    lines = _Rows()
    # With this line end, csv quotes values that contain either character, so that no value can
    # begin a row of its own.
    writer = csv.DictWriter(lines, list(table[0]) if table else [], lineterminator="\r\n")
    writer.writeheader()
    for row in table:
        inert_row = {n: inert(cell) if isinstance(cell, str) else cell for n, cell in row.items()}
        writer.writerow(inert_row)
    return "".join(f"{line[:-2]}\n" for line in lines)


class _Rows(list[str]):
    """The output of csv, one entry per row."""

    write = list.append


def to_parquet(table: Sequence[Row], schema: Any = None) -> bytes:
    """Rows as Apache Parquet, by default with types as the rows have them.

    Raises MissingDependency without pyarrow.
    """
    pa, parquet = arrow("Parquet")
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(table), schema), out)
    return out.getvalue()


def inert(text: str) -> str:
    """A text that no spreadsheet runs as a formula: a ' precedes it if one might.

    Ignores what programs skip before they look: spaces, line ends, and invisible characters.
    """
    if text[:1] in _CONTROLS:
        return "'" + text
    lead = next((c for c in text if c.isprintable() and not c.isspace() and c not in UNSEEN), "")
    return "'" + text if _FORMULA & set(unicodedata.normalize("NFKC", lead)) else text
