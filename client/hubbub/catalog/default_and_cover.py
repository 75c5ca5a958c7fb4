"""What a device sends when it has nothing to report, so that its silence reveals nothing.

`default`, in a metric, is a value reported instead. `cover`, for the whole catalog, adds fillers,
so that every device sends equally many reports of every stream.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.errors import ValueOutOfDomain
from hubbub.fields.field import entry
from hubbub.fields.kinds import FLAG, simple
from hubbub.fields.rules import is_text
from hubbub.mechanisms import is_number

NONE: Final = "none"
"""The value that says that there is none, where a metric's values are listed."""

_WORDS: Final = 'one of the metric\'s values, or "none" where they are listed'

DEFAULT: Final = entry(
    simple(
        _WORDS,
        lambda value: is_text(value) or is_number(value),
        {"type": ["string", "number"]},
    ),
    "Value that a device reports after an epoch in which it ran and the app reported nothing; "
    "all reports then wait until the epoch is over. `none` adds a value.",
    '"none"',
    write='write default = "none", or leave it out',
    label="reports without a value of the app,",
    in_definition=True,
)


COVER: Final = entry(
    FLAG,
    "After each epoch, every device that ran sends one report of every stream; without a report "
    "it sends a filler, which only the aggregator can recognize.",
    "true",
    write="write cover = true, or leave it out",
)


def cover_conflicts(metric: Any) -> dict[str, str]:
    """What conflicts with a metric's default: by field, what is wrong with it."""
    if metric.default is None:
        return {}
    if metric.breakdown:
        return {
            "breakdown": "cannot be combined with a default: the app passes public fields with a "
            "report, but not for an epoch that is over; leave one of them out"
        }
    if metric.limits.reports_per_epoch != 1:
        return {
            "limits": "reports_per_epoch must be 1 with a default: otherwise the number of reports "
            'would show whether the app reported anything; write 1, or leave "default" out'
        }
    return {}


def uncovered(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields what conflicts with `cover`: metric, field, and what is wrong with it."""
    for name, metric in metrics.items():
        if metric.model:
            problem = (
                "of a model cannot be combined with cover: a device reports to it once, in its "
                "round, and that would be visible; leave one of them out"
            )
            yield name, "kind", problem
        elif isinstance(metric.value_kind, PastKind):
            problem = (
                "cannot be combined with cover: an unused device reports nothing, and that would "
                "be visible; leave one of them out"
            )
            yield name, "kind", problem
        elif metric.default is None:
            problem = (
                "is needed with cover: without it the time of a report would show that the app "
                "reported something, and the aggregator could distinguish the report from a "
                'filler; write default = "none", or leave "cover" out'
            )
            yield name, "default", problem
        elif metric.mix != "pool":
            problem = (
                "cannot be combined with cover: fillers would count towards the crowd that hides "
                "a report, but hide nobody; leave one of them out"
            )
            yield name, "central_epsilon", problem


def refusal_of_default(metric: Any) -> str:
    """Why a metric cannot report its default; "" if it can."""
    if metric.memoized:
        return (
            f"default: {metric.mechanism} charges each new answer, so a device that reports "
            "values would reach its limit sooner than one without; choose a mechanism "
            "without a permanent response"
        )
    try:
        metric.code(metric.default)
    except ValueOutOfDomain:
        hint = (
            '; for "none" of a number write edges, or add a boolean metric for whether '
            "there is a number"
            if metric.default == NONE
            else ""
        )
        return f"default must be {_WORDS}{hint}"
    return ""
