"""What a payload could have meant: the probability of every value of a metric."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hubbub.catalog.metric import Metric
from hubbub.catalog.values.numbers import part_of
from hubbub.catalog.values.part_values import name_of
from hubbub.errors import BadPayload

# Numbers without buckets are told in so many slices of their range.
_SLICES = 8


def meanings_of(
    stream: Metric, payload: bytes, candidates: Sequence[str] = ()
) -> list[tuple[str, float]]:
    """The probability of each value given a payload, from equal probabilities, the likeliest first.

    For a metric over strings, `candidates` are the values to weigh; without them, or for a damaged
    payload, the list is empty.
    """
    try:
        cells = stream.randomizer.layout.cells(payload)
    except BadPayload:
        return []
    chances = {
        label: stream.randomizer.likelihood(value, cells)
        for label, value in _values(stream, candidates).items()
    }
    total = sum(chances.values(), start=Fraction(0))
    meant = [(label, float(chance / total)) for label, chance in chances.items()]
    return sorted(meant, key=lambda pair: -pair[1])


def label_of(metric: Metric, code: Any) -> str:
    """The readable name of a value: for numbers its part, for vectors always the same."""
    randomizer: Any = metric.randomizer
    if metric.values is None:
        if randomizer.VALUES == "strings":
            return str(code)
        edges = _edges(metric)
        place = part_of(edges, code, clamps=True)
        return _range_text(edges[place], edges[place + 1])
    if metric.parts:
        return name_of(randomizer, metric.values, code)
    return metric.value_kind.code_name(metric.values, code)


def _values(metric: Metric, candidates: Sequence[str]) -> dict[str, Any]:
    """The values to weigh, by readable name."""
    randomizer: Any = metric.randomizer
    if metric.values is not None and metric.parts:
        return {name_of(randomizer, metric.values, code): code for code in randomizer.probes()}
    if metric.values is not None:
        return metric.value_kind.meanings(metric.values, randomizer)
    if randomizer.VALUES == "strings":
        return {string: string for string in candidates}
    return {_range_text(low, high): (low + high) / 2 for low, high in pairwise(_edges(metric))}


def _range_text(low: float, high: float) -> str:
    return f"{low:.6g} to {high:.6g}"


def _edges(metric: Metric) -> Sequence[float]:
    """The ends of a number's parts, ascending: of its mechanism, or of slices of its range."""
    randomizer: Any = metric.randomizer
    if hasattr(randomizer, "edges"):
        edges: Sequence[float] = randomizer.edges()
        return edges
    low, high = metric.parameters["low"], metric.parameters["high"]
    return [low + (high - low) * i / _SLICES for i in range(_SLICES + 1)]
