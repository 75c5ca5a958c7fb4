"""A metric as each list of values had it, and how it goes on from the one before."""

from collections.abc import Iterator
from dataclasses import replace

from hubbub.catalog.metric import Metric
from hubbub.catalog.values.grown import is_list, list_names

__all__ = ["grown_from", "versions_of"]


def versions_of(metric: Metric) -> Iterator[Metric]:
    """What was asked with each list, as its own stream has it: the first list first."""
    if not metric.grown:
        yield metric
        return
    assert metric.values is not None  # noqa: S101 of a list alone
    sizes = (*metric.grown, len(metric.values))
    names = list_names(metric.name, metric.grown, sizes[-1])
    for name, size in zip(names, sizes, strict=True):
        yield replace(metric, name=name, values=metric.values[:size], grown=(), alert=None)


def grown_from(metric: Metric, before: Metric | None) -> Metric:
    """The metric as it goes on from what was asked before, where only values were appended.

    With `auto` the mechanism stays what it was: two lists are joined by it.
    """
    if before is None or metric.values is None or before.values is None or not is_list(before):
        return metric
    if metric.values[: len(before.values)] != before.values:
        return metric
    more = len(metric.values) > len(before.values)
    if metric.choice and before.choice and metric.epsilon == before.epsilon:
        metric = replace(
            metric,
            mechanism=before.mechanism,
            parameters=before.parameters,
            choice=before.choice,
        )
    if not is_list(metric):
        return metric
    return replace(metric, grown=(*before.grown, len(before.values)) if more else before.grown)
