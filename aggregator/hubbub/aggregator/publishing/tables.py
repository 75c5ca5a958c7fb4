"""Tables: an answer as rows, for files that other programs read. CSV and Parquet.

Every row stands alone: it names its metric, its epochs and its confidence.
"""

import csv
import io
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hubbub.errors import MissingDependency
from hubbub.errors.visible import UNSEEN

__all__ = ["FORMATS", "Row", "inert", "rows", "to_csv", "to_parquet"]

Row = dict[str, Any]
_CONTROLS: Final = frozenset(map(chr, range(0x20)))
Document = Mapping[str, Any]
FORMATS: Final = ("csv", "parquet")

# What a spreadsheet takes for a formula when a cell begins with it, also as it normalizes it: the
# full-width and small forms too.
_FORMULA: Final = frozenset("=+-@\N{MINUS SIGN}")


def rows(question: str, answer: Document) -> list[Row]:
    """The rows of an answer's JSON: to "estimates", "top", "compare", "trend" or "metrics"."""
    return _ROWS[question](answer)


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
    try:
        import pyarrow as pa  # noqa: PLC0415 40 MB that few need
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependency(
            "Parquet needs pyarrow, which is not installed here: pip install 'hubbub[tables]'"
        ) from error
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(table)), out)
    return out.getvalue()


def inert(text: str) -> str:
    """A text as a cell of CSV that no spreadsheet runs: with a ' in front if one might.

    What programs skip before they look (spaces, line ends, what is not seen) is skipped here too.
    """
    if text[:1] in _CONTROLS:
        return "'" + text
    seen = next((c for c in text if c.isprintable() and not c.isspace() and c not in UNSEEN), "")
    return "'" + text if _FORMULA & set(unicodedata.normalize("NFKC", seen)) else text


def _cell(cell: Any) -> Any:
    return inert(cell) if isinstance(cell, str) else cell


def _estimates(answer: Document) -> list[Row]:
    names = ("metric", "since", "until", "final", "reports", "mechanism", "epsilon", "confidence")
    head = {name: answer[name] for name in names}
    return [{**head, **value} for value in answer["values"]]


def _top(answer: Document) -> list[Row]:
    head = {
        name: answer[name]
        for name in ("metric", "reports", "confidence", "set_confidence", "order_confidence")
    }
    return [
        {**head, **one["value"], "ahead_confidence": one["ahead_confidence"]}
        for one in answer["values"]
    ]


def _compare(answer: Document) -> list[Row]:
    names = ("metric", "before_reports", "after_reports", "confidence")
    head = {name: answer[name] for name in names}
    return [{**head, **change} for change in answer["values"]]


def _trend(answer: Document) -> list[Row]:
    head = {name: answer[name] for name in ("metric", "kind", "confidence")}
    epochs = {epoch["epoch"]: epoch for epoch in answer["epochs"]}
    return [
        {
            **head,
            "value": one["value"],
            "begins": epochs[point["epoch"]]["begins"],
            "reports": epochs[point["epoch"]]["reports"],
            **point,
        }
        for one in answer["series"]
        for point in one["points"]
    ]


def _metrics(answer: Document) -> list[Row]:
    return [
        {name: cell for name, cell in metric.items() if not isinstance(cell, list)}
        for metric in answer["metrics"]
    ]


_ROWS: Final[Mapping[str, Callable[[Document], list[Row]]]] = {
    "estimates": _estimates,
    "top": _top,
    "compare": _compare,
    "trend": _trend,
    "metrics": _metrics,
}
