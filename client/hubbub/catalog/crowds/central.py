"""A central promise: what a whole shuffled epoch may say about one person, and what it rests on."""

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from typing import Any, Final

from hubbub.catalog.choice import AUTO
from hubbub.catalog.crowds.central_fields import DEVICES
from hubbub.catalog.crowds.central_promise import Accountant, CentralPromise, Planned
from hubbub.catalog.crowds.crowd_codes import planned_vectors
from hubbub.catalog.crowds.crowd_geometry import CROWD_PARTS, planned_geometry
from hubbub.catalog.crowds.crowd_numbers import planned_number
from hubbub.catalog.crowds.crowd_strings import CROWD_STRINGS, CROWD_TREE, planned_strings
from hubbub.catalog.crowds.device_dummies import each_of
from hubbub.catalog.crowds.hidden_counts import count_conflicts
from hubbub.catalog.values.part_values import size_of
from hubbub.catalog.values.vectors import VECTOR
from hubbub.errors.installing import install_with
from hubbub.fields.field import fields_of
from hubbub.fields.table_reader import Complain
from hubbub.mechanisms import build
from hubbub.mechanisms.vector_codes import VectorCodes

_LISTED: Final = "grr"
# Which are the same over the parts of a range, where these are few enough.
_NUMBERS: Final = ("wave", "mean.one_bit", "mean.piecewise")

# Reports, of which the errors of who lies alone are told.
_MANY: Final = 100_000
_OF_EACH: Final = (
    "are worked out for epochs that each keep a promise of their own; write how many beside "
    "central_period, or leave dummies out"
)
_OF_LISTED: Final = "go with listed values alone; leave them out"
# What leaves as the pool fills tells by when it leaves that one more came, whatever is added.
_IN_PARTS: Final = (
    "hides the number of reports that leave together, once, and a pool that leaves in parts tells "
    "as it fills who came last; write central_epsilon and crowd, or leave it out"
)
_OF_ONE: Final = "are made by devices, dummies by the shuffler; write one of them"
# A device sends report and dummies apart, so a crowd that leaves once it is large enough may have
# far more reports among so many than are reckoned with, and whose dummies leave in the next.
_OF_EPOCHS: Final = (
    "of devices may leave in another crowd than their report where crowds are rolling, and hide "
    "nobody there; leave rolling out, or have the shuffler make dummies"
)

CENTRAL_FIELDS: Final = (
    "central_epsilon",
    "crowd",
    "delta",
    "honest",
    "max_local_epsilon",
    "rolling",
    "dummies",
    "dummies_each",
    "central_period",
    "count_epsilon",
)
"""The fields of a metric that make its promise; the first two make one."""

FOLLOWING: Final = ("epsilon", "min_batch", "reports")
"""What follows from a promise, and need not be written beside it."""
NEEDS_NUMPY: Final = (
    f"is worked out with numpy and scipy, which are not installed here: {install_with('plan')}"
)
"""What is wrong with a promise where nobody can work it out."""
PROMISE: Final = CENTRAL_FIELDS[:2]
"""What makes a promise: both or none."""


