"""Binomial probabilities and tails, with numpy and scipy.special only.

scipy.stats has them too, but takes half a second and 45 MB to load. Each probability is accurate to
1e-10, relative, for up to 1e9 trials; tests compare.

Source: Loader 2000, Fast and Accurate Computation of Binomial Probabilities: the remainder of
Stirling's formula, and the deviance from the mean, each computed without cancellation.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import lgamma, log, log1p, pi
from typing import Final

import numpy as np
import numpy.typing as npt
from numpy.polynomial.polynomial import polyval
from scipy.special import betainc, betaincc

from hubbub.analysis.arrays import Floats

# Numbers per step: a few megabytes.
_AT_ONCE: Final = 1 << 17
# Exact for smaller n; above, three terms of Stirling's series are accurate to 2e-16.
_SMALL: Final = 64
_SMALL_REMAINDERS: Final = np.array(
    [0.0] + [lgamma(n + 1) - (n + 0.5) * log(n) + n - log(2 * pi) / 2 for n in range(1, _SMALL)]
)
_SERIES: Final = (1 / 12, -1 / 360, 1 / 1260)
# Within a tenth of the mean the distance is summed, since a difference would lose digits.
_NEAR: Final = 0.1
_POWERS: Final = tuple(1 / power for power in range(3, 18, 2))


def pmf(numbers: npt.ArrayLike, trials: npt.ArrayLike, chance: float) -> Floats:
    """Probability of exactly `numbers` successes in `trials`, elementwise; `chance` in [0, 1]."""
    k, n = np.asarray(numbers, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    if not 0 < chance < 1:
        return np.where(k == (n if chance else 0), 1.0, 0.0)
    inner = (k > 0) & (k < n)
    successes, failures = np.where(inner, k, 1.0), np.where(inner, n - k, 1.0)
    together = successes + failures
    exponent = (
        (_stirling_remainder(n) - _stirling_remainder(successes) - _stirling_remainder(failures))
        - _distance(successes, together * chance)
        - _distance(failures, together * (1 - chance))
    )
    result = np.exp(exponent) * np.sqrt(together / (2 * pi * successes * failures))
    if inner.all():
        return result
    none, all_ = np.exp(n * log1p(-chance)), np.exp(n * log(chance))
    ends = np.where(k == 0, none, np.where(k == n, all_, 0.0))
    return np.where(inner, result, ends)


def binomial_tail(numbers: npt.ArrayLike, trials: npt.ArrayLike, chance: float) -> Floats:
    """Probability of more than `numbers` successes in `trials`, elementwise."""
    k, n = np.asarray(numbers, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    inner = (k >= 0) & (k < n)
    result = betainc(np.where(inner, k + 1, 1.0), np.where(inner, n - k, 1.0), chance)
    return np.where(inner, result, np.where(k < 0, 1.0, 0.0))


def binomial_quantile(share: float, trials: int, chance: float) -> int:
    """Smallest number k for which at most k successes have a probability of at least `share`."""
    numbers = range(trials)
    return bisect_left(numbers, share, key=lambda k: float(betaincc(k + 1, trials - k, chance)))


def likely(trials: int, chance: float, cut: float) -> Floats:
    """Numbers of successes, without tails whose probability is at most `cut` together."""
    [lowest], [highest] = likely_ends(np.array([float(trials)]), chance, cut)
    return np.arange(lowest, highest + 1)


def likely_ends(trials: Floats, chance: float, cut: float) -> tuple[Floats, Floats]:
    """Smallest and largest number of `likely` for each number of trials (Bernstein 1924)."""
    mean, reach = trials * chance, log(2 / cut)
    distance = reach / 3 + np.sqrt(reach**2 / 9 + 2 * reach * mean * (1 - chance))
    return np.maximum(0, np.floor(mean - distance)), np.minimum(trials, np.ceil(mean + distance))


def laws(trials: Sequence[int], chance: float, cut: float) -> list[Floats]:
    """For each number of trials, the probabilities of its `likely` numbers, in ascending order."""
    pmfs: list[Floats] = []
    waiting: list[Floats] = []
    for number in trials:
        waiting.append(likely(number, chance, cut))
        # Many at once: single calls of numpy would cost more than their work.
        if len(pmfs) + len(waiting) == len(trials) or sum(map(len, waiting)) > _AT_ONCE:
            lengths = [len(row) for row in waiting]
            trial_counts = np.repeat(np.array(trials[len(pmfs) :][: len(waiting)], float), lengths)
            chances = pmf(np.concatenate(waiting), trial_counts, chance)
            pmfs += np.split(chances, np.cumsum(lengths)[:-1])
            waiting = []
    return pmfs


def _stirling_remainder(n: Floats) -> Floats:
    """Remainder of Stirling's formula for log(n!)."""
    small = n < _SMALL
    large = np.maximum(n, _SMALL)
    remainder = polyval(1 / (large * large), _SERIES) / large
    if not small.any():
        return remainder
    exact = _SMALL_REMAINDERS[np.where(small, n, 0).astype(np.intp)]
    return np.where(small, exact, remainder)


def _distance(number: Floats, mean: Floats) -> Floats:
    """Deviance n log(n / mean) + mean - n, computed without cancellation."""
    deviation = number - mean
    v = deviation / (number + mean)
    square = v * v
    summed = deviation * v + 2 * number * v * square * polyval(square, _POWERS)
    is_far = square > _NEAR**2
    if is_far.any():
        summed = np.where(is_far, number * np.log(number / mean) - deviation, summed)
    return summed
