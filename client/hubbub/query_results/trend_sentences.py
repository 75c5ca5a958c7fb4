"""What a trend says beside its points: whose reports are among them, its steps and weekdays."""

from collections.abc import Mapping
from typing import Any, Final

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def trend_sentences(answer: Mapping[str, Any]) -> list[str]:
    """Sentences for people, in the order in which they are read."""
    return _of_joined(answer) + _of_lines(answer)


def _of_joined(answer: Mapping[str, Any]) -> list[str]:
    """Whose reports are among these, and in which epochs a value was not asked for."""
    if not answer.get("joined"):
        return []
    asked = [one for one in answer["series"] if one.get("not_asked")]
    return [
        f"with the reports of {', '.join(answer['joined'])}, which it goes on from",
        *(f"{one['value'][:80]}: not asked in {one['not_asked']}" for one in asked),
    ]


def _of_lines(answer: Mapping[str, Any]) -> list[str]:
    """Each step with its interval and when it was, and the effects of weekdays."""
    said = []
    for one in answer.get("series", ()):
        name = one["value"][:80]
        for step in one.get("shifts", ()):
            told = [_change(answer, step[part]) for part in ("difference", "low", "high")]
            when = "" if step["within"] == step["date"] else f" (within {step['within']})"
            said.append(
                f"{name}: a step of {told[0]}, {told[1]} to {told[2]}, on {step['date']}{when}"
            )
        if effects := one.get("weekdays"):
            days = zip(_DAYS, effects, strict=True)
            each = ", ".join(f"{day} {_change(answer, effect)}" for day, effect in days)
            said.append(f"{name}: weekdays differ: {each}")
    if any(one.get("shifts") for one in answer.get("series", ())):
        said.append(f"of lines that take no step {answer['false_alarm']:.0%} have one, at most")
    return said


def _change(answer: Mapping[str, Any], difference: float) -> str:
    """As comparisons write it: of shares in percentage points, of means in their unit."""
    if answer.get("kind") == "values":
        return f"{100 * difference:+.2f} points"
    return f"{difference:+,.5g}" + (f" {answer['unit']}" if answer.get("unit") else "")
