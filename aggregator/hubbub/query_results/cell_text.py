"""Formats numbers in a metric's unit, and the cells of a table by the unit of their column."""

from collections.abc import Callable, Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any, Final, Literal

from hubbub.query_results.columns import COLUMNS, OF_CLASS, OF_PARTS, Column, QueryName, Unit
from hubbub.query_results.rows import Document, Row

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
        end: which end of an interval it is; the end is rounded outwards.
    """
    if not isfinite(number) or abs(number) >= _LARGEST:
        return f"{number:{sign}.6g}"
    size, digits = (error, _DIGITS_OF_ERROR) if error > 0 else (abs(number) or 1.0, _DIGITS)
    places = min(max(digits - 1 - floor(log10(size)), 0), _MAX_PLACES)
    rounded = number + _OUTWARDS[end] * 10**-places
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
    "epsilon": lambda epsilon: f"{epsilon:.3f}",
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
