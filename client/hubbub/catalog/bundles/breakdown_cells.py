"""Cells: a metric as some of its public values have it, under the name that says which."""

from collections.abc import Mapping
from copy import copy
from typing import Any

from hubbub.catalog.breakdown import told_by
from hubbub.catalog.metric import Metric
from hubbub.errors import UnknownMetric


def part_of_metric(metric: Metric, name: str) -> Metric:
    """The metric as its cells have it, under the name of a cell or of several.

    Raises:
        UnknownMetric: its public fields have no such values.
    """
    rules, wanted = metric.breakdown, told_by(name)
    odd = [field for field, values in wanted.items() if not _are_of(values, rules.get(field, {}))]
    if odd or ("@" in name and not rules):
        fields = ", ".join(f"{field} ({', '.join(own)})" for field, own in rules.items())
        has = f"it is told apart by {fields}" if rules else "it has no breakdown"
        raise UnknownMetric(f'metric "{metric.base_name}" has no such cells; {has}')
    part = copy(metric)  # all the same but for the name, so nothing is checked or built again
    object.__setattr__(part, "name", name)
    return part


def _are_of(values: list[str], known: Mapping[str, Any]) -> bool:
    return set(values) <= known.keys() and len(set(values)) == len(values)
