"""Gaussian differential privacy: a crowd in one number, mu, whose squares add up.

A crowd is said to be mu-Gaussian here if at every epsilon its delta is at most that of telling two
Gaussians mu apart, and LEFT_OUT. Then what one person says in many is sqrt(sum of mu squared), and
LEFT_OUT for each, in whatever order and whatever each depends on. Rounded to the safe side.

The yearly cap on what all crowds together reveal about one person to observers of whole epochs is
checked by the rule that devices apply: the sum of every crowd's mu squared, which needs only the
standard library. It exceeds the exact figure (on the card) by about a quarter; for two values by
more.

Source: Dong, Roth, Su, "Gaussian Differential Privacy" (JRSS B 2022), corollaries 1 and 2; that
what dominates composes: Zhu, Dong, Wang (AISTATS 2022), theorem 10.
"""

from collections.abc import Callable
from functools import lru_cache
from math import erfc, exp, log, sqrt
from typing import Any, Final

from hubbub.catalog.limits_and_budgets import Caps

LEFT_OUT: Final = 1e-13
"""The chance with which a crowd may tell more than its Gaussian."""

# Share of a cap's delta for the Gaussian part; the rest covers each crowd's own delta.
_OF_GAUSSIANS: Final = 0.9
_ROUNDING: Final = 1e-12
_CLOSE: Final = 1e-9
_MOST: Final = 1e6


def delta_of_mu(mu: float, epsilon: float) -> float:
    """The delta of two Gaussians `mu` apart at this epsilon, rounded up."""
    gain, loss = _tail(epsilon / mu - mu / 2), _tail(epsilon / mu + mu / 2)
    return gain - (exp(epsilon + log(loss)) if loss > 0 else 0.0) + _ROUNDING * gain


@lru_cache(maxsize=16)
def mu_within(epsilon: float, delta: float) -> float:
    """The largest mu with at most this epsilon at this delta, rounded down."""
    return _turn(lambda mu: delta_of_mu(mu, epsilon) <= delta)[0]


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The epsilon of `mu` at this delta, in nats, rounded up."""
    return _turn(lambda epsilon: epsilon < _MOST and delta_of_mu(mu, epsilon) > delta)[1]


def _turn(holds: Callable[[float], bool]) -> tuple[float, float]:
    """Two close numbers, the lower of which is 0 or holds, while the higher does not hold."""
    low, high = 0.0, 1.0
    while holds(high):
        low, high = high, 2 * high
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def mu_of_pure(epsilon: float) -> float:
    """The mu of a mechanism with this epsilon at delta 0, rounded up."""
    from statistics import NormalDist  # noqa: PLC0415 of a yearly cap alone

    lie = 1 / (1 + exp(min(epsilon, 700.0)))
    return -2 * NormalDist().inv_cdf(lie) * (1 + _ROUNDING)


def room_of(caps: Caps) -> float | None:
    """The sum of mu squared allowed for one person's crowds in any 366 days; None without a cap."""
    if caps.central_epsilon_per_year is None:
        return None
    delta = _OF_GAUSSIANS * caps.central_delta_per_year
    return mu_within(caps.central_epsilon_per_year, delta) ** 2


def crowd_cost(metric: Any) -> float:
    """The part of that sum that one report costs; 0 for a metric without a crowd.

    It is at least so large that the sum of left-out deltas stays within delta.
    """
    mu: float | None = metric.caps.central_mu.get(metric.base_name)
    if mu is None or (room := room_of(metric.caps)) is None:
        return 0.0
    left_out: float = (1 - _OF_GAUSSIANS) * metric.caps.central_delta_per_year
    return max(mu * mu, room * LEFT_OUT / left_out)


def spent_of(caps: Caps, cost: float) -> float:
    """The epsilon of a part of that sum, in nats at the cap's delta."""
    return epsilon_of_mu(sqrt(cost), _OF_GAUSSIANS * caps.central_delta_per_year) if cost else 0.0


def _tail(x: float) -> float:
    """The chance that a standard Gaussian exceeds x."""
    return erfc(x / sqrt(2)) / 2
