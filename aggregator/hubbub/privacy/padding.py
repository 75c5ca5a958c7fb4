"""How many dummies a crowd is best padded with: the fewest whose errors are as small as any's.

By the shuffler, which makes a number, or by devices, each of which makes so many on average.

Dummies hide a person as lies do, so devices may lie less; but each is noise, and whoever trusts
nobody is left with a larger local epsilon. Errors are exact: the variances of a value that nobody
holds and of one that a tenth hold, added.
"""

from dataclasses import replace
from math import floor, inf
from typing import Final

from hubbub.authoring.auto import EQUAL
from hubbub.privacy.shuffled_epoch import ShuffledEpoch
from hubbub.privacy.shuffled_histogram import largest_local

# With more of them than reports a crowd costs twice as much to seal, send and open; a thousand are
# nothing to anybody.
_CHEAP: Final = 1000
# What a catalog may write.
_MOST: Final = 1_000_000
# Steps that a person would write, each about twice the one before.
_STEPS: Final = (1, 2, 5)


def best_dummies(
    reports: int,
    categories: int,
    central: float,
    delta: float,
    *,
    honest: float,
    most: float,
    by_devices: bool = False,
) -> int:
    """The fewest with which the variance is within 5% of the least; 0 where none are worth it.

    Never more than reports, and than 1,000. most: the largest local epsilon that is allowed.
    by_devices: whether they are made there, so many of so many reports as are told.

    Raises:
        BadParameter: a number out of range.
    """
    options: list[tuple[float, int]] = []
    for dummies in [0, *(n * 10**power for power in range(1, 6) for n in _STEPS), _MOST]:
        if dummies > min(max(reports, _CHEAP), _MOST):
            break
        dummy_terms = {"each": dummies / reports} if by_devices else {"dummies": dummies}
        local = largest_local(
            reports, categories, central, delta, honest=honest, most=most, **dummy_terms
        )
        crowd = ShuffledEpoch(
            reports=reports,
            categories=categories,
            epsilon_local=floor(local * 1000) / 1000,
            honest=honest,
            **dummy_terms,
        )
        options.append((_variance(crowd), dummies))
        noise = _variance(replace(crowd, epsilon_local=inf))
        if local >= most or noise > min(options)[0]:
            break  # more are but more noise
    least, _ = min(options)
    return min(dummies for variance, dummies in options if variance <= EQUAL * least)


def _variance(crowd: ShuffledEpoch) -> float:
    """Of a value that nobody holds and of one in ten, added."""
    return crowd.stderr(0.0) ** 2 + crowd.stderr(0.1) ** 2
