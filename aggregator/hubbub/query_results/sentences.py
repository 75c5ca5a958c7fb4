"""Describes in sentences what an answer's table does not show."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hubbub.query_results.rows import Document, percentile_name
from hubbub.query_results.unit_text import error_of, number_text

_NAMES: Final = {"auc": "AUC", "accuracy": "accuracy"}
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# Fewer chances than this are none that a p-value can be read as.
_LEAST = 1e-12


def final_sentence(document: Document) -> str:
    """Says that epochs of an answer still accept reports; "" if it is final or has no epochs."""
    final = document.get("final", True)
    return "" if final else "not final: these epochs still accept reports"


def judged_sentences(document: Document, level: str) -> list[str]:
    """Sentences with AUC or accuracy and its interval; empty until the model is judged."""
    return [
        f"{label} {document[name]:.3f}, {level} interval {document[f'{name}_low']:.3f} to "
        f"{document[f'{name}_high']:.3f}"
        for name, label in _NAMES.items()
        if document.get(name) is not None
    ]


def percentile_sentences(answer: Document) -> list[str]:
    """A sentence per percentile with number and interval; in a comparison with its change."""
    unit = f" {answer['unit']}" if answer.get("unit") else ""
    level = f"{100 * answer.get('confidence', 0):.6g}%"
    head = f"percentiles{unit and f' in{unit}'}, {level} intervals: "
    percentiles = answer.get("percentiles") or []
    if percentiles and "difference" in percentiles[0]:
        return [head + "; ".join(map(_shift_text, percentiles))]
    texts = [f"{_name_list(row)} {_figure(row, 'estimate')} ({_ends(row)})" for row in percentiles]
    sentences = [head + ", ".join(texts)] if texts else []
    sentences += [
        f"below {number_text(row['below'])}{unit}: {row['share']:.1%} ({row['low']:.1%} to "
        f"{row['high']:.1%})"
        for row in answer.get("below", ())
    ]
    return sentences + _range_end_sentences(
        [_name_list(row) for row in percentiles if row["reaches"]]
    )


def _name_list(row: Mapping[str, Any]) -> str:
    return percentile_name(row["percentile"])


def _ends(row: Mapping[str, Any]) -> str:
    """The interval in words; an end of the range does not bound the true value."""
    low, high = number_text(row["low"], end="low"), number_text(row["high"], end="high")
    open_ends = {"low": f"up to {high}", "high": f"{low} or more", "both": "not known"}
    return open_ends.get(row["reaches"], f"{low} to {high}")


def _shift_text(row: Mapping[str, Any]) -> str:
    return (
        f"{_name_list(row)} from {_figure(row, 'before')} to {_figure(row, 'after')}, "
        f"{_figure(row, 'difference', '+')} "
        f"({number_text(row['low'], sign='+', end='low')} to "
        f"{number_text(row['high'], sign='+', end='high')})" + (", moved" if row["moved"] else "")
    )


def _range_end_sentences(names: Sequence[str]) -> list[str]:
    """Says which intervals are bounded by the range instead of by reports."""
    sentence = (
        f"{', '.join(names)}: the interval reaches the end of the range, and the true value may be "
        "outside it; more reports are needed, finer buckets or a wider range"
    )
    return [sentence] if names else []


def _figure(row: Mapping[str, Any], part: str, sign: str = "") -> str:
    return number_text(row[part], error_of(row["low"], row["high"]), sign=sign)


def trend_sentences(answer: Mapping[str, Any]) -> list[str]:
    """The sentences, in reading order."""
    reaching = [
        f"{line['value']} in {count} of {len(line['points'])} epochs"
        for line in answer.get("series", ())
        if (count := sum(1 for point in line.get("points", ()) if point.get("reaches")))
    ]
    return _joined_sentences(answer) + _line_sentences(answer) + _range_end_sentences(reaching)


def _joined_sentences(answer: Mapping[str, Any]) -> list[str]:
    """Whose reports are included, and in which epochs a value did not exist."""
    if not answer.get("joined"):
        return []
    gaps = [line for line in answer["series"] if line.get("not_asked")]
    return [
        f"with the reports of {', '.join(answer['joined'])}, which it continues",
        *(f"{line['value'][:80]}: not asked in {line['not_asked']}" for line in gaps),
    ]


def _line_sentences(answer: Mapping[str, Any]) -> list[str]:
    """Each step with its interval and date, and the effects of weekdays."""
    sentences = []
    for line in answer.get("series", ()):
        name = line["value"][:80]
        for step in line.get("shifts", ()):
            error = error_of(step["low"], step["high"])
            figures = [_change(answer, step[part], error) for part in ("difference", "low", "high")]
            when = "" if step["within"] == step["date"] else f" (within {step['within']})"
            sentences.append(
                f"{name}: a step of {figures[0]}, {figures[1]} to {figures[2]}, on "
                f"{step['date']}{when}"
            )
        if effects := line.get("weekdays"):
            days = zip(_DAYS, effects, strict=True)
            each = ", ".join(f"{day} {_change(answer, effect)}" for day, effect in days)
            sentences.append(f"{name}: weekdays differ: {each}")
    if any(line.get("shifts") for line in answer.get("series", ())):
        sentences.append(f"at most {answer['false_alarm']:.0%} of lines without a step show one")
    return sentences


def _change(answer: Mapping[str, Any], difference: float, error: float = 0.0) -> str:
    """A change as comparisons write it: shares in percentage points, means in their unit."""
    if answer.get("kind") == "values":
        return f"{100 * difference:+.2f} points"
    unit = f" {answer['unit']}" if answer.get("unit") else ""
    return number_text(difference, error, sign="+") + unit


def association_sentence(document: Document) -> str:
    """A sentence with the test of independence, and Cramer's V with its interval."""
    parts = f"{document['rows']} and {document['columns']}"
    if document["by"]:
        return _test_text(f"{parts}, within {document['by']},", document["association"], document)
    return _sentence(parts, document["association"], document)


def slice_sentences(document: Document) -> list[str]:
    """The same for each value of a third part; empty if there are two parts."""
    return [
        f"{document['by']}={row['value']}: "
        + (
            _sentence("the two", row["association"], document)
            if row["association"]
            else "too rare to judge"
        )
        for row in document["slices"]
    ]


def _test_text(parts: str, association: Document, document: Document) -> str:
    p_value = association["p_value"]
    p = f"p < {_LEAST:.0e}" if p_value < _LEAST else f"p = {p_value:.2g}"
    is_joint = p_value <= 1 - document["confidence"]
    return f"{parts} go together ({p})" if is_joint else f"no sign that {parts} go together ({p})"


def _sentence(parts: str, association: Document, document: Document) -> str:
    sentence = _test_text(parts, association, document)
    if association["cramers_v"] is None:
        return f"{sentence}; there are too few reports to tell how strongly"
    low, high = (f"{association[end]:.2f}" for end in ("low", "high"))
    sentence += f"; Cramer's V {association['cramers_v']:.2f}, {low} to {high}"
    rare = [*association["rare_rows"], *association["rare_columns"]]
    return sentence + (f" ({len(rare):,} rare values count as one)" if len(rare) > 1 else "")
