"""Models in a crowd: the largest local epsilon whose rounds together keep a central promise."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import floor, sqrt
from typing import Any, Final

from hubbub.catalog.crowds.central_promise import Accountant, CentralPromise
from hubbub.catalog.crowds.gaussian import epsilon_of_mu, mu_within
from hubbub.catalog.models.judging import bins_for
from hubbub.errors import BadParameter
from hubbub.mechanisms import even_lies, lies_evenly
from hubbub.mechanisms.vector_codes import VectorCodes, words_for

CROWD_ROUNDS: Final = 12
CROWD_ROUNDS_EACH: Final = 4
"""How many rounds there are, and a device is in, of a model in a crowd that says nothing else."""

# Epsilons are in thousandths; the search widens by so many of them about where Gaussians have it.
_GRAIN: Final = 1000
_WIDE: Final = 32


def model_promise(told: Mapping[str, Any], rounds: int) -> CentralPromise:
    """The promise that a model's fields make, of the rounds that a device is in."""
    delta, honest, most = (float(told[name]) for name in ("delta", "honest", "max_local_epsilon"))
    epsilon = float(told["central_epsilon"])
    return CentralPromise(epsilon, told["crowd"], delta, honest, most, epochs=rounds)


def model_epsilon(
    promise: CentralPromise, dimensions: int, accountant: Accountant, *, judged: bool
) -> float:
    """What a report of a model may say, so that all rounds of a person keep the promise, in nats.

    promise: of as many epochs as a device has rounds. dimensions: of a gradient. judged: whether
    devices judge it, each once; their crowd keeps the promise, too.

    Raises:
        BadParameter: it is less than any report of a gradient says.
    """

    def keeps(epsilon: float, rounds: CentralPromise) -> bool:
        codes = VectorCodes(epsilon, dimensions, words_for(epsilon), 1)
        if not lies_evenly(codes):
            return False
        categories = even_lies(codes, epsilon).categories
        return accountant.keeps(rounds, categories, epsilon)

    def holds(epsilon: float) -> bool:
        if judged and not accountant.keeps(
            replace(promise, epochs=1), 2 * bins_for(epsilon), epsilon
        ):
            return False
        return keeps(epsilon, promise)

    # As if crowds were Gaussians, whose squares add up: what one says is found in no time.
    mu = mu_within(promise.epsilon, promise.delta) / sqrt(promise.epochs)
    one = replace(promise, epsilon=epsilon_of_mu(mu, promise.delta), epochs=1)
    low = floor(promise.epsilon / promise.epochs * _GRAIN)
    most = floor(promise.max_local_epsilon * _GRAIN)
    about = _last(lambda place: keeps(place / _GRAIN, one), low, most)
    wide = _WIDE
    while about > low and not holds(about / _GRAIN):
        about, wide = max(about - wide, low), 2 * wide
    step = _WIDE
    while about < most and holds(min(about + step, most) / _GRAIN):
        about, step = min(about + step, most), 2 * step
    found = _last(lambda place: holds(place / _GRAIN), about, min(about + step, most))
    if not holds(found / _GRAIN):
        raise BadParameter(promise.unkept())
    return found / _GRAIN


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last place that holds, by halving; `low` if none was found to."""
    if holds(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
