"""Errors with a hidden number of reports: two-sided exponential, where those of coins are normal.

The shuffler's number of dummies is geometric both ways. Its tails are longer than the normal law's:
where it is nearly the whole error, a normal p-value of .001 occurs in up to .0045 of differences.
"""

from typing import Final

import numpy as np
from scipy.special import log_ndtr, ndtri

from hubbub.analysis.arrays import Floats

# A part of the variance below it moves no p-value above 1e-9 by a tenth.
_NO_PART: Final = 1e-3
# Of two scales nearer to each other the mixture's weights would cancel each other.
_APART: Final = 1.05
_MIN_CHANCE: Final = 1e-300
_HALVINGS: Final = 20


def worth_of(scores: Floats, parts: tuple[Floats, Floats]) -> Floats:
    """The normal scores, at most these, that are as unlikely as these (at least 0).

    parts: of the variance, what the hidden numbers of two independent sides are.
    """
    hidden = parts[0] + parts[1] > _NO_PART
    answer: Floats = np.maximum(scores, 0.0)
    chances = _beyond(scores[hidden], parts[0][hidden], parts[1][hidden])
    worth = -ndtri(np.clip(chances, _MIN_CHANCE, 0.5))
    answer[hidden] = np.minimum(scores[hidden], worth)
    return answer


def reach_of_worth(worth: Floats, parts: tuple[Floats, Floats]) -> Floats:
    """How many standard errors go as far as so many of a normal law do; at least as many."""
    hidden = parts[0] + parts[1] > _NO_PART
    answer, wanted = worth.copy(), worth[hidden]
    own = parts[0][hidden], parts[1][hidden]
    # At its longest such a law goes as far as the square.
    few, most = wanted, wanted + wanted**2
    for _ in range(_HALVINGS):
        middle = (few + most) / 2
        near = worth_of(middle, own) < wanted
        few, most = np.where(near, middle, few), np.where(near, most, middle)
    answer[hidden] = most
    return answer


def _beyond(scores: Floats, first: Floats, second: Floats) -> Floats:
    """The chance that two such numbers and a normal error, of variance 1 together, go so far.

    Two such laws together are a mixture of both, with weights that may be below 0: partial
    fractions of their characteristic functions.
    """
    both = (first + second) / 2
    larger = np.maximum(np.maximum(first, second), both * (2 * _APART / (1 + _APART)))
    smaller = np.maximum(2 * both - larger, _NO_PART / 10)
    coins = np.sqrt(np.maximum(1 - larger - smaller, 1e-6))
    weight = larger / (larger - smaller)
    chances: Floats = weight * _one(scores, np.sqrt(larger / 2), coins)
    chances -= (weight - 1) * _one(scores, np.sqrt(smaller / 2), coins)
    return chances


def _one(scores: Floats, scale: Floats, coins: Floats) -> Floats:
    """The chance that one such number with this scale and a normal error go so far."""
    normal, ratio = scores / coins, coins / scale
    down = ratio**2 / 2 - scores / scale + log_ndtr(normal - ratio)
    up = ratio**2 / 2 + scores / scale + log_ndtr(-normal - ratio)
    answer: Floats = np.exp(log_ndtr(-normal)) + (np.exp(down) - np.exp(up)) / 2
    return answer
