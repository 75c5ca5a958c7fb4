"""Tables: rows as files that other programs read. CSV and Parquet."""

import csv
import io
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

from hubbub.aggregator.place import arrow
from hubbub.errors.printable import UNSEEN
from hubbub.query_results import Row

_CONTROLS: Final = frozenset(map(chr, range(0x20)))

# What a spreadsheet takes for a formula when a cell begins with it, also as it normalizes it: the
# full-width and small forms too.
_FORMULA: Final = frozenset("=+-@\N{MINUS SIGN}")


def to_csv(table: Sequence[Row]) -> str:
    """As RFC 4180 has it, with a header; numbers to the last digit.

    A text that a spreadsheet would run as a formula has a ' in front: values are what people said.
    """
    lines = _Rows()
    writer = csv.DictWriter(lines, list(table[0]) if table else [], lineterminator="\r\n")
    writer.writeheader()
    for row in table:
        writer.writerow({name: _cell(cell) for name, cell in row.items()})
    return "".join(f"{line[:-2]}\n" for line in lines)


class _Rows(list[str]):
    """What csv writes, a row an entry.

    It puts in quotes what holds a character that ends its rows: told that a carriage return does,
    too, it lets no value begin a row of its own.
    """

    write = list.append


def to_parquet(table: Sequence[Row]) -> bytes:
    """As Apache Parquet has it.

    Raises:
        MissingDependency: pyarrow is not installed.
    """
    pa, parquet = arrow("Parquet")
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(table)), out)
    return out.getvalue()


def inert(text: str) -> str:
    """A text as a cell of CSV that no spreadsheet runs: with a ' in front if one might.

    What programs skip before they look (spaces, line ends, what is not seen) is skipped here too.
    """
    if text[:1] in _CONTROLS:
        return "'" + text
    lead = next((c for c in text if c.isprintable() and not c.isspace() and c not in UNSEEN), "")
    return "'" + text if _FORMULA & set(unicodedata.normalize("NFKC", lead)) else text


def _cell(cell: Any) -> Any:
    return inert(cell) if isinstance(cell, str) else cell