def central_conflicts(metric: Any) -> dict[str, str]:
    """What in a metric does not go with its central promise: per field, what is wrong with it."""
    section: type = type(metric)
    usual = {field.name: field.default for field in fields_of(section)}
    if metric.central_epsilon is None or metric.crowd is None:
        if metric.mechanism == CROWD_PARTS and metric.parameters.get("ways", 2) > 2:  # noqa: PLR2004 a pair
            return {"ways": _alone(metric)}
        lonely = [name for name in CENTRAL_FIELDS if getattr(metric, name) != usual[name]]
        message = "is of a central promise; write central_epsilon and crowd"
        if metric.count_epsilon is not None:
            return {"count_epsilon": _IN_PARTS}
        if metric.limits.lifetime_central_epsilon is not None:
            return {"limits": f"lifetime_central_epsilon {message}"}
        return {lonely[0]: message} if lonely else {}
    problems = {}
    lifetime = metric.limits.lifetime_central_epsilon
    if lifetime is not None and lifetime < metric.central_epsilon:
        problems["limits"] = "lifetime_central_epsilon must not be below central_epsilon; raise it"
    every = (_LISTED, CROWD_PARTS, VectorCodes.NAME, CROWD_STRINGS, CROWD_TREE, *_NUMBERS)
    if metric.mechanism not in every and not metric.model:
        choices = ", ".join(every)
        problems["mechanism"] = f'must be "{AUTO}" or one of {choices} with a crowd'
    problems |= _misfits(metric)
    if metric.epsilon > metric.max_local_epsilon:
        problems["epsilon"] = (
            f"{metric.epsilon:g} is above max_local_epsilon {metric.max_local_epsilon:g}; lower "
            "it, "
            "or write a larger max_local_epsilon"
        )
    return problems


def _misfits(metric: Any) -> dict[str, str]:
    """What does not go with any crowd."""
    problems, listed = {}, metric.mechanism == _LISTED
    if isinstance(metric.dummies, str):
        problems["dummies"] = f'is "{metric.dummies}" in metrics.toml alone; write how many'
    elif metric.dummies and not listed:
        problems["dummies"] = _OF_LISTED
    if metric.dummies_each and (metric.dummies or not listed):
        problems["dummies_each"] = _OF_ONE if metric.dummies else _OF_LISTED
    elif metric.dummies_each and metric.rolling:
        problems["dummies_each"] = _OF_EPOCHS
    if metric.central_period and metric.report_on:
        problems["central_period"] = (
            "does not go with report_on, which has a person in one crowd of a period; leave it out"
        )
    problems |= count_conflicts(metric)
    if metric.min_batch != metric.crowd:
        problems["min_batch"] = "is the crowd; leave it out"
    if metric.limits.reports_per_epoch != 1:
        problems["limits"] = "reports_per_epoch must be 1 with a crowd: it is of one report each"
    if metric.release is not None:
        problems["release"] = "is not needed with a crowd: its answers may be published as they are"
    if metric.tiers:
        problems["tiers"] = "each would need a crowd of its own; leave them out"
    return problems


def _alone(metric: Any) -> str:
    """What three parts together would say of people who each lie alone, and what to do."""
    sizes = size_of(metric.mechanism, metric.values)["sizes"]
    alone = build(metric.mechanism, epsilon=metric.epsilon, sizes=sizes, ways=3)
    error = sqrt(alone.groups * alone.variance(0, _MANY)) / _MANY
    return (
        f"3 goes with a crowd alone: at epsilon {metric.epsilon:g} a cell of three parts is off by "
        f"{error:.2%} of {_MANY:,} reports; write central_epsilon and crowd, or leave ways out"
    )


