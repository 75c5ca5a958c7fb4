"""A metric that trains a model, and the reports by which held-out devices evaluate it.

Each device reports once for life, in its secretly drawn round.
A held-out device reports how well the finished model predicts its label: the bin of the model's
score and the label, one of 2 bins categories, by `grr` at the epsilon of the gradients, in the
round after the last one. The report has the stream and length of a gradient; its index is
2 bin + label.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from hubbub.catalog.epochs_and_periods import MINUTE, WRITTEN_EPOCHS
from hubbub.catalog.limits_and_budgets import Limits
from hubbub.errors import BadParameter
from hubbub.fields import kinds
from hubbub.fields.field import entry, table_of
from hubbub.mechanisms import BitSource
from hubbub.mechanisms.probability import Probability

if TYPE_CHECKING:
    from hubbub.catalog.models.learning import Learning
    from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
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


# More bins resolve an AUC better, fewer bins have less noise; decision 0219.
_BINS: Final = ((1.5, 4), (3.0, 6), (5.0, 8), (float("inf"), 12))


def bins_for(epsilon: float) -> int:
    """The number of bins of scores at this epsilon."""
    return next(bins for limit, bins in _BINS if not epsilon > limit)


def judging(metric: Any) -> "GeneralizedRandomizedResponse":
    """The mechanism that reports a model's bin and label."""
    from hubbub.mechanisms.grr import GeneralizedRandomizedResponse  # noqa: PLC0415 of judges alone

    return GeneralizedRandomizedResponse(metric.epsilon, 2 * bins_for(metric.epsilon))


def evaluation_report(
    metric: Any, score: float, label: float, edges: Sequence[float], source: BitSource
) -> bytes:
    """The report of one person in the evaluation of a model, with the score's bin between `edges`.

    A label between 0 and 1 is reported as 1 with this probability.
    """
    bit = source.chance(Probability.at_most(label))
    payload = judging(metric).randomize(2 * bisect_right(edges, score) + bit, source)
    # Encoded to the length of a gradient, so that nobody on the way can distinguish it.
    sent: bytes = metric.randomizer.layout.encode(int.from_bytes(payload, "little"))
    return sent


def loss_of_judging(metric: Any) -> float:
    """The largest privacy loss of a judge's report, in nats; 0 if nobody judges."""
    return judging(metric).privacy_loss() if metric.model and metric.model.held_out else 0.0
