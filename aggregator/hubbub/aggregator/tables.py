"""Tables: an answer as rows, for files that other programs read. CSV and Parquet.

Every row stands alone: it names its metric, its epochs and its confidence.
"""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hubbub.errors import PartMissing

__all__ = ["FORMATS", "Row", "rows", "to_csv", "to_parquet"]

Row = dict[str, Any]
Document = Mapping[str, Any]
FORMATS: Final = ("csv", "parquet")

# What a spreadsheet takes for a formula when a cell begins with it.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def rows(question: str, answer: Document) -> list[Row]:
    """The rows of an answer's JSON: to "estimates", "top", "compare", "trend" or "metrics"."""
    return _ROWS[question](answer)


def to_csv(table: Sequence[Row]) -> str:
    """As RFC 4180 has it, with a header; numbers to the last digit.

    A text that a spreadsheet would run as a formula has a ' in front: values are what people said.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, list(table[0]) if table else [], lineterminator="\n")
    writer.writeheader()
    for row in table:
        writer.writerow({name: _cell(cell) for name, cell in row.items()})
    return out.getvalue()


def to_parquet(table: Sequence[Row]) -> bytes:
    """As Apache Parquet has it.

    Raises:
        PartMissing: pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 40 MB that few need
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise PartMissing(
            "Parquet needs pyarrow, which is not installed here: pip install 'hubbub[tables]'"
        ) from error
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(list(table)), out)
    return out.getvalue()


def _cell(cell: Any) -> Any:  # noqa: ANN401 text, a number, yes or no, or nothing
    if isinstance(cell, str) and cell.startswith(_FORMULA):
        return "'" + cell
    return cell


def _estimates(answer: Document) -> list[Row]:
    names = ("metric", "since", "until", "final", "reports", "mechanism", "epsilon", "confidence")
    head = {name: answer[name] for name in names}
    return [{**head, **value} for value in answer["values"]]


def _top(answer: Document) -> list[Row]:
    head = {name: answer[name] for name in ("metric", "reports", "confidence", "members", "order")}
    return [{**head, **one["value"], "ahead": one["ahead"]} for one in answer["values"]]


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
