"""Describes percentiles, and shares below a number, in sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

from hubbub.query_results.measured import error_of, measured
from hubbub.query_results.rows import Document, percentile_name


def percentile_sentences(answer: Document) -> list[str]:
    """A sentence per percentile with number and interval; in a comparison with its change."""
    level, unit = f"{100 * answer.get('confidence', 0):.6g}%", answer.get("unit") or ""
    unit = f" {unit}" if unit else ""
    percentiles = answer.get("percentiles") or []
    if percentiles and "difference" in percentiles[0]:
        texts = [_moved(row) for row in percentiles]
        return [f"percentiles{unit and f' in{unit}'}, {level} intervals: {'; '.join(texts)}"]
    texts = [f"{_named(row)} {_figure(row, 'estimate')} ({_ends(row)})" for row in percentiles]
    sentences = [f"percentiles{unit and f' in{unit}'}, {level} intervals: {', '.join(texts)}"]
    sentences = (sentences if texts else []) + [
        f"below {measured(row['below'])}{unit}: {row['share']:.1%} ({row['low']:.1%} to "
        f"{row['high']:.1%})"
        for row in answer.get("below", ())
    ]
    return sentences + ended([_named(row) for row in percentiles if row["reaches"]])


def _named(row: Mapping[str, Any]) -> str:
    return percentile_name(row["percentile"])


def _ends(row: Mapping[str, Any]) -> str:
    """The interval in words; an end of the range does not bound the true value."""
    low, high = _figure(row, "low"), _figure(row, "high")
    open_ends = {"low": f"up to {high}", "high": f"{low} or more", "both": "not known"}
    return open_ends.get(row["reaches"], f"{low} to {high}")


def _moved(row: Mapping[str, Any]) -> str:
    return (
        f"{_named(row)} {_figure(row, 'before')} to {_figure(row, 'after')}, "
        f"{_figure(row, 'difference', '+')} "
        f"({_figure(row, 'low', '+')} to {_figure(row, 'high', '+')})"
        + (", moved" if row["moved"] else "")
    )


def ended(names: Sequence[str]) -> list[str]:
    """Says which intervals are bounded by the range instead of by reports."""
    if not names:
        return []
    return [
        (
            f"{', '.join(names)}: the interval reaches the end of the range, and the true value "
            "may be outside it; more reports are needed, or a wider range"
        )
    ]


def _figure(row: Mapping[str, Any], part: str, sign: str = "") -> str:
    return measured(row[part], error_of(row["low"], row["high"]), sign=sign)
