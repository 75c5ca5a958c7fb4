"""Evaluation: held-out devices report how well the finished model predicts their label.

Each reports the bin of the model's score and the label, one of 2 bins categories, by `grr` at the
epsilon of the gradients, in the round after the last one. The report has the stream and length of
a gradient; its index is 2 bin + label.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from hubbub.mechanisms import BitSource
from hubbub.mechanisms.probability import Probability

if TYPE_CHECKING:
    from hubbub.mechanisms.grr import GeneralizedRandomizedResponse

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
    mechanism = judging(metric)
    payload = mechanism.randomize(2 * bisect_right(edges, score) + bit, source)
    # Encoded to the length of a gradient, so that nobody on the way can distinguish it.
    sent: bytes = metric.randomizer.layout.encode(int.from_bytes(payload, "little"))
    return sent


def loss_of_judging(metric: Any) -> float:
    """The largest privacy loss of a judge's report, in nats; 0 if nobody judges."""
    return judging(metric).privacy_loss() if metric.model and metric.model.held_out else 0.0
