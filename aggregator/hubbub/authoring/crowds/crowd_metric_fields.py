"""Computes the table of a metric in a crowd: local epsilon, mechanism and dummies."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hubbub.authoring.crowds import crowd_values
from hubbub.authoring.crowds.accountant import Accountant, Planned
from hubbub.authoring.crowds.crowd_vector_epsilon import planned_vectors
from hubbub.catalog.crowds import central_conflicts
from hubbub.catalog.crowds.crowd import (
    CROWD_LISTED,
    CROWD_MEANS,
    CROWD_PARTS,
    DEVICES,
    NOISE,
    Crowd,
)
from hubbub.catalog.crowds.noise_dummies import needs_all_parts
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.catalog.values.value_kind import Complain
from hubbub.catalog.values.value_kind_registry import kind_named
from hubbub.errors.message_words import install_with

_DUMMIES: Final = (
    "dummies",
    "dummies_each",
    "dummies_scale",
    "dummies_shift",
    "dummies_sum_scale",
)
NO_DUMMIES: Final[Mapping[str, Any]] = dict.fromkeys(_DUMMIES, 0)
"""Of a promise: without any."""
_OF_EACH: Final = (
    "are only computed for epochs with separate promises; write a number beside "
    'central_period, or leave "dummies" out'
)

FOLLOWING: Final = ("epsilon", "min_batch", "reports")
"""What follows from a promise, and need not be written beside it."""
NEEDS_NUMPY: Final = (
    f"is computed with numpy and scipy, which are not installed here: {install_with('plan')}"
)
"""What is wrong with a promise where nobody can work it out."""


def crowd_mechanisms(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Mechanisms whose whole epochs have an exact account, for this table's kind of values."""
    if "parts" in table:
        return (CROWD_PARTS,)
    if kind_mechanisms := kind_named(table.get("kind")).CROWD:
        return (kind_mechanisms,)
    match table.get("domain"):
        case "number":
            return central_conflicts.CROWD_NUMBERS
        case "string":
            return central_conflicts.CROWD_STRINGS, central_conflicts.CROWD_TREE
        case _:
            return (CROWD_LISTED,)


def crowd_table(
    table: Mapping[str, Any],
    promise: Crowd,
    shape: Mapping[str, Any],
    accountant: Accountant | None,
    complain: Complain,
) -> dict[str, Any]:
    """A metric's table with what its central promise implies: mechanism, epsilon, min_batch.

    A written local epsilon stays if it keeps the promise. `shape` has `categories` for listed
    values, `sizes` and, if written, `ways` for parts, `dimensions` for vectors; it is empty for
    numbers and strings. Raises BadParameter for parameters out of range.
    """
    settings = {**table, "min_batch": promise.reports, "epsilon": promise.epsilon}
    settings.pop("reports", None)
    if table.get("min_batch", promise.reports) != promise.reports:
        complain("min_batch", f"must be the crowd, {promise.reports:,}; leave it out")
    if accountant is None:
        complain("central_epsilon", NEEDS_NUMPY)
        return {**settings, "mechanism": crowd_mechanisms(table)[0], "dummies": 0}
    promise = _with_dummies(table, promise, shape, accountant, complain)
    if "sizes" in shape:
        promise = _parts_with_dummies(table, promise, shape, accountant, complain)
    if "dummies" in table:
        settings |= {name: getattr(promise, name) for name in _DUMMIES}
    planned = _plan_table(table, promise, shape, accountant)
    for name in planned.parameters.keys() & table.keys():
        complain(
            name, f'is chosen by {AUTO}; leave it out, or write "{planned.mechanism}" for {AUTO}'
        )
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
        epochs_text = f" and {promise.epochs:,} epochs together" if promise.epochs > 1 else ""
        complain(
            "epsilon",
            f"{own_epsilon:g} reveals more than central_epsilon {promise.epsilon:g} in a crowd of "
            f"{promise.reports:,}{epochs_text}; write {largest:.6g} at most{would}",
        )
    return {**settings, "epsilon": own_epsilon}


def _plan_table(
    table: Mapping[str, Any],
    promise: Crowd,
    shape: Mapping[str, Any],
    accountant: Accountant,
) -> Planned:
    if "sizes" in shape:
        noisy = promise.noise or table.get("dummies") == NOISE
        ways = shape.get("ways", len(shape["sizes"]) if noisy else 2)
        planned = crowd_values.planned_geometry(
            CROWD_PARTS, {**shape, "ways": ways}, table, promise, accountant
        )
        return replace(planned, parameters={"ways": ways} if noisy and "ways" not in shape else {})
    if "dimensions" in shape:
        return planned_vectors(shape["dimensions"], table, promise, accountant)
    if "categories" in shape:
        return Planned(mechanism=CROWD_LISTED, parameters={}, categories=shape["categories"])
    if table["domain"] == "string":
        return crowd_values.planned_strings(table, promise, accountant)
    return crowd_values.planned_number(table, promise, accountant)


def _with_dummies(
    table: Mapping[str, Any],
    promise: Crowd,
    shape: Mapping[str, Any],
    accountant: Accountant,
    complain: Complain,
) -> Crowd:
    """The promise with the written dummies, or with the best ones."""
    word, categories, sizes = table.get("dummies"), shape.get("categories"), shape.get("sizes", ())
    by_devices = word == DEVICES
    of_each_epoch = word in (AUTO, DEVICES) and promise.epochs > 1
    if of_each_epoch or (by_devices and table.get("rolling") is True):
        complain("dummies", _OF_EACH if of_each_epoch else central_conflicts.DUMMIES_OF_EPOCHS)
        return replace(promise, **NO_DUMMIES)
    of_mean = table.get("domain") == "number" and table["mechanism"] in (AUTO, *CROWD_MEANS)
    noise_alone = (of_mean or sizes) and word in (None, AUTO, NOISE) and not promise.dummies_each
    dummy_fields = [name for name in _DUMMIES if table.get(name)]
    if dummy_fields and categories is None and not noise_alone:
        for name in dummy_fields:
            complain(name, central_conflicts.DUMMIES_OF_LISTED)
        return replace(promise, **NO_DUMMIES)
    if promise.dummies_each and word and not by_devices:
        complain("dummies_each", central_conflicts.DUMMIES_OF_ONE)
        return replace(promise, dummies_each=0.0)
    noisy = _may_be_noise(table)
    written_noise = promise.dummies_each if by_devices else promise.noise
    if not isinstance(word, str) or written_noise or not (categories or noisy) or sizes:
        return promise
    if categories:
        return accountant.padded(promise, categories, word, noisy=noisy)
    return crowd_values.noisy_mean(table, promise, accountant, word)


def _may_be_noise(table: Mapping[str, Any]) -> bool:
    """Whether the dummies are noise, or nothing is written that noise dummies do not go with."""
    return table.get("dummies") == NOISE or not (table.get("rolling") or table.get("breakdown"))


def _parts_with_dummies(
    table: Mapping[str, Any],
    promise: Crowd,
    shape: Mapping[str, Any],
    accountant: Accountant,
    complain: Complain,
) -> Crowd:
    """The promise of parts with the written noise dummies, or with the best ones."""
    word, sizes = table.get("dummies"), shape["sizes"]
    if shape.get("ways", len(sizes)) < len(sizes):
        if word == NOISE or promise.noise:
            complain("dummies", needs_all_parts(len(sizes)))
        return replace(promise, **NO_DUMMIES)
    if promise.noise or not _may_be_noise(table) or word not in (AUTO, NOISE):
        return promise
    return crowd_values.noisy_parts(sizes, table, promise, accountant, word)
