"""Dummies that devices make: beside its report each sends some of nobody, by coins of its own.

Nobody can tell them from reports, so the shuffler waits for as many more as there may be of them,
and how many devices there were is known by what is expected alone.
"""

from math import ceil, floor, log, sqrt
from typing import Any, Final

from hubbub.mechanisms import BitSource, OneHot, Probability

_NEVER: Final = 1e-17
"""The chance with which fewer devices are in a crowd than are reckoned with; none has a delta."""


def each_of(crowd: int, dummies: int) -> float:
    """How many a device makes for so many of a crowd, on average, in three digits."""
    return float(f"{dummies / crowd:.3g}")


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


def gathered(devices: int, each: float) -> int:
    """How many reports and dummies are of so many devices at least."""
    if not each:
        return devices
    return 1 + ceil((devices - 1) * (1 + each) + _off(devices - 1, each))


def devices_at_least(expected: int, each: float) -> int:
    """How many devices there are at least where so many are expected.

    expected: reports and dummies, over 1 + `each`.
    """
    return max(0, floor(expected - _off(expected, each) / (1 + each)) - 1) if each else expected


def reports_variance(reports: int, each: float) -> float:
    """Of how many reports there are, where reports and dummies over 1 + `each` are told as that."""
    return reports * (each % 1) * (1 - each % 1) / (1 + each) ** 2


def _off(devices: int, each: float) -> float:
    """How many more dummies than expected so many devices make at most (Bernstein 1924)."""
    part, reach = each % 1, log(1 / _NEVER)
    return reach / 3 + sqrt(reach**2 / 9 + 2 * reach * devices * part * (1 - part))
