"""Direction codes of models and vectors in a crowd: the largest epsilon that keeps a promise."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import floor, sqrt
from typing import Any, Final

from hubbub.authoring.crowds.accountant import Accountant, Planned
from hubbub.catalog.crowds.crowd import Crowd
from hubbub.catalog.crowds.gaussian_privacy import epsilon_of_mu, mu_within
from hubbub.catalog.models.model_metric import bins_for
from hubbub.errors import BadParameter
from hubbub.mechanisms.even_lies import even_lies, lies_evenly
from hubbub.mechanisms.vector_codes import VectorCodes, pool_for, words_for

CROWD_ROUNDS: Final = 12
CROWD_ROUNDS_EACH: Final = 4
"""How many rounds there are, and a device is in, of a model in a crowd that says nothing else."""

# Epsilons are in thousandths; the search widens by so many of them about where Gaussians have it.
_GRAIN: Final = 1000
_WIDE: Final = 32


def planned_vectors(
    dimensions: int, table: Mapping[str, Any], promise: Crowd, accountant: Accountant
) -> Planned:
    """Plan for the mean of a vector in a crowd; its pool is as written, or follows from epsilon.

    Raises BadParameter if no such mechanism exists, or no epsilon keeps the promise.
    """
    words, epsilon = table.get("words"), float(table.get("epsilon", promise.max_local_epsilon))
    most = min(promise.max_local_epsilon, epsilon)
    if words == 2:  # noqa: PLR2004 half of them
        raise BadParameter(
            'with two words the promise of a crowd is not proven; raise "words", or leave it out'
        )
    if epsilon > most or not keeps_promise(promise, dimensions, accountant, epsilon, words=words):
        bounded = replace(promise, max_local_epsilon=most)
        epsilon = codes_epsilon(bounded, dimensions, accountant, words=words)
    # PRIVACY: of as many words as the account is of.
    words = words or words_for(epsilon)
    usual = pool_for(epsilon, promise.reports, dimensions, words)
    pool = {name: size for name, size in usual.items() if name not in table}
    codes = VectorCodes(epsilon=epsilon, dimensions=dimensions, words=words, books=1)
    categories = even_lies(codes, epsilon).categories
    return Planned(
        mechanism=VectorCodes.NAME, parameters=pool, categories=categories, epsilon=epsilon
    )


def codes_epsilon(
    promise: Crowd,
    dimensions: int,
    accountant: Accountant,
    *,
    judged: bool = False,
    words: int | None = None,
) -> float:
    """Largest epsilon of a report, in nats, with which all of a person's reports keep the promise.

    `promise` covers as many epochs as a device has reports; `dimensions` are those of a vector or
    gradient. `judged` means that devices evaluate a model, once each, in a crowd that keeps the
    promise too. `words` is the size of a book; None if it follows from epsilon. Raises BadParameter
    if it is less than the smallest epsilon of a report.
    """

    def holds(epsilon: float) -> bool:
        return keeps_promise(promise, dimensions, accountant, epsilon, judged=judged, words=words)

    def keeps_one(place: int) -> bool:
        return keeps_promise(round_promise, dimensions, accountant, place / _GRAIN, words=words)

    # Treats crowds as Gaussians, whose squared mu add up: the epsilon of one is cheap.
    mu = mu_within(promise.epsilon, promise.delta) / sqrt(promise.epochs)
    round_promise = replace(promise, epsilon=epsilon_of_mu(mu, promise.delta), epochs=1)
    low = floor(promise.epsilon / promise.epochs * _GRAIN)
    most = floor(promise.max_local_epsilon * _GRAIN)
    guess = _last_true(keeps_one, low, most)
    wide = _WIDE
    while guess > low and not holds(guess / _GRAIN):
        guess, wide = max(guess - wide, low), 2 * wide
    step = _WIDE
    while guess < most and holds(min(guess + step, most) / _GRAIN):
        guess, step = min(guess + step, most), 2 * step
    grains = _last_true(lambda place: holds(place / _GRAIN), guess, min(guess + step, most))
    if not holds(grains / _GRAIN):
        raise BadParameter(promise.unkept())
    return grains / _GRAIN


def keeps_promise(
    promise: Crowd,
    dimensions: int,
    accountant: Accountant,
    epsilon: float,
    *,
    judged: bool = False,
    words: int | None = None,
) -> bool:
    """Whether all reports of a person keep the promise at this epsilon; as `codes_epsilon`.

    PRIVACY: a smaller epsilon has fewer words, of which relatively more may be near, or fewer bins,
    and may reveal more in a crowd.
    """
    once = replace(promise, epochs=1)
    if judged and not accountant.keeps(once, 2 * bins_for(epsilon), epsilon):
        return False
    codes = VectorCodes(
        epsilon=epsilon, dimensions=dimensions, words=words or words_for(epsilon), books=1
    )
    if not lies_evenly(codes):
        return False
    return accountant.keeps(promise, even_lies(codes, epsilon).categories, epsilon)


def _last_true(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last place that holds, by bisection; `low` if none above it is found."""
    if holds(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
