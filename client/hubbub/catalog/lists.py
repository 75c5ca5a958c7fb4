"""A metric as each list of values had it, and how it goes on from the one before."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from hubbub.catalog.cover import NONE
from hubbub.catalog.metric import Metric
from hubbub.catalog.values.list_versions import is_list, list_names
from hubbub.catalog.values.value_kinds import OTHER
from hubbub.catalog.values.vectors import VECTOR

# Of kinds whose values are listed beside each other, what people call them.
_LISTS: Final = {"boolean": "booleans", VECTOR: "vectors"}


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

    With `auto` the mechanism stays what it was: two lists are joined by it. "other" and the "none"
    of a default keep their places among the values, so that a list begins as the one before did.
    """
    if before is None or metric.values is None or before.values is None or not is_list(before):
        return metric
    specials = {OTHER} if metric.other and before.other else set()
    specials |= {NONE} if metric.default == before.default == NONE else set()
    if specials:
        metric = replace(metric, values=_going_on(metric.values, before.values, specials))
    assert metric.values is not None  # noqa: S101 of a list alone
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


def why_not_grown(before: Metric | None, metric: Metric) -> str:
    """Why values do not go on under their name, as the end of a sentence.

    "" where none was appended and none vanished.
    """
    if before is None or not before.values or not metric.values:
        return ""
    if not is_list(before):
        # What is listed beside each other: of a table its cells, of a number its ranges.
        list_kind = "edges" if before.edges else "parts" if before.parts else ""
        list_kind = list_kind or _LISTS.get(before.kind, "sets")
        longer = set(before.values) < set(metric.values) or list_kind == "parts"
        return f" (values are appended to plain lists alone, not to {list_kind})" * longer
    if gone := len(set(before.values) - set(metric.values)):
        return (
            f"; {gone:,} of the {len(before.values):,} values vanished: values may only be appended"
        )
    if before.central and metric.values[: len(before.values)] == before.values:
        return (
            "; values can be appended once it is written: "
            f'mechanism = "{before.mechanism}" and epsilon = {before.epsilon:g}'
        )
    return ""


def _going_on(
    values: Sequence[str], before: Sequence[str], specials: Collection[str]
) -> tuple[str, ...]:
    """Values in the order of those before, if these begin with them; but for where `kept` are."""
    named, prior = (
        [value for value in listing if value not in specials] for listing in (values, before)
    )
    same = named[: len(prior)] == prior
    return (*before, *named[len(prior) :]) if same else tuple(values)
