"""The table of an answer, for every face: its columns (columns.toml), its rows, and cells as text.

Rows have all fields of a value, so that new ones appear everywhere. A number is formatted in the
metric's unit, a cell by the unit of its column.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from pathlib import Path
from typing import Any, Final, Literal, get_args

from hubbub.errors.message_words import at_most

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


Row = dict[str, Any]
Document = Mapping[str, Any]

MAX_TOP: Final = 1000
"""The largest number of values of a ranking."""
MAX_SERIES: Final = 50
"""The largest number of lines of a trend."""

_MAX_RANGES: Final = 16
_ROWS: Final[Mapping[QueryName, str]] = {
    "metrics": "metrics",
    "status": "windows",
    "model": "coefficients",
}


def rows(question: QueryName, answer: Document) -> list[Row]:
    """A row per value; in a trend one per value and epoch."""
    match question:
        case "percentiles":
            return [_percentile(row) for row in answer["percentiles"]] + [
                _share_below(row) for row in answer["below"]
            ]
        case "top":
            return [
                {**value["value"], "ahead_confidence": value["ahead_confidence"]}
                for value in answer["values"]
            ]
        case "trend":
            epochs = {epoch["epoch"]: epoch for epoch in answer["epochs"]}
            return [
                {
                    "value": line["value"],
                    "begins": epochs[point["epoch"]]["begins"],
                    "reports": epochs[point["epoch"]]["reports"],
                    **point,
                }
                for line in answer["series"]
                for point in line["points"]
            ]
        case _:
            return [dict(row) for row in answer[_ROWS.get(question, "values")]]


def is_folded(table_rows: Sequence[object], *, of_numbers: bool) -> bool:
    """Whether a short table leaves out rows that show nothing, as of many ranges of a number."""
    return of_numbers and len(table_rows) > _MAX_RANGES


def percentile_name(percentile: float) -> str:
    """A percentile's name: p50, p99.9."""
    return f"p{percentile:.10g}"


def _percentile(row: Row) -> Row:
    """A percentile as a point of the distribution: its share is exact, its number estimated."""
    point = {
        "value": percentile_name(row["percentile"]),
        "number": row["estimate"],
        "number_low": row["low"],
        "number_high": row["high"],
        "share": row["percentile"] / 100,
        "share_low": None,
        "share_high": None,
    }
    used = {"percentile", "estimate", "low", "high"}
    return point | {name: cell for name, cell in row.items() if name not in used}


def _share_below(row: Row) -> Row:
    """A share below a number as a point of the distribution: its number is exact."""
    point = {
        "value": f"below {row['below']:.10g}",
        "number": row["below"],
        "number_low": None,
        "number_high": None,
        "share": row["share"],
        "share_low": row["low"],
        "share_high": row["high"],
        "reaches": "",
    }
    used = {"below", "share", "low", "high"}
    return point | {name: cell for name, cell in row.items() if name not in used}


def whole_rows(question: QueryName, answer: Document) -> list[Row]:
    """Rows for the lines of a file: each with metric, epochs, confidence and any notice."""
    head = {name: answer[name] for name in HEADS[question]}
    if answer.get("notice"):
        head["notice"] = answer["notice"]
    return [
        {name: cell for name, cell in {**head, **row}.items() if not isinstance(cell, list)}
        for row in table_rows(question, answer)
    ]


def table_rows(question: QueryName, answer: Document) -> list[Row]:
    """As `rows`, with numbers in the metric's unit as "number", although JSON has "share"."""
    in_unit = question in {"trend", "breakdown"} and is_of_means(question, answer)
    names = {"share": "number"} if in_unit else {}
    return [
        {names.get(name, name): cell for name, cell in row.items()}
        for row in rows(question, answer)
    ]


# Significant digits of an error; further ones are random.
_DIGITS_OF_ERROR: Final = 2
# Significant digits of a number with unknown error.
_DIGITS: Final = 5
_MAX_PLACES: Final = 12
# From here on, not all digits of a float are exact.
_LARGEST: Final = 1e15

End = Literal["", "low", "high"]
# Moves nearly by half of the last place, so that an end which has no further digits stays.
_OUTWARDS: Final[dict[End, float]] = {"": 0.0, "low": -0.499999, "high": 0.499999}


def number_text(number: float, error: float = 0.0, *, sign: str = "", end: End = "") -> str:
    """The number to two digits of its error, without a power of ten below 1e15.

    Args:
        number: in any unit.
        error: its standard error; 0 if unknown, for at least five digits.
        sign: "+" to mark positive numbers with it.
        end: which end of an interval it is; the end is rounded outwards, and to 0 only if it is 0.
    """
    if not isfinite(number) or abs(number) >= _LARGEST:
        return f"{number:{sign}.6g}"
    size, digits = (error, _DIGITS_OF_ERROR) if error > 0 else (abs(number) or 1.0, _DIGITS)
    places = min(max(digits - 1 - floor(log10(size)), 0), _MAX_PLACES)
    if end and not error > 0:  # an edge of a bucket is the same as either end
        places += next((more for more in (1, 2) if round(number, places + more) == number), 0)
    rounded = number + _OUTWARDS[end] * 10**-places
    if end and abs(rounded) < 10**-places / 2 and 10**-_MAX_PLACES <= abs(number) < size:
        return number_text(number, abs(number), sign=sign, end=end)  # an end beside 0 is not 0
    text = f"{rounded:{sign}z,.{places}f}"
    return text.rstrip("0").rstrip(".") if places and not error > 0 else text


