"""What an app reported, as the mechanism of the metric takes it."""

from collections.abc import Mapping
from typing import Any

from hubbub.catalog.models.of_metric import as_reported
from hubbub.catalog.values.part_values import code_of
from hubbub.catalog.values.sets import set_code
from hubbub.catalog.values.value_kinds import OTHER, part_of, plain_number
from hubbub.catalog.values.vectors import VECTOR, vector_code
from hubbub.errors import ValueOutOfDomain
from hubbub.mechanisms import is_number


def code_of_reported(metric: Any, places: Mapping[str, int], value: Any) -> Any:
    """The mechanism's value for a reported one. places: of the listed values.

    Raises:
        ValueOutOfDomain: not one of the metric's values. The message never shows it.
    """
    value = as_reported(metric, value)
    try:
        if metric.values is None:
            return _number(metric, value)
        if metric.parts:
            return code_of(metric.randomizer, metric.values, value, metric.ranges)
        if metric.kind == VECTOR:
            return vector_code(metric.randomizer, metric.values, value)
        if metric.kind == "set":
            return set_code(places, value, places[OTHER] if metric.other else None)
        code = _place(metric, places, value)
    except ValueOutOfDomain as error:
        raise ValueOutOfDomain(f'metric "{metric.name}": {error}') from None
    if code is None:
        wrong = f"the value is not one of its {len(metric.values)} values"
        if metric.other:  # any string counts as something
            wrong = "the value is not a string"
        raise ValueOutOfDomain(f'metric "{metric.name}": {wrong}')
    return code


def is_one_of_listed(metric: Any) -> bool:
    """Whether an app reports one of the listed values by its text, and nothing of several parts."""
    return not (metric.parts or metric.model or metric.kind in ("set", VECTOR))


def _place(metric: Any, places: Mapping[str, int], value: Any) -> int | None:
    """Where the value stands among those listed; None if it does not."""
    text = str(value).lower() if isinstance(value, bool) else value
    code = places.get(text) if isinstance(text, str) else None
    if code is None and metric.edges:
        number = plain_number(metric.kind, metric.unit, value)
        return part_of(metric.edges, number, clamps=metric.clamps)
    if code is None and metric.other and isinstance(value, str):
        return places[OTHER]
    return code


def _number(metric: Any, value: Any) -> Any:
    """What is no listed value, in the metric's unit, at the nearest end if it is to be."""
    if metric.kind:
        value = plain_number(metric.kind, metric.unit, value)
    if metric.clamps and is_number(value):
        value = min(max(value, metric.parameters["low"]), metric.parameters["high"])
    metric.randomizer.check(value)
    return value
