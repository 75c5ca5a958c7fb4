"""The rows of an answer's JSON, with all fields of a value, so that new ones appear everywhere."""

from collections.abc import Mapping
from typing import Any, Final

from hubbub.query_results.columns import HEADS, QueryName

Row = dict[str, Any]
Document = Mapping[str, Any]

MAX_TOP: Final = 1000
"""The largest number of values of a ranking."""
MAX_SERIES: Final = 50
"""The largest number of lines of a trend."""

_ROWS: Final[Mapping[QueryName, str]] = {
    "metrics": "metrics",
    "status": "windows",
    "model": "coefficients",
}


def rows(question: QueryName, answer: Document) -> list[Row]:
    """A row per value; in a trend one per value and epoch."""
    match question:
        case "metrics" | "status" | "model":
            return [dict(row) for row in answer[_ROWS[question]]]
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
            return [dict(value) for value in answer["values"]]


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
        for row in rows(question, answer)
    ]