def error_of(low: float, high: float) -> float:
    """The approximate standard error behind an interval: a quarter of its width."""
    return (high - low) / 4


TELLING: Final = 0.95
"""Below this confidence an order counts as unknown."""
# Kinds of answers whose rows are in the metric's own unit.
_OF_MEANS: Final = frozenset({"mean", "vector", "rate", "activity"})
# Units that, for a mean, stand for the metric's own unit.
_OF_NUMBERS: Final = frozenset({"reports", "level", "change"})
_UNKNOWN: Final[Mapping[Unit, str]] = {"count": "?", "verdict": "?", "time": "never"}


def rounded_down(sure: float) -> str:
    """A confidence as text, rounded down and never 100%: randomized reports give no certainty."""
    return f"{min(floor(1000 * sure), 999) / 10:.1f}%"


_FORMATTERS: Final[Mapping[Unit, Callable[[Any], str]]] = {
    "text": str,
    "count": lambda number: f"{number:,}",
    "reports": lambda number: f"{number:z,.0f}",
    "share": lambda share: f"{share:z.1%}",
    "level": lambda level: f"{level:z.2%}",
    "change": lambda change: f"{100 * change:+z.2f}",
    "probability": lambda chance: f"{chance:.2g}",
    "confidence": lambda sure: rounded_down(sure) if sure >= TELLING else "uncertain",
    "epsilon": lambda epsilon: at_most(epsilon, ".3f"),
    "flag": lambda flag: "yes" if flag else "",
    "verdict": lambda flag: "yes" if flag else "NO",
    "time": lambda time: time.removesuffix("T00:00:00Z").removesuffix("Z").replace("T", " "),
}


def is_of_means(question: QueryName, answer: Document) -> bool:
    """Whether the answer's figures are means, in the metric's unit, not numbers of reports."""
    kind = answer.get("kind")
    return kind != "values" if question == "trend" else kind in _OF_MEANS


def columns_of(question: QueryName, answer: Document) -> Sequence[Column]:
    """The columns of this answer."""
    of_means, classes = is_of_means(question, answer), answer.get("kind") == "softmax"
    hidden = (*(() if classes else OF_CLASS), *(() if answer.get("by") else OF_PARTS))
    return [
        column
        for column in COLUMNS[question]
        if (column.of_means or not of_means) and column.field not in hidden
    ]


def title(column: Column, question: QueryName, answer: Document) -> str:
    """The heading of a column of this answer: "95% interval", for means with their unit."""
    of_means = is_of_means(question, answer)
    text = (of_means and column.mean_title) or column.title
    if question == "trend" and answer.get("kind") == "ranges" and column.field == "share":
        series = [line["value"] for line in answer["series"]]
        text = series[0] if len(series) == 1 else "number"
    numbers = column.unit in _OF_NUMBERS if of_means else column.field == "value"
    if question == "percentiles":
        numbers = column.field == "number"
    in_unit = of_means or question == "percentiles" or answer.get("kind") == "ranges"
    if answer.get("unit") and numbers and in_unit:
        text += f" ({answer['unit']})"
    return text.replace("{level}", f"{100 * answer.get('confidence', 0):.6g}%")


def cell(column: Column, row: Row, *, of_means: bool) -> str:
    """The text of a cell; empty if the figure does not apply, "?" if it is unknown."""
    values = [row.get(field) for field in column.fields]
    of_means = of_means or row.get("of_share") is False  # an experiment has rows of both
    if values[0] is None:
        return _UNKNOWN.get(column.unit, "")
    of_number = column.unit == "number" or (of_means and column.unit in _OF_NUMBERS)
    # Reports are whole numbers, unless their error is less than one of them.
    has_decimals = column.unit == "reports" and 0 < _error(row) < 1
    of_percentile = "number_" if column.field == "number" else ""
    error = _error(row, of_percentile) if of_number or has_decimals else None
    names: Sequence[End] = ("low", "high") if column.to else ("",)
    ends = [
        _format_value(column.unit, value, error, name)
        for value, name in zip(values, names, strict=True)
        if value is not None
    ]
    return f"{ends[0]} or more" if None in values else " to ".join(ends)


def _error(row: Row, interval: str = "") -> float:
    """The standard error of a row's numbers, or an approximation by its interval; else 0.

    `interval` is the beginning of the names of the interval's ends.
    """
    ends = f"{interval}low", f"{interval}high"
    error, low, high = (row.get(field) for field in ("stderr", *ends))
    if isinstance(error, int | float):
        return error
    if isinstance(low, int | float) and isinstance(high, int | float):
        return error_of(low, high)
    return 0.0


def _format_value(unit: Unit, value: Any, error: float | None, end: End) -> str:
    """The value in its unit; a malformed one, from a service of another version, as it is."""
    try:
        if error is not None:
            return number_text(value, error, sign="+" if unit == "change" else "", end=end)
        return _FORMATTERS[unit](value)
    except (TypeError, ValueError, AttributeError):
        return str(value)
