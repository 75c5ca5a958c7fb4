"""What a hidden number of reports says of whether one person reported: of an epoch, and of many.

Of one epoch it is `count_epsilon` at `delta`, by the law that is drawn (count_noise.py). Of many
the loss of each is one of three: what a number is likelier by than its outer neighbour, the same
below nothing, or endless, for the last number of a side. So that of all is a binomial sum.
"""

from math import log
from typing import Final

import numpy as np

from hubbub.analysis.binomials import pmf
from hubbub.catalog import Metric
from hubbub.catalog.crowds.hidden_counts import count_noise
from hubbub.sealing import CountNoise

_MONTH: Final = 30
_STEPS: Final = 60
# PRIVACY: above what floats lose in a sum of some thousand terms.
_UP: Final = 1 + 1e-9


def together(noise: CountNoise, epochs: int, delta: float) -> float:
    """The epsilon of so many epochs, a report of the person in each or in none, at this delta.

    Rounded up. Never above so many times that of one.
    """
    weights, whole = noise.weights, sum(noise.weights)
    loss = log(noise.odds / 2**32) * _UP
    # Likelier below the mean by at most that; beyond it less likely by at least the least quotient.
    gain = log(min(weights[k + 1] / weights[k] for k in range(noise.reach))) / _UP
    inner = sum(weights[1 : noise.reach + 1]) / whole
    endless = float(noise.delta)
    times = np.arange(epochs + 1)
    # Of those epochs in which it is not endless; how likely that is stays out, which rounds up.
    chances = pmf(times, epochs, inner / (1 - endless)) * _UP
    losses = times * loss - (epochs - times) * gain

    def chance(epsilon: float) -> float:
        over = np.clip(-np.expm1(epsilon - losses[losses > epsilon]), 0, 1)
        return epochs * endless + float(chances[losses > epsilon] @ over)

    low, high = 0.0, epochs * loss
    if chance(low) <= delta:
        return low
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) <= delta else (middle, high)
    return high


def said_of_count(metric: Metric) -> str:
    """A sentence of what its numbers of reports say; "" where they are counted."""
    noise, promise = count_noise(metric), metric.central
    if noise is None or promise is None or metric.count_epsilon is None:
        return ""
    delta, many = promise.delta, 2 * _MONTH * promise.delta
    return (
        f" How many reports an epoch has, and whether they leave, says epsilon "
        f"{metric.count_epsilon:g} at delta {delta:g} of whether one person reported, to the "
        f"aggregator and all who ask it: the shuffler adds 0 to {noise.most} dummies, a number "
        f"that it draws anew for each and that its own operator alone can see. With what reports "
        f"say that is {promise.epsilon + metric.count_epsilon:g} at delta {2 * delta:g}; the "
        f"numbers of {_MONTH} epochs say {together(noise, _MONTH, many):.3g} at delta {many:g}."
    )
