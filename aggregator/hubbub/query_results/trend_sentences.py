"""Describes a trend: the reports in it, its steps and weekdays."""

from collections.abc import Mapping
from typing import Any, Final

from hubbub.query_results.measured import error_of, measured
from hubbub.query_results.percentile_sentences import ended

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def trend_sentences(answer: Mapping[str, Any]) -> list[str]:
    """The sentences, in reading order."""
    reaching = [
        f"{line['value']} in {count} of {len(line['points'])} epochs"
        for line in answer.get("series", ())
        if (count := sum(1 for point in line.get("points", ()) if point.get("reaches")))
    ]
    return _of_joined(answer) + _of_lines(answer) + ended(reaching)


def _of_joined(answer: Mapping[str, Any]) -> list[str]:
    """Whose reports are included, and in which epochs a value did not exist."""
    if not answer.get("joined"):
        return []
    gaps = [line for line in answer["series"] if line.get("not_asked")]
    return [
        f"with the reports of {', '.join(answer['joined'])}, which it continues",
        *(f"{line['value'][:80]}: not asked in {line['not_asked']}" for line in gaps),
    ]


def _of_lines(answer: Mapping[str, Any]) -> list[str]:
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
    return measured(difference, error, sign="+") + unit