def crowd_mechanisms(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Whose whole epochs are accounted for, by what a table says of its values."""
    if "parts" in table:
        return (CROWD_PARTS,)
    if table.get("kind") == VECTOR:
        return (VectorCodes.NAME,)
    match table.get("domain"):
        case "number":
            return _NUMBERS
        case "string":
            return CROWD_STRINGS, CROWD_TREE
        case _:
            return (_LISTED,)


def crowd_table(
    table: Mapping[str, Any],
    promise: CentralPromise,
    shape: Mapping[str, Any],
    accountant: Accountant | None,
    wrong: Complain,
) -> dict[str, Any]:
    """A metric's table with what follows from its central promise: mechanism, epsilon, min_batch.

    A local epsilon that was written stays, if it keeps the promise. shape: `categories` of listed
    values, `sizes` and `ways` of parts, `dimensions` of vectors; nothing of numbers and strings.

    Raises:
        BadParameter: the numbers of a range, or of hash functions, are none.
    """
    categories = shape.get("categories")
    settings = {**table, "min_batch": promise.crowd, "epsilon": promise.epsilon}
    settings.pop("reports", None)
    if table.get("min_batch", promise.crowd) != promise.crowd:
        wrong("min_batch", f"is the crowd, {promise.crowd:,}, or nothing; leave it out")
    if accountant is None:
        wrong("central_epsilon", NEEDS_NUMPY)
        return {**settings, "mechanism": crowd_mechanisms(table)[0], "dummies": 0}
    promise = _padded(table, promise, categories, accountant, wrong)
    if "dummies" in table:
        settings |= {"dummies": promise.dummies, "dummies_each": promise.dummies_each}
    planned = _planned(table, promise, shape, accountant)
    for name in planned.parameters.keys() & table.keys():
        wrong(name, f'is chosen by {AUTO}; leave it out, or write "{planned.mechanism}" for {AUTO}')
    settings |= {"mechanism": planned.mechanism, **planned.parameters}
    spread = planned.categories, planned.groups
    largest = planned.epsilon or accountant.local_epsilon(promise, *spread)
    own_epsilon = table.get("epsilon", largest)
    if isinstance(own_epsilon, int | float) and own_epsilon > largest:
        needed = None
        if planned.epsilon is None:
            needed = accountant.crowd_needed(
                promise, planned.categories, own_epsilon, planned.groups
            )
        would = (
            ", or leave it out"
            if needed is None
            else f", leave it out, or gather a crowd of {needed:,}"
        )
        wrong(
            "epsilon",
            f"{own_epsilon:g} says more than central_epsilon {promise.epsilon:g} in a crowd of "
            f"{promise.crowd:,}{_of_all(promise)}; write {largest:.6g} at most{would}",
        )
    return {**settings, "epsilon": own_epsilon}


def _planned(
    table: Mapping[str, Any],
    promise: CentralPromise,
    shape: Mapping[str, Any],
    accountant: Accountant,
) -> Planned:
    if "sizes" in shape:
        return planned_geometry(CROWD_PARTS, shape, table, promise, accountant)
    if "dimensions" in shape:
        return planned_vectors(shape["dimensions"], table, promise, accountant)
    if "categories" in shape:
        return Planned(mechanism=_LISTED, parameters={}, categories=shape["categories"])
    if table["domain"] == "string":
        return planned_strings(table, promise, accountant)
    return planned_number(table, promise, accountant)


def _of_all(promise: CentralPromise) -> str:
    return f" and {promise.epochs:,} epochs together" if promise.epochs > 1 else ""


def _padded(
    table: Mapping[str, Any],
    promise: CentralPromise,
    categories: int | None,
    accountant: Accountant,
    wrong: Complain,
) -> CentralPromise:
    """The promise with the dummies that are written, or serve best."""
    by_devices = table.get("dummies") == DEVICES
    in_words = isinstance(table.get("dummies"), str) and promise.epochs > 1
    if in_words or (by_devices and table.get("rolling") is True):
        wrong("dummies", _OF_EACH if in_words else _OF_EPOCHS)
        return replace(promise, dummies=0, dummies_each=0.0)
    dummy_fields = [name for name in ("dummies", "dummies_each") if table.get(name)]
    if dummy_fields and categories is None:
        for name in dummy_fields:
            wrong(name, _OF_LISTED)
        return replace(promise, dummies=0, dummies_each=0.0)
    if len(dummy_fields) > 1 and not by_devices:
        wrong("dummies_each", _OF_ONE)
        return replace(promise, dummies_each=0.0)
    if categories and table.get("dummies") == AUTO:
        return replace(promise, dummies=accountant.dummies(promise, categories))
    if categories and by_devices and not promise.dummies_each:
        number = accountant.dummies(promise, categories, by_devices=True)
        return replace(promise, dummies_each=each_of(promise.crowd, number))
    return promise
