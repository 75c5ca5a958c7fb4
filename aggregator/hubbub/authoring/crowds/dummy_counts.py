"""How many dummies go with a crowd, and how many of what is counted are reports."""

from math import ceil, floor, log, sqrt
from typing import Any, Final

from hubbub.catalog.crowds.hidden_counts import count_noise
from hubbub.catalog.crowds.noise_dummies import named_dummies, value_noise

_NEVER: Final = 1e-17
"""The chance with which fewer devices are in a crowd than are reckoned with; none has a delta."""


def each_of(crowd: int, dummies: int) -> float:
    """How many a device makes for so many of a crowd, on average, in three digits."""
    return float(f"{dummies / crowd:.3g}")


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


def minimum(metric: Any) -> int:
    """What the shuffler holds reports and dummies against: then `crowd` of them are reports."""
    noise = count_noise(metric)
    return int(metric.fewest) + (noise.most if noise else 0)


def expected_dummies(metric: Any) -> int:
    """How many dummies of the shuffler's leave with a crowd, on average where that is drawn."""
    noise = count_noise(metric)
    return int(metric.dummies) + named_dummies(metric) + (noise.reach if noise else 0)


def count_variance(metric: Any, reports: int) -> float:
    """The variance of how many dummies hide an epoch's number of reports; 0 of none.

    reports: the estimate, by which it is seen how near the epoch was to not leaving at all.
    """
    noise = count_noise(metric)
    return noise.variance_above(reports - metric.fewest - noise.reach) if noise else 0.0


def number_variance(metric: Any, reports: int) -> float:
    """The variance of how many secret dummies an epoch has; 0 of none."""
    noise = value_noise(metric)
    named = noise.variance * int(metric.randomizer.layout.size) if noise else 0.0
    return named + count_variance(metric, reports)


def reports_at_least(metric: Any, reports: int) -> int:
    """How many there are, where so many are left without the dummies that are expected."""
    noise = count_noise(metric)
    return reports - named_dummies(metric) - (noise.reach if noise else 0)


def hides_number(metric: Any) -> bool:
    """Whether the shuffler tells nobody how many dummies a crowd has, and so how many reports."""
    return bool(count_noise(metric) or value_noise(metric))
