"""The columns of an answer's table, for every face that shows one: those of columns.toml."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

QueryName = Literal[
    "estimates",
    "percentiles",
    "top",
    "compare",
    "trend",
    "cross",
    "breakdown",
    "experiment",
    "figures",
    "metrics",
    "status",
    "model",
]
Unit = Literal[
    "text",
    "count",  # of reports, exact
    "reports",  # of reports, estimated; of a mean, in the metric's own unit
    "share",  # of the reports
    "level",  # a share; of a mean, in the metric's own unit
    "change",  # of a level; of a share in percentage points
    "probability",
    "confidence",
    "epsilon",  # nats
    "flag",  # said where it is true
    "number",  # of any size
    "verdict",  # yes, no, or not known
    "time",  # ISO 8601, UTC
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    Args:
        title: heading; "{level}" stands for the answer's confidence.
        meaning: a sentence without its full stop, for Prometheus' help and the page's hints.
        to: field of the other end, if the column is an interval.
        mean_title: heading for a mean, if it differs.
        of_means: whether a mean has it.
        gauge: whether Prometheus gets it.
        spare: narrow terminals omit columns in this order, from 1 on; 0 stays.
    """

    field: str
    title: str
    unit: Unit
    meaning: str
    to: str = ""
    mean_title: str = ""
    of_means: bool = True
    gauge: bool = False
    spare: int = 0

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a row that it shows: one, or both ends of an interval."""
        return (self.field, self.to) if self.to else (self.field,)


def _column(line: Mapping[str, Any]) -> Column:
    """A line of columns.toml as a column; without a title its heading is the field's name."""
    title = "{level} interval" if "to" in line else line["field"].replace("_", " ")
    return Column(**{"title": title, **line})


_TABLES: Final = tomllib.loads(Path(__file__).with_name("columns.toml").read_text("utf-8"))
COLUMNS: Final[Mapping[QueryName, Sequence[Column]]] = {
    name: tuple(map(_column, _TABLES[name])) for name in get_args(QueryName)
}
OF_CLASS: Final = ("of_class",)
"""Columns that a model of one score has not."""
OF_PARTS: Final = ("slice", "part")
"""What a cross table of two parts, and figures of all devices, have not."""

_EPOCHS: Final = ("metric", "dates", "since", "until", "final", "reports")
_METHOD: Final = ("mechanism", "epsilon", "confidence", "unit")
_SIDES: Final = ("before_dates", "after_dates", "before_reports", "after_reports")
_SURE: Final = ("confidence", "set_confidence", "order_confidence")

HEADS: Final[Mapping[QueryName, Sequence[str]]] = {
    "estimates": (*_EPOCHS, "reports_stderr", *_METHOD),
    "percentiles": (*_EPOCHS, *_METHOD),
    "top": ("metric", "dates", "final", "reports", *_SURE),
    "compare": ("metric", *_SIDES, "confidence", "unit"),
    "trend": ("metric", "kind", "final", "confidence", "unit"),
    "cross": ("metric", "rows", "columns", "by", "dates", "reports", "confidence"),
    "breakdown": ("metric", "by", "dates", "confidence", "unit"),
    "experiment": ("experiment", "dates", "final", "confidence", "ratio_p_value", "verdict"),
    "figures": ("metric", "kind", "by", "final", "confidence"),
    "metrics": (),
    "status": (),
    "model": ("model", "kind", "rounds", "reports", "epsilon", "confidence"),
}
"""What an answer says of all of its rows, and a row that stands alone says itself."""
