"""Reads one [models.NAME] table as the metric of its reports, and reports all of its problems."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hubbub.authoring.crowds.accountant import Accountant
from hubbub.authoring.crowds.crowd_metric_fields import FOLLOWING, NEEDS_NUMPY
from hubbub.authoring.crowds.crowd_vector_epsilon import (
    CROWD_ROUNDS,
    CROWD_ROUNDS_EACH,
    codes_epsilon,
    keeps_promise,
)
from hubbub.authoring.metrics_toml.metric_table import Around
from hubbub.authoring.table_reader import read_fields, refuse_unknown
from hubbub.catalog.crowds.central_conflicts import PROMISE
from hubbub.catalog.metric import Metric
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.models.model_metric import limits_of
from hubbub.catalog.values.value_kind import Complain
from hubbub.errors import BadParameter
from hubbub.fields.field import arguments_of, fields_of
from hubbub.mechanisms.gradient import problem_with_classes
from hubbub.mechanisms.vector_codes import VectorCodes, pool_for

AS_METRICS: Final = (
    "description",
    "owner",
    "expires",
    "epsilon",
    "epoch",
    "min_batch",
    "sampling",
    "kem",
    "keep",
    "central_epsilon",
    "crowd",
    "delta",
    "honest",
    "max_local_epsilon",
)
"""What a model says as a metric does."""

_SHARED: Final = [field for field in fields_of(Metric) if field.name in AS_METRICS]


def read_model(name: str, table: Mapping[str, Any], context: Around, complain: Complain) -> Any:
    """The metric of one model's table; None after a complaint."""
    complained = set()

    def wrong(field: str, problem: str) -> None:
        complained.add(field)
        complain(field, problem)

    names = [field.name for field in (*_SHARED, *fields_of(Learning))]
    refuse_unknown(table, names, "of a model", wrong)
    crowded = any(name in table for name in PROMISE)
    if crowded:
        table = {"rounds": CROWD_ROUNDS, "rounds_each": CROWD_ROUNDS_EACH, **table}
    settings = _shared_fields(table, wrong, crowded=crowded)
    penalty = 0.01 if table.get("kind") == "ridge" else 0.0
    fields = read_fields(Learning, {"penalty": penalty, **table}, wrong)
    if not complained and (
        problem := problem_with_classes(len(fields.get("classes", ())), fields["kind"])
    ):
        wrong("classes", problem)
    if complained:
        return None
    try:
        learning = Learning(**fields)
        if crowded:
            settings |= _with_crowd(learning, settings, context.accountant, wrong)
        elif learning.rounds_each:
            wrong("rounds_each", "needs a crowd; write central_epsilon and crowd, or leave it out")
        if complained:
            return None
        return Metric(
            name=name,
            caps=context.caps,
            mechanism=VectorCodes.NAME,
            parameters={"dimensions": learning.dimensions, **pool_for(settings["epsilon"])},
            limits=limits_of(learning, settings["epsilon"], settings.get("central_epsilon")),
            model=learning,
            **arguments_of(Metric, settings),
        )
    except BadParameter as error:
        wrong("crowd" if crowded else "kind", str(error))
        return None


def _shared_fields(
    table: Mapping[str, Any], complain: Complain, *, crowded: bool
) -> dict[str, Any]:
    """Fields that a model shares with metrics; if `crowded`, some follow from a promise."""
    settings: dict[str, Any] = {}
    for field in _SHARED:
        name = field.name
        needed = name in PROMISE if crowded and name in (*PROMISE, *FOLLOWING) else field.required
        if not needed and name not in table:
            continue
        if problem := field.problem_in(table):
            complain(name, problem)
        else:
            settings[name] = field.entry.kind.read(table[name])
    return settings


def _with_crowd(
    learning: Learning,
    settings: Mapping[str, Any],
    accountant: Accountant | None,
    complain: Complain,
) -> dict[str, Any]:
    """What a model's central promise implies: local epsilon and minimum batch."""
    promise = replace(arguments_of(Metric, settings)["crowd"], epochs=learning.reports)
    crowd = promise.reports
    if settings.get("min_batch", crowd) != crowd:
        complain("min_batch", f"must be the crowd, {crowd:,}; leave it out")
    if accountant is None:
        complain("central_epsilon", NEEDS_NUMPY)
        return {}
    arguments = promise, learning.dimensions, accountant
    judged = learning.held_out > 0
    largest = codes_epsilon(*arguments, judged=judged)
    epsilon = settings.get("epsilon", largest)
    if epsilon > largest:
        complain(
            "epsilon",
            f"{epsilon:g} reveals more than central_epsilon {promise.epsilon:g} in a crowd of "
            f"{crowd:,} and {promise.epochs} rounds together; write {largest:g} at most, or leave "
            "it out",
        )
    elif epsilon < largest and not keeps_promise(*arguments, epsilon, judged=judged):
        complain(
            "epsilon",
            f"{epsilon:g} makes books of fewer words, or with half of the words near: nothing "
            f"proves that it keeps central_epsilon {promise.epsilon:g}, as {largest:g} does; leave "
            "it out",
        )
    return {"epsilon": epsilon, "min_batch": crowd}
