"""Judging: how devices that taught nothing tell how good the finished model is.

Each says in which bin the model's score of its person lies, and the label: one of 2 bins categories
by `grr`, at the epsilon of the gradients. It is told in the round after the last one, in the stream
of the gradients and as long as they are: an index of it is 2 bin + label.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from hubbub.mechanisms import BitSource
from hubbub.mechanisms.grr import GeneralizedRandomizedResponse
from hubbub.mechanisms.probability import Probability

# More bins see more of an AUC, and fewer have less noise; decision 0219.
_BINS: Final = ((1.5, 4), (3.0, 6), (5.0, 8), (float("inf"), 12))


def bins_for(epsilon: float) -> int:
    """How many bins scores are told apart in at this epsilon."""
    return next(bins for upto, bins in _BINS if not epsilon > upto)


def judging(metric: Any) -> GeneralizedRandomizedResponse:
    """What tells bin and label of a model."""
    return GeneralizedRandomizedResponse(metric.epsilon, 2 * bins_for(metric.epsilon))


def judged(
    metric: Any, score: float, label: float, edges: Sequence[float], source: BitSource
) -> bytes:
    """The report of one person in the evaluation of a model, with the score's bin between `edges`.

    A label between 0 and 1 is reported as 1 with this probability.
    """
    bit = source.chance(Probability.at_most(label))
    mechanism = judging(metric)
    payload = mechanism.randomize(2 * bisect_right(edges, score) + bit, source)
    # As long as a gradient, which nobody on the way tells it from.
    sent: bytes = metric.randomizer.layout.encode(int.from_bytes(payload, "little"))
    return sent


def loss_of_judging(metric: Any) -> float:
    """What a report that judges can lose at most, in nats; 0 of what is judged by nobody."""
    return judging(metric).privacy_loss() if metric.model and metric.model.held_out else 0.0
