"""The rows of an answer's JSON, with every field of a value: a new one is in every face."""

from collections.abc import Mapping
from typing import Any

from hubbub.query_results.columns import HEADS, QueryName

Row = dict[str, Any]
Document = Mapping[str, Any]


def rows(question: QueryName, answer: Document) -> list[Row]:
    """A row per value; of a trend one per value and epoch."""
    match question:
        case "metrics":
            return [dict(metric) for metric in answer["metrics"]]
        case "status":
            return [dict(window) for window in answer["windows"]]
        case "model":
            return [dict(coefficient) for coefficient in answer["coefficients"]]
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


def whole_rows(question: QueryName, answer: Document) -> list[Row]:
    """Rows that stand alone, as lines of a file do: each says its metric, epochs and confidence.

    And the answer's notice, where it has one.
    """
    head = {name: answer[name] for name in HEADS[question]}
    if answer.get("notice"):
        head["notice"] = answer["notice"]
    return [
        {name: cell for name, cell in {**head, **row}.items() if not isinstance(cell, list)}
        for row in rows(question, answer)
    ]
