"""Ways to keep a central promise: crowds at several local epsilons, and without a crowd."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any, Final

import numpy as np

from hubbub.analysis.families import family_for
from hubbub.analysis.strings.tree_search import detectable_share
from hubbub.authoring.crowds import crowd_values
from hubbub.authoring.crowds.crowd_metric_fields import NO_DUMMIES
from hubbub.authoring.crowds.crowd_vector_epsilon import planned_vectors
from hubbub.catalog import Crowd
from hubbub.catalog.crowds.central_conflicts import CROWD_TREE
from hubbub.catalog.crowds.crowd import CROWD_PARTS, NOISE
from hubbub.catalog.crowds.noise_dummies import can_seal
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.errors import BadParameter
from hubbub.mechanisms import build
from hubbub.mechanisms.even_lies import even_lies
from hubbub.mechanisms.part_and_cell_names import tables_of
from hubbub.mechanisms.tree import PrefixTree
from hubbub.privacy.exact_accountant import ExactAccountant, crowd_of_promise
from hubbub.privacy.metric_draft import MetricDraft
from hubbub.privacy.planner import plan, planned_tree, row
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import central_epsilon
from hubbub.sealing.dummy_laws import ValueNoise

Way = dict[str, Any]
"""One way to be private: `way`, `epsilon_local` (None for a curator), `epsilon_central`, errors."""
Errors = tuple[float, float]
"""Standard errors, in reports, of a rare value and of one that a tenth hold."""

COUNTS: Final = ("values", "strings", "parts")
"""Kinds of questions whose errors are in reports."""
_CURATOR: Final = "trusted curator, Laplace"
# Local epsilons that are shown below the largest one.
_FLOORS: Final = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0)
# Of reports of as many parts as the table, of all parts with noise dummies, and of a metric of
# listed cells for each table of two.
_ERRORS: Final = [f"{way}_{of}" for way in ("alone", "whole", "listed") for of in ("rare", "tenth")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralPlan:
    """The ways to ask one question under a promise.

    Args:
        promise: with its dummies; of numbers, those of the largest local epsilon.
        ways: crowds, ascending by local epsilon, then without a crowd.
        plain: errors of listed values without the dummies; None if there are none.
        tables: of parts with noise dummies, a row for every table of two or three parts.
        tree: of strings, a prefix tree in such a crowd.
        found_from: the smallest share of the reports that this tree finds.
    """

    promise: Crowd
    ways: list[Way]
    plain: Errors | None = None
    tables: Sequence[Mapping[str, Any]] = ()
    tree: PrefixTree | None = None
    found_from: float = 1.0


def _floors(central: float, most: float, margin: float = 0.0) -> list[float]:
    """Local epsilons to show, ascending up to `most`; the others are `margin` below it."""
    return [*(floor for floor in _FLOORS if central < floor < most - margin), most]


def _way(name: str, local: float | None, central: float, errors: Errors) -> Way:
    return {
        "way": name,
        "epsilon_local": local,
        "epsilon_central": central,
        "stderr_rare": errors[0],
        "stderr_tenth": errors[1],
    }


def _crowd_way(name: str, crowd: ShuffledEpoch, promise: Crowd, errors: Errors) -> Way:
    return _way(name, crowd.epsilon_local, central_epsilon(crowd, promise.delta), errors)


def _other_ways(promise: Crowd, mechanism_name: str, errors: Errors) -> list[Way]:
    """Reports that keep the promise by themselves, with these errors; and a curator of counts."""
    central = promise.epsilon
    stderr = 2 * sqrt(2) / central  # one person moves one report from one count to another
    return [
        _way(f"alone, {mechanism_name}", central, central, errors),
        _way(_CURATOR, None, central, (stderr, stderr)),
    ]


def _value_ways(promise: Crowd, question: MetricDraft, dummies: int | str) -> CentralPlan:
    reports, central, ways = promise.reports, promise.epsilon, list[Way]()
    if isinstance(dummies, str):
        promise = ExactAccountant().padded(promise, question.size, dummies)
    else:
        promise = replace(promise, dummies=dummies)
    without = replace(promise, **NO_DUMMIES)
    errors_without_dummies = None
    if promise != without:
        local = ExactAccountant().largest(without, question.size)
        errors_without_dummies = _errors(crowd_of_promise(without, question.size, local))
    most = ExactAccountant().largest(promise, question.size)
    for local in _floors(central, most, margin=0.25):
        crowd = crowd_of_promise(promise, question.size, local)
        ways.append(_crowd_way("crowd", crowd, promise, _errors(crowd)))
    [best, *_] = plan(question, central, reports)
    alone_mechanism = build(best.mechanism, **best.parameters)
    rare, tenth = (sqrt(alone_mechanism.variance(share * reports, reports)) for share in (0.0, 0.1))
    ways += _other_ways(promise, best.mechanism, (rare, tenth))
    return CentralPlan(promise=promise, ways=ways, plain=errors_without_dummies)


def _errors(crowd: ShuffledEpoch) -> Errors:
    return crowd.stderr(0.0), crowd.stderr(0.1)


def _string_ways(promise: Crowd, question: MetricDraft, _dummies: int | str) -> CentralPlan:
    """Ways for strings, with the best number of hash buckets at each floor."""
    reports, central, ways = promise.reports, promise.epsilon, list[Way]()
    accountant = ExactAccountant()
    for floor in _floors(central, promise.max_local_epsilon, margin=0.25):
        floored = replace(promise, max_local_epsilon=floor)
        planned = crowd_values.planned_strings({"mechanism": AUTO}, floored, accountant)
        width, hashes = int(planned.categories), planned.groups
        local = accountant.local_epsilon(floored, width, hashes)
        if not ways or local != ways[-1]["epsilon_local"]:
            crowd = crowd_of_promise(floored, width, local, hashes)
            errors = crowd_values.string_errors(width, hashes, local, reports)
            ways.append(_crowd_way(f"crowd, {hashes} x {width:,} buckets", crowd, promise, errors))
    [best, *_] = plan(question, central, reports)
    alone_mechanism = build(best.mechanism, **best.parameters)
    shares = np.array([0.1, *[0.9 / question.size] * question.size])
    expected = family_for(alone_mechanism).expected(
        alone_mechanism, [*question.values(), "one more"], shares, reports
    )
    errors = reports * float(expected.absent[0]), reports * float(expected.stderrs[0])
    ways += _other_ways(promise, best.mechanism, errors)

    def tree_epsilon(cells: int) -> float:
        table = {"mechanism": CROWD_TREE, "cells": cells}
        return crowd_values.planned_strings(table, promise, accountant).epsilon or promise.epsilon

    tree = planned_tree(tree_epsilon)
    share = detectable_share(tree, reports)
    return CentralPlan(promise=promise, ways=ways, tree=tree, found_from=share)


def _part_ways(promise: Crowd, question: MetricDraft, dummies: int | str) -> CentralPlan:
    """Crowds with 2, 3 or all parts a report, and alone with 2; errors are of the first table."""
    sizes, ways = question.parts, list[Way]()
    if isinstance(dummies, str):
        promise = crowd_values.noisy_parts(sizes, {}, promise, ExactAccountant(), dummies)
    # Only all parts together have dummies.
    promises = dict.fromkeys(range(2, min(len(sizes), 3) + 1), replace(promise, **NO_DUMMIES))
    if promise.noise:
        promises[len(sizes)] = promise
    mechanisms = {}
    for number, ways_promise in promises.items():
        shape = {"sizes": sizes, "ways": number}
        planned = crowd_values.planned_geometry(
            CROWD_PARTS, shape, {}, ways_promise, ExactAccountant()
        )
        mechanism: Any = build(CROWD_PARTS, epsilon=planned.epsilon, **shape)
        mechanisms[number] = mechanism
        lies = even_lies(mechanism, mechanism.privacy_loss())
        crowd = crowd_of_promise(ways_promise, lies.categories, lies.epsilon, lies.groups)
        if ways_promise.noise:
            name, errors = f"crowd, all {number} parts", _errors(crowd)
        else:
            name, errors = f"crowd, tables of {number}", _cell_errors(mechanism, promise.reports)
        ways.append(_crowd_way(name, crowd, promise, errors))
    alone_mechanism = build(CROWD_PARTS, epsilon=promise.epsilon, sizes=sizes)
    ways += _other_ways(promise, "tables of 2", _cell_errors(alone_mechanism, promise.reports))
    tables = _errors_of_tables(promise, sizes, mechanisms) if promise.noise else ()
    return CentralPlan(promise=promise, ways=ways, tables=tables)


def _cell_errors(mechanism: Any, reports: int) -> Errors:
    """Standard errors of a cell of the first table: of one that nobody holds, of one in ten."""
    examples = [mechanism.with_cell(0, turn) for turn in (0, 1)]
    expected = family_for(mechanism).expected(mechanism, examples, np.array([0.1, 0.9]), reports)
    return reports * float(expected.absent[0]), reports * float(expected.stderrs[0])


def _errors_of_tables(
    promise: Crowd, sizes: tuple[int, ...], mechanisms: Mapping[int, Any]
) -> list[dict[str, Any]]:
    """Every table of two or three parts, with its `_ERRORS` in reports.

    `mechanisms` are by the number of parts that a report contains together.
    """
    rows = []
    joint = mechanisms[len(sizes)], promise.noise.variance if promise.noise else 0.0
    for ways in range(2, min(len(sizes), 4)):
        for parts in tables_of(len(sizes), ways):
            variances = [
                crowd_values.cell_variance(mechanism, parts, share, promise.reports, noise_variance)
                for mechanism, noise_variance in ((mechanisms[ways], 0.0), joint)
                for share in (0.0, 0.1)
            ]
            table = tuple(sizes[part] for part in parts)
            cells, listed = prod(table), tuple[float | None, ...]((None, None))
            if ways == 2:  # noqa: PLR2004 for each such table a metric of listed cells
                number = len(tables_of(len(sizes), 2))
                part = replace(
                    promise, epsilon=promise.epsilon / number, delta=promise.delta / number
                )
                padded = ExactAccountant().padded(replace(part, **NO_DUMMIES), cells, NOISE)
                if can_seal(padded, cells):  # else they would be too many dummies
                    listed = _errors(crowd_of_promise(padded, cells, promise.max_local_epsilon))
            errors = dict(zip(_ERRORS, (*map(sqrt, variances), *listed), strict=True))
            rows.append({"table": table, "cells": cells, **errors})
    return rows


def _number_ways(promise: Crowd, question: MetricDraft, dummies: int | str) -> CentralPlan:
    """Ways for numbers; `dummies` is, for a mean, "noise" or "auto" for noise dummies."""
    reports, central = promise.reports, promise.epsilon
    ways, padded = list[Way](), promise
    for floor in _floors(central, promise.max_local_epsilon):
        try:
            floored = replace(promise, max_local_epsilon=floor)
            padded, way = _crowd(floored, question, str(dummies or ""))
        except BadParameter:
            if floor == promise.max_local_epsilon:
                raise
            continue  # too low a floor for so many parts
        if not ways or way["epsilon_local"] != ways[-1]["epsilon_local"]:
            ways.append(way)
    if question.kind == "vector":
        # A mean for each number, which together keep the promise: each is a metric with noise
        # dummies, whose reports go apart.
        size = question.size
        share = replace(promise, epsilon=central / size, delta=promise.delta / size)
        number = MetricDraft(kind="mean", size=1, low=-question.high, high=question.high)
        with suppress(BadParameter):  # of too small a share
            _, way = _crowd(share, number, NOISE)
            epsilons = {name: size * way[name] for name in ("epsilon_local", "epsilon_central")}
            ways.append(way | epsilons | {"way": f"{size:,} means, each in a {way['way']}"})
    [best, *_] = plan(question, central, reports)
    # One person moves a mean by its range over n, one report from one part to another, or as many
    # means as a vector has, by the root of their number together.
    sensitivity = {"mean": 1.0, "ranges": 2.0, "vector": sqrt(question.size)}[question.kind]
    noise = sensitivity * sqrt(2) / central / reports
    ways.append(_number_way("alone", best.mechanism, central, central, best.rare))
    ways.append(_number_way(_CURATOR, None, None, central, noise))
    return CentralPlan(promise=padded, ways=ways)


def _number_way(
    name: str, mechanism: str | None, local: float | None, central: float, stderr: float
) -> Way:
    return {
        "way": name,
        "mechanism": mechanism,
        "epsilon_local": local,
        "epsilon_central": central,
        "stderr": stderr,
    }


def _crowd(promise: Crowd, question: MetricDraft, dummies: str) -> tuple[Crowd, Way]:
    """The promise with its dummies, and the best crowd of numbers that keeps it."""
    table: dict[str, Any] = {"mechanism": "auto", "low": question.low, "high": question.high}
    if question.kind == "ranges":
        table |= {"mechanism": "wave", "buckets": question.size}
    accountant = ExactAccountant()
    if question.kind == "vector":
        planned = planned_vectors(question.size, {}, promise, accountant)
        table = {"dimensions": question.size, "max_length": question.high}
    else:
        promise = (
            crowd_values.noisy_mean(table, promise, accountant, dummies) if dummies else promise
        )
        planned = crowd_values.planned_number(table, promise, accountant)
    local = planned.epsilon or accountant.local_epsilon(promise, planned.categories)
    table.pop("mechanism", None)
    parameters = {**table, **planned.parameters, "epsilon": local}
    crowd = crowd_of_promise(promise, planned.categories, local)
    name = "crowd"
    if promise.noise:
        noise = ValueNoise(promise.noise, int(planned.categories), promise.sum_noise)
        name += f", {noise.each.reach} dummies a value, {noise.expected:,} in all"
        mechanism = build(planned.mechanism, **parameters)
        stderr = sqrt(crowd_values.worst_variance(mechanism, promise)) / promise.reports
    else:
        stderr = row(question, planned.mechanism, parameters, promise.reports).rare
    central = central_epsilon(crowd, promise.delta)
    return promise, _number_way(name, planned.mechanism, local, central, stderr)


PLANS: Final[Mapping[str, Callable[[Crowd, MetricDraft, int | str], CentralPlan]]] = {
    "values": _value_ways,
    "strings": _string_ways,
    "parts": _part_ways,
    "mean": _number_ways,
    "ranges": _number_ways,
    "vector": _number_ways,
}
"""By a question's kind: its ways under a promise, with dummies as in the catalog, number or word.

They raise BadParameter if there are too many buckets for a crowd of this size.
"""
