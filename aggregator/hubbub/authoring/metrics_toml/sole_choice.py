"""`mechanism = "auto"` where only one mechanism answers: sets, parts, vectors, any string."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hubbub.authoring.auto_mechanism import option_of, own_fields
from hubbub.catalog.auto_choice import AUTO, UNKNOWN, Choice
from hubbub.catalog.crowds.central import PROMISE
from hubbub.catalog.metric import DOMAINS, Metric
from hubbub.catalog.values.value_kind import Complain
from hubbub.catalog.values.value_kinds import kind_named
from hubbub.fields.rules import is_whole
from hubbub.mechanisms.hcms import HadamardSketch
from hubbub.mechanisms.pairs import PairedParts
from hubbub.mechanisms.privset import PrivSet
from hubbub.mechanisms.tree import PrefixTree
from hubbub.mechanisms.vector_codes import VectorCodes

SOLE: Final = (PrivSet, PairedParts, VectorCodes, HadamardSketch, PrefixTree)
"""What `auto` is where one mechanism answers; its own numbers may be written beside `auto`."""

# The sizes that the planner assumes: collisions then add little to a rare string's error.
_SKETCH: Final = {"hashes": 1024, "width": 1024}
# Fields that `auto` accepts for all of them, without effect on the choice.
_WISHES: Final = frozenset({"reports", "max_payload_bytes", "max_cells"})


def with_sole_choice(table: dict[str, Any]) -> dict[str, Any]:
    """The table with the only possible mechanism, without the wishes that with_wishes reads.

    A sketch counts strings that are listed as candidates; a prefix tree discovers others. In a
    crowd, `auto` chooses by the crowd's account.
    """
    if table.get("mechanism") != AUTO:
        return table
    without_wishes = {name: value for name, value in table.items() if name not in _WISHES}
    if chosen := kind_named(table.get("kind")).sole_choice(without_wishes):
        return {**chosen}
    if "parts" in table:
        return without_wishes | {"mechanism": PairedParts.NAME}
    if table.get("domain") != DOMAINS["strings"] or any(name in table for name in PROMISE):
        return table
    if "candidates" in table:
        return _SKETCH | without_wishes | {"mechanism": HadamardSketch.NAME}
    return without_wishes | {"mechanism": PrefixTree.NAME}


def with_wishes(table: Mapping[str, Any], metric: Metric, complain: Complain) -> Metric:
    """The metric with the choice that its only mechanism is, if its reports are written.

    Complains of each invalid wish, and of limits that the mechanism exceeds; `table` is as written.
    """
    layout = metric.randomizer.layout
    sizes = {"max_payload_bytes": layout.payload_bytes, "max_cells": layout.size}
    fewer = "lower buckets" if "buckets" in table else "list fewer values"
    for field in own_fields(AUTO):
        if field.name not in _WISHES & table.keys():
            continue
        wish, size = table[field.name], sizes.get(field.name, 0)
        if problem := field.problem(wish):
            complain(field.name, problem)
        elif wish < size:
            complain(field.name, f"{metric.mechanism} needs {size:,}; raise it, or {fewer}")
    reports: Any = table.get("reports")
    if metric.choice or metric.central or not (is_whole(reports) and reports >= 1):
        return metric
    best = option_of(metric.randomizer, metric.parameters, UNKNOWN)
    return replace(metric, choice=Choice(reports, best, None))
