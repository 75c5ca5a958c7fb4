"""Dummies made by devices: beside its report each device sends random ones.

Nobody can distinguish them from reports. So the shuffler waits for as many more as there may be,
and the number of devices is known only by the expected number of dummies.
"""

from math import floor
from typing import Any

from hubbub.mechanisms import BitSource, OneHot, Probability


def dummy_payloads(metric: Any, coins: BitSource) -> list[bytes]:
    """The dummies that a device sends beside one report.

    PRIVACY: neither their number nor their values depend on the report; all values are equally
        likely.
    """
    layout, each = metric.randomizer.layout, metric.made_each
    if not each or not isinstance(layout, OneHot):
        return []
    number = floor(each) + coins.chance(Probability.at_most(each % 1))
    return [layout.encode(coins.below(layout.size)) for _ in range(number)]
