"""Trends: a metric's values epoch by epoch."""

from collections.abc import Mapping, Sequence
from typing import Final

from hubbub.accounting import Window
from hubbub.aggregator.query.answers import Point, Series
from hubbub.aggregator.query.totals import EpochSelection, TotalsByEpoch
from hubbub.aggregator.store.contract import WindowTotals
from hubbub.analysis import Answer, shares
from hubbub.errors import BadParameter

__all__ = ["MAX_SERIES", "series"]

MAX_SERIES: Final = 50
MEAN: Final = "mean"
"""What the one series of numbers is called; a listed value may be called so, too."""

_MAX_EPOCHS: Final = 1000


def series(
    collected: TotalsByEpoch,
    selection: EpochSelection,
    totals: Mapping[Window, WindowTotals],
    answer: Answer,
    *,
    values: Sequence[str],
    number: int,
    candidates: Sequence[str],
) -> list[Series]:
    """Of these values, or of the `number` most frequent of `answer`, a point per epoch.

    Epochs below the minimum batch have none. Of numbers there is one series, their mean.

    Raises:
        BadParameter: a value that the metric does not have; too many series or epochs.
    """
    metric = selection.metric
    numbers = answer.span is not None
    names = [MEAN] if numbers else _names(answer, values, number)
    _check(selection, answer, names, values)
    places = {value.value: place for place, value in enumerate(answer.values)}
    wanted = [0] if numbers else [places[name] for name in names]
    many = len(answer.values)
    # Where it was picked among all, which chance may have helped; of a mean nothing was.
    followed_first = [] if values or numbers else wanted
    picked = [(answer.values[place].rank or 1) / many for place in followed_first]
    if metric.values is None and not numbers and not candidates:
        # Found in the whole range: an epoch alone would find others.
        candidates, wanted = names, list(range(len(names)))
    points: list[list[Point]] = [[] for _ in names]
    reports = selection.by_epoch()
    for epoch in selection.epochs:
        if reports[epoch] < metric.fewest:
            continue
        tiers = collected.tiers(metric, totals, [epoch])
        found = shares(
            tiers,
            wanted,
            candidates,
            answer.confidence,
            repeats=metric.limits.reports_per_epoch,
            picked=picked,
        )
        for own, one in zip(points, found, strict=True):
            own.append(
                Point(epoch, selection.date(epoch), one.estimate, one.stderr, one.low, one.high)
            )
    return [Series(name, own) for name, own in zip(names, points, strict=True)]


def _check(
    selection: EpochSelection, answer: Answer, names: Sequence[str], values: Sequence[str]
) -> None:
    """Raises BadParameter for what cannot be followed."""
    metric, numbers = selection.metric, answer.span is not None
    if len(selection.epochs) > _MAX_EPOCHS:
        raise BadParameter(f"a trend over more than {_MAX_EPOCHS} epochs: ask for fewer")
    if followed := set(values) & set(answer.beginnings):
        raise BadParameter(
            f'"{min(followed)[:60]}" is what longer strings begin with, and a trend follows whole '
            "ones: leave it out"
        )
    if numbers and set(values) - {MEAN}:
        raise BadParameter(
            f'metric "{metric.name}" asks for numbers, and a trend follows their mean: leave '
            "values out"
        )
    known = {value.value for value in answer.values}
    if not numbers and (unknown := [name for name in names if name not in known]):
        raise BadParameter(
            f'metric "{metric.name}" has no value "{unknown[0][:60]}" to follow; write one of its '
            "own, as an estimate lists them"
        )


def _names(answer: Answer, values: Sequence[str], number: int) -> list[str]:
    if not 1 <= max(number, len(values)) <= MAX_SERIES:
        raise BadParameter(f"a trend follows 1 to {MAX_SERIES} values: ask for as many")
    if values:
        return list(dict.fromkeys(values))
    # Of a beginning, that is of all strings which begin so, no epoch alone can be asked.
    whole = (value for value in answer.values if value.value not in answer.beginnings)
    ordered = sorted(whole, key=lambda value: value.rank or 0)
    return [value.value for value in ordered[:number]]
