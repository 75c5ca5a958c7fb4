"""What noisy numbers of reports reveal about whether one person reported, in one or many epochs.

In one epoch it is `count_epsilon` at `delta`, by the drawn law (count_dummies.py). In many epochs,
the loss of each takes one of three values: the log ratio of a number and its outer neighbour, the
same with a negative sign, or infinity for the last number of a side. So the total is binomial.
"""

from math import log
from typing import Final

import numpy as np

from hubbub.analysis.binomials import pmf
from hubbub.catalog import Metric
from hubbub.catalog.crowds.noise_dummies import count_noise
from hubbub.errors.message_words import at_most
from hubbub.sealing.dummy_laws import CountNoise

_MONTH: Final = 30
_STEPS: Final = 60
# PRIVACY: above what floats lose in a sum of some thousand terms.
_UP: Final = 1 + 1e-9


def together(noise: CountNoise, epochs: int, delta: float) -> float:
    """Epsilon of this many epochs, with a report of the person in all or in none, at this delta.

    Rounded up; at most `epochs` times that of one.
    """
    weights, total = noise.weights, sum(noise.weights)
    loss = log(noise.odds / 2**32) * _UP
    # Likelier below the mean by at most that; beyond it less likely by at least the least quotient.
    gain = log(min(weights[k + 1] / weights[k] for k in range(noise.reach))) / _UP
    inner = sum(weights[1 : noise.reach + 1]) / total
    endless = float(noise.delta)
    times = np.arange(epochs + 1)
    # Of those epochs in which it is not endless; how likely that is stays out, which rounds up.
    chances = pmf(times, epochs, inner / (1 - endless)) * _UP
    losses = times * loss - (epochs - times) * gain

    def chance(epsilon: float) -> float:
        excess = np.clip(-np.expm1(epsilon - losses[losses > epsilon]), 0, 1)
        return epochs * endless + float(chances[losses > epsilon] @ excess)

    low, high = 0.0, epochs * loss
    if chance(low) <= delta:
        return low
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) <= delta else (middle, high)
    return high


def count_sentence(metric: Metric) -> str:
    """Sentence about what numbers of reports reveal; "" if they are not hidden."""
    noise, promise = count_noise(metric), metric.central
    if noise is None or promise is None or promise.count_epsilon is None:
        return ""
    delta, many = promise.delta, 2 * _MONTH * promise.delta
    return (
        " The number of reports of an epoch, and whether they leave, reveals epsilon "
        f"{promise.count_epsilon:g} at delta {delta:g} about whether one person reported, to the "
        f"aggregator and its users: the shuffler adds 0 to {noise.most} dummies, a number that it "
        "draws for each epoch and that only its operator can see. Together with the reports that "
        f"is {promise.epsilon + promise.count_epsilon:g} at delta {2 * delta:g}; the numbers of "
        f"{_MONTH} epochs reveal {at_most(together(noise, _MONTH, many), '.3g')} at delta {many:g}."
    )
