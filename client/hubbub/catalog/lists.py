"""The versions of a metric with each list of values that it has had."""

from collections.abc import Iterator
from dataclasses import replace

from hubbub.catalog.metric import Metric
from hubbub.catalog.values.list_versions import list_names


def versions_of(metric: Metric) -> Iterator[Metric]:
    """Yields the metric with each list, as its own stream has it, the first list first."""
    if not metric.grown:
        yield metric
        return
    assert metric.values is not None  # noqa: S101 of a list alone
    sizes = (*metric.grown, len(metric.values))
    names = list_names(metric.name, metric.grown, sizes[-1])
    for name, size in zip(names, sizes, strict=True):
        yield replace(metric, name=name, values=metric.values[:size], grown=(), alert=None)
