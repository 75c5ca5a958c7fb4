"""How many dummies a crowd is best padded with: the fewest whose errors are as small as any's.

Dummies hide a person as lies do, so devices may lie less; but each is noise, and whoever trusts
nobody is left with a larger local epsilon. Errors are exact: the variances of a value that nobody
holds and of one that a tenth hold, added.
"""

from math import floor
from typing import Final

from hubbub.catalog.choice import EQUAL
from hubbub.privacy.shuffled_histogram import ShuffledEpoch, largest_local

# With more of them than reports a crowd costs twice as much to seal, send and open; a thousand are
# nothing to anybody.
_CHEAP: Final = 1000
# What a catalog may write.
_MOST: Final = 1_000_000
# Steps that a person would write, each about twice the one before.
_STEPS: Final = (1, 2, 5)


def best_dummies(
    reports: int, categories: int, central: float, delta: float, *, honest: float, most: float
) -> int:
    """The fewest with which the variance is within 5% of the least; 0 where none are worth it.

    Never more than reports, and than 1,000. most: the largest local epsilon that is allowed.

    Raises:
        BadParameter: a number out of range.
    """
    found: list[tuple[float, int]] = []
    for dummies in [0, *(n * 10**power for power in range(1, 6) for n in _STEPS), _MOST]:
        if dummies > min(max(reports, _CHEAP), _MOST):
            break
        local = largest_local(
            *(reports, categories, central, delta), honest=honest, dummies=dummies, most=most
        )
        crowd = ShuffledEpoch(reports, categories, floor(local * 1000) / 1000, honest, dummies)
        found.append((crowd.stderr(0.0) ** 2 + crowd.stderr(0.1) ** 2, dummies))
        noise = 2 * dummies / categories * (1 - 1 / categories)
        if local >= most or noise > min(found)[0]:
            break  # more are but more noise
    least, _ = min(found)
    return min(dummies for variance, dummies in found if variance <= EQUAL * least)
