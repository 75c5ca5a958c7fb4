"""What an answer says of percentiles, and of shares below a number, in sentences."""

from collections.abc import Iterator, Mapping
from typing import Any

from hubbub.query_results.rows import Document

_ENDS = {"low": "its lower end", "high": "its upper end", "both": "both its ends"}


def percentile_sentences(answer: Document) -> list[str]:
    """Of each percentile its number and interval; of a comparison how far it moved."""
    level, unit = f"{100 * answer.get('confidence', 0):.6g}%", answer.get("unit") or ""
    unit = f" {unit}" if unit else ""
    percentiles = answer.get("percentiles") or []
    if not percentiles:
        return []
    if "difference" in percentiles[0]:
        texts = [_moved(row) for row in percentiles]
        return [f"percentiles{unit and f' in{unit}'}, {level} intervals: {'; '.join(texts)}"]
    texts = [
        f"{name_of(row)} {_figure(row['estimate'])} ({_figure(row['low'])} to "
        f"{_figure(row['high'])})"
        for row in percentiles
    ]
    sentences = [f"percentiles{unit and f' in{unit}'}, {level} intervals: {', '.join(texts)}"]
    sentences += [
        f"below {_figure(row['below'])}{unit}: {row['share']:.1%} ({row['low']:.1%} to "
        f"{row['high']:.1%})"
        for row in answer.get("below", ())
    ]
    return sentences + list(_ended(percentiles))


def name_of(row: Mapping[str, Any]) -> str:
    """A percentile as people write it: p50, p99.9."""
    return f"p{row['percentile']:.10g}"


def _moved(row: Mapping[str, Any]) -> str:
    return (
        f"{name_of(row)} {_figure(row['before'])} to {_figure(row['after'])}, "
        f"{row['difference']:+,.4g} ({row['low']:+,.4g} to {row['high']:+,.4g})"
        + (", moved" if row["moved"] else "")
    )


def _ended(percentiles: list[Mapping[str, Any]]) -> Iterator[str]:
    """Which intervals are not bounded by reports, but by the range."""
    for reaches, ends in _ENDS.items():
        names = [name_of(row) for row in percentiles if row["reaches"] == reaches]
        if names:
            yield (
                f"{', '.join(names)}: the interval has {ends} where the range ends, so it may lie "
                "beyond; more reports are needed, or a wider range"
            )


def _figure(number: float) -> str:
    return f"{number:,.4g}"
