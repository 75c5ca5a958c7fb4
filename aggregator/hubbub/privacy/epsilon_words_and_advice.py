"""One word for an epsilon, and advice on reducing a catalog's yearly sum."""

from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import Final

from hubbub.authoring import exposure
from hubbub.catalog import SPANS, Metric
from hubbub.catalog.values.event_history_kinds import PastKind
from hubbub.errors import HubbubError
from hubbub.errors.message_words import at_most, nats

VERDICTS: Final = {
    "strong": log(3),
    "fair": log(9),
    "weak": log(99),
    "poor": log(1999),
    "hides nothing": float("inf"),
}
"""Up to which epsilon each is stated: from 50:50 an observer is 75%, 90%, 99%, 99.95% sure."""

_LOUD: Final = 4.0  # one report above it is hardly hidden: docs/privacy.md
_YEAR: Final = "year"
# The lifetime loss suggested as an alternative, in nats.
_FEWER: Final = 2.0
# Of what permanent answers there are, all without a crowd.
_LASTING: Final = ("listed", "sketch", "bloom")


def verdict(epsilon: float) -> str:
    """The word for an epsilon, in nats."""
    return next(word for word, most in VERDICTS.items() if epsilon <= most)


def advice(metrics: Sequence[Metric]) -> tuple[str, ...]:
    """Advice on how to reveal less about one person in a year; empty if the sum is fair already."""
    days = SPANS[_YEAR]
    parts = {metric.name: exposure(metric, days) for metric in metrics}
    total = sum(parts.values())
    if not parts or verdict(total) in {"strong", "fair"}:
        return ()
    metric = max(metrics, key=lambda item: parts[item.name])
    largest = parts[metric.name]
    lines = [f"Most of a year is {metric.name}: {at_most(largest, '.4g')} of {nats(total)}."]
    if metric.epoch in {"hour", "day"} and (weekly := _weeks(metric, days)) < largest:
        lines.append(f'With epoch = "week" it reveals {at_most(weekly, ".4g")}.')
    # A device reports once for life to a model, or several times in a crowd.
    if (model := metric.model) and metric.central and model.reports > 1:
        lines.append(
            f"A device reports to it {model.reports} times in all: with a smaller "
            "max_local_epsilon, or fewer rounds_each, it reveals less."
        )
    elif model:
        lines.append(
            f"A device reports to it once: at epsilon = {_FEWER} it reveals 2 ({verdict(_FEWER)}), "
            f"but needs more people: hubbub plan model {model.kind}."
        )
    else:
        lines += _repetition_lines(metric)
    lines.append(
        "For all metrics at once: [caps] epsilon_per_year, which the device always keeps; or "
        "sampling below 1, against observers who cannot see whether a device takes part."
    )
    return (" ".join(lines),)


def loud_reports(metrics: Sequence[Metric]) -> tuple[str, ...]:
    """Warnings about metrics whose single report hides little, and is not hidden by a crowd."""
    return tuple(
        f"{metric.name}: one report reveals {nats(metric.report_loss)} "
        f"({verdict(metric.report_loss)}): lower epsilon, or ask in a crowd (central_epsilon)"
        for metric in metrics
        if metric.report_loss > _LOUD and not metric.central
    )


def year_of_reports(metrics: Sequence[Metric]) -> str:
    """What all reports of one person in a year reveal, to anyone who can link them."""
    year = sum(exposure(metric, SPANS[_YEAR]) for metric in metrics)
    return (
        f"all reports of one person in a year reveal at most {nats(year)} ({verdict(year)}) "
        "to anyone who can link them; hubbub privacy card shows what lowers that"
    )


def _repetition_lines(metric: Metric) -> list[str]:
    lines = []
    # No catalog takes a limit below one report's epsilon.
    if metric.limits.lifetime_epsilon > log(9) and metric.report_loss <= _FEWER:
        lines.append(
            f"With lifetime_epsilon = {_FEWER} the device stops at 2 ({verdict(_FEWER)}), for good."
        )
    has_permanent_answers = metric.randomizer.FAMILY in _LASTING and not metric.crowd
    if has_permanent_answers and not (metric.memoized or isinstance(metric.value_kind, PastKind)):
        lines.append(
            "If its value seldom changes, a mechanism with a permanent answer (rappor) bounds all "
            "answers about one value."
        )
    return lines


def _weeks(metric: Metric, days: int) -> float:
    try:
        return exposure(replace(metric, epoch="week"), days)
    except HubbubError:  # what such epochs cannot be of
        return float("inf")
