"""Gaussian differential privacy: a crowd in one number, mu, whose squares add up.

A crowd is said to be mu-Gaussian here if at every epsilon its delta is at most that of telling two
Gaussians mu apart, and LEFT_OUT. Then what one person says in many is sqrt(sum of mu squared), and
LEFT_OUT for each, in whatever order and whatever each depends on. Rounded to the safe side.

Source: Dong, Roth, Su, "Gaussian Differential Privacy" (JRSS B 2022), corollaries 1 and 2; that
what dominates composes: Zhu, Dong, Wang (AISTATS 2022), theorem 10.
"""

from functools import lru_cache
from math import erfc, exp, log, sqrt
from typing import Final

LEFT_OUT: Final = 1e-13
"""The chance with which a crowd may tell more than its Gaussian."""

_ROUNDING: Final = 1e-12
_CLOSE: Final = 1e-9
_MOST: Final = 1e6


def delta_of_mu(mu: float, epsilon: float) -> float:
    """The delta of two Gaussians `mu` apart at this epsilon, rounded up."""
    near, far = _tail(epsilon / mu - mu / 2), _tail(epsilon / mu + mu / 2)
    return near - (exp(epsilon + log(far)) if far > 0 else 0.0) + _ROUNDING * near


@lru_cache(maxsize=16)
def mu_within(epsilon: float, delta: float) -> float:
    """The largest mu with at most this epsilon at this delta, rounded down."""
    low, high = 0.0, 1.0
    while delta_of_mu(high, epsilon) <= delta:
        low, high = high, 2 * high
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of_mu(middle, epsilon) <= delta else (low, middle)
    return low


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The epsilon of `mu` at this delta, in nats, rounded up."""
    low, high = 0.0, 1.0
    while delta_of_mu(mu, high) > delta and high < _MOST:
        low, high = high, 2 * high
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of_mu(mu, middle) <= delta else (middle, high)
    return high


def mu_of_pure(epsilon: float) -> float:
    """The mu of a mechanism with this epsilon at delta 0, rounded up."""
    from statistics import NormalDist  # noqa: PLC0415 of a yearly cap alone

    lie = 1 / (1 + exp(min(epsilon, 700.0)))
    return -2 * NormalDist().inv_cdf(lie) * (1 + _ROUNDING)


def _tail(x: float) -> float:
    """The chance that a standard Gaussian exceeds x."""
    return erfc(x / sqrt(2)) / 2
