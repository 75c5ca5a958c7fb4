"""Dummies that devices make: beside its report each sends some of nobody, by coins of its own.

Nobody can tell them from reports, so the shuffler waits for as many more as there may be of them,
and how many devices there were is known by what is expected alone.
"""

from math import floor
from typing import Any

from hubbub.mechanisms import BitSource, OneHot, Probability


def dummy_payloads(metric: Any, coins: BitSource) -> list[bytes]:
    """What a device sends beside one report.

    PRIVACY: neither how many they are nor what they name depends on the value; each names any
        value alike.
    """
    layout, each = metric.randomizer.layout, metric.made_each
    if not each or not isinstance(layout, OneHot):
        return []
    number = floor(each) + coins.chance(Probability.at_most(each % 1))
    return [layout.encode(coins.below(layout.size)) for _ in range(number)]
