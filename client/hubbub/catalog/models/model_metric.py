"""A metric that trains a model: each device reports once for life, in its secretly drawn round."""

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from hubbub.catalog.epochs import MINUTE, WRITTEN_EPOCHS
from hubbub.catalog.report_limits import Limits
from hubbub.errors import BadParameter
from hubbub.fields import kinds
from hubbub.fields.field import entry
from hubbub.fields.nested_tables import table_of

if TYPE_CHECKING:
    from hubbub.catalog.models.learning import Learning
    from hubbub.mechanisms.vector_codes import VectorCodes

_LENGTHS: Final = kinds.word_kind(lambda: WRITTEN_EPOCHS)
EPOCH: Final = replace(
    _LENGTHS, problem=lambda value: "" if value == MINUTE else _LENGTHS.problem(value)
)
"""The kind of a metric's epoch: a minute is none that people write, and is in development."""


def _model() -> kinds.Kind:
    from hubbub.catalog.models.learning import Learning  # noqa: PLC0415 of models alone

    return table_of(Learning)


MODEL: Final = entry(
    kinds.deferred(_model), "What its reports teach: a model.", written=False, in_definition=True
)


def check_model(metric: Any) -> None:
    """Raises BadParameter if a model's mechanism is not for models, or it has too many reports."""
    learning = metric.model
    if learning is None:
        return
    if metric.mechanism != "vector.codes":
        raise BadParameter(f"{metric.mechanism} is not for models")
    crowd = metric.crowd
    if metric.limits != limits_of(learning, metric.epsilon, crowd and crowd.epsilon):
        raise BadParameter("a model's limits must be one report for life, or one in each round")
    if bool(crowd) != bool(learning.rounds_each):
        raise BadParameter("rounds_each must be set for a model in a crowd, and for no other")
    if metric.parameters.get("dimensions") != learning.dimensions:
        raise BadParameter("the dimensions of a model must be the number of its columns plus one")
    if metric.tiers or metric.breakdown or metric.release or metric.report_on:
        raise BadParameter("a model cannot have tiers, breakdown, release or period")
    if crowd and (crowd.period or crowd.rolling):
        raise BadParameter("a model's promise covers all rounds, each of which leaves as a whole")


def limits_of(learning: "Learning", epsilon: float, central: float | None) -> Limits:
    """The limits of a device for a model: one report in each of its rounds, and one promise."""
    return Limits(1, learning.reports * epsilon, central)


def with_minute_rounds(metric: Any, begins: date) -> Any:
    """A model in development: rounds of a minute, the first of which is soon."""
    return replace(metric, epoch=MINUTE, model=replace(metric.model, begins=begins))


def codes_of_round(metric: Any, number: int) -> "VectorCodes":
    """The mechanism of one round, with a pool of words of its own.

    In round 0 vectors have a number for each column and a last one, whatever the number of classes;
    in a crowd, whose rounds are accounted for as equal, zeros follow.
    """
    codes: VectorCodes = metric.randomizer
    size = codes.dimensions if number or metric.crowd else len(metric.model.columns) + 1
    return replace(codes, seed=f"{metric.name}/{number}", dimensions=size)
