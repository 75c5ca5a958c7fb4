"""The cells of a table as text for people, each by the unit of its column."""

from collections.abc import Callable, Mapping, Sequence
from math import floor
from typing import Any, Final

from hubbub.query_results.columns import COLUMNS, OF_CLASS, SLICE, Column, QueryName, Unit
from hubbub.query_results.rows import Document, Row

# Below this confidence an order is as good as unknown.
_TELLING: Final = 0.95
# Kinds of answers whose rows are in the metric's own unit.
_OF_MEANS: Final = frozenset({"mean", "vector"})
# Of a mean, what is in the metric's own unit.
_OF_NUMBERS: Final = frozenset({"reports", "level", "change"})
_UNKNOWN: Final[Mapping[Unit, str]] = {"count": "?", "verdict": "?", "time": "never"}


def at_least(sure: float) -> str:
    """A confidence, rounded down and never to certainty, which coins do not give."""
    return f"{min(floor(1000 * sure), 999) / 10:.1f}%"


_WRITTEN: Final[Mapping[Unit, Callable[[Any, bool], str]]] = {
    "text": lambda value, _: str(value),
    "count": lambda number, _: f"{number:,}",
    "reports": lambda number, means: f"{number:,.5g}" if means else f"{number:,.0f}",
    "share": lambda share, _: f"{share:.1%}",
    "level": lambda level, means: f"{level:,.5g}" if means else f"{level:.2%}",
    "change": lambda change, means: f"{change:+,.5g}" if means else f"{100 * change:+.2f}",
    "probability": lambda chance, _: f"{chance:.2g}",
    "confidence": lambda sure, _: at_least(sure) if sure >= _TELLING else "too close to call",
    "epsilon": lambda epsilon, _: f"{epsilon:.3f}",
    "number": lambda number, _: f"{number:,.4g}",
    "flag": lambda flag, _: "yes" if flag else "",
    "verdict": lambda flag, _: "yes" if flag else "NO",
    "time": lambda time, _: time.removesuffix("T00:00:00Z").removesuffix("Z").replace("T", " "),
}


def is_of_means(question: QueryName, answer: Document) -> bool:
    """Whether its figures are means, in the metric's own unit, and not numbers of reports."""
    kind = answer.get("kind")
    return kind != "values" if question == "trend" else kind in _OF_MEANS


def columns_of(question: QueryName, answer: Document) -> Sequence[Column]:
    """The columns that this answer has."""
    means, classes = is_of_means(question, answer), answer.get("kind") == "softmax"
    without = [*([] if classes else [OF_CLASS]), *([] if answer.get("by") else [SLICE])]
    return [
        column
        for column in COLUMNS[question]
        if (column.of_means or not means) and column not in without
    ]


def title(column: Column, question: QueryName, answer: Document) -> str:
    """What stands above a column of this answer: "95% interval", of means with their unit."""
    means = is_of_means(question, answer)
    text = (means and column.mean_title) or column.title
    numbers = column.unit in _OF_NUMBERS if means else column.field == "value"
    if answer.get("unit") and numbers and (means or answer.get("kind") == "ranges"):
        text += f" ({answer['unit']})"
    return text.replace("{level}", f"{100 * answer.get('confidence', 0):.6g}%")


def cell(column: Column, row: Row, *, of_means: bool) -> str:
    """One cell; empty where the figure does not apply, "?" where it is not known."""
    values = [row.get(field) for field in column.fields]
    if None in values:
        return _UNKNOWN.get(column.unit, "")
    return " to ".join(_written(column.unit, value, of_means=of_means) for value in values)


def _written(unit: Unit, value: Any, *, of_means: bool) -> str:
    """As its unit is; what a service of another version, or a stranger, sends is shown as it is."""
    try:
        return _WRITTEN[unit](value, of_means)
    except (TypeError, ValueError, AttributeError):
        return str(value)
