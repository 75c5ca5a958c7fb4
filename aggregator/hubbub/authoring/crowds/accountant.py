"""The accountant of crowds: local epsilons that keep a promise, counts of reports and dummies."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, log, sqrt
from typing import Any, Final, Protocol

from hubbub.catalog.crowds.crowd import Crowd
from hubbub.catalog.crowds.noise_dummies import count_noise, value_noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A planned mechanism in a crowd.

    Args:
        parameters: what was chosen for it.
        categories, groups: number of cells over which its lies are spread, and number of groups of
            that many cells (`even_lies` of hubbub.mechanisms).
        epsilon: the largest that keeps the promise, if it does not follow from the above.
    """

    mechanism: str
    parameters: Mapping[str, float]
    categories: float
    groups: int = 1
    epsilon: float | None = None


class Accountant(Protocol):
    """Computes what keeps a central promise. It needs numpy, so the client does not have it.

    In all methods, `categories` is the number of values, ranges or buckets over which a lie is
    spread, and `groups` the number of groups of which a report shows its own, as hash functions.
    """

    def local_epsilon(self, promise: Crowd, categories: float, groups: int = 1) -> float:
        """The largest local epsilon that keeps the promise, in nats."""

    def gaussian(self, promise: Crowd, categories: float, epsilon: float, groups: int = 1) -> float:
        """The mu of a crowd whose reports have this local epsilon, as in gaussian_privacy.py."""

    def keeps(self, promise: Crowd, categories: float, epsilon: float, groups: int = 1) -> bool:
        """Whether a crowd of reports of this local epsilon keeps the promise."""

    def padded(
        self,
        promise: Crowd,
        categories: int,
        dummies: str,
        *,
        noisy: bool = True,
        fixed_sum: bool = False,
    ) -> Crowd:
        """The promise, which has no dummies, with the best dummies if any are worth it.

        `dummies` is "noise" for noise dummies, "devices" for those of devices, or "auto" for the
        best of the shuffler's, which include noise dummies if `noisy`. With `fixed_sum` the
        categories are the steps of a mean, and further noise dummies fix the sum.
        """

    def crowd_needed(
        self, promise: Crowd, categories: float, epsilon: float, groups: int = 1
    ) -> int | None:
        """The smallest crowd that keeps the promise at this local epsilon; None if none does."""


COUNTS_PART: Final = 0.4
"""The part of epsilon of the numbers of a mean's dummies, which cost dummies but no error."""

_NEVER: Final = 1e-17
"""The chance with which fewer devices are in a crowd than are reckoned with; none has a delta."""


def gathered(devices: int, dummies_each: float) -> int:
    """Number of reports and dummies that surely come from at least this many devices."""
    if not dummies_each:
        return devices
    return 1 + ceil((devices - 1) * (1 + dummies_each) + _largest_excess(devices - 1, dummies_each))


def devices_at_least(expected: int, dummies_each: float) -> int:
    """Lower bound on devices; `expected` is all reports and dummies over 1 + `dummies_each`."""
    return (
        max(0, floor(expected - _largest_excess(expected, dummies_each) / (1 + dummies_each)) - 1)
        if dummies_each
        else expected
    )


def reports_variance(reports: int, dummies_each: float) -> float:
    """Variance of the number of reports, estimated as all arrivals over 1 + `dummies_each`."""
    return reports * (dummies_each % 1) * (1 - dummies_each % 1) / (1 + dummies_each) ** 2


def _largest_excess(devices: int, dummies_each: float) -> float:
    """Largest probable excess of dummies from this many devices (Bernstein 1924)."""
    part, reach = dummies_each % 1, log(1 / _NEVER)
    return reach / 3 + sqrt(reach**2 / 9 + 2 * reach * devices * part * (1 - part))


def minimum(metric: Any) -> int:
    """Number of reports and dummies at which an epoch leaves: at least `crowd` are then reports."""
    noise = count_noise(metric)
    return int(metric.fewest) + (noise.most if noise else 0)


def named_dummies(metric: Any) -> int:
    """The mean number of noise dummies that leave with a crowd."""
    noise = value_noise(metric)
    return noise.expected if noise else 0


def sum_scale(scale: float, steps: int) -> float:
    """The scale of the sum of a mean's dummies, if the number of each step's has this `scale`.

    Numbers then get `COUNTS_PART` of epsilon, and the sum the rest; in four digits.
    """
    return float(f"{scale * steps * COUNTS_PART / (1 - COUNTS_PART) / 2:.4g}")


def expected_dummies(metric: Any) -> int:
    """Number of the shuffler's dummies in a crowd; the mean, if it is random."""
    noise, crowd = count_noise(metric), metric.crowd
    return (crowd.dummies if crowd else 0) + named_dummies(metric) + (noise.reach if noise else 0)


def count_variance(metric: Any, reports: int) -> float:
    """Variance of the dummies that hide an epoch's number of reports; 0 if there are none.

    `reports` is the estimated number; it shows how near the epoch was to being withheld.
    """
    noise = count_noise(metric)
    return noise.variance_above(reports - metric.fewest - noise.reach) if noise else 0.0


def number_variance(metric: Any, reports: int) -> float:
    """Variance of an epoch's secret number of dummies; 0 if there are none."""
    noise = value_noise(metric)
    return (noise.number_variance if noise else 0.0) + count_variance(metric, reports)


def reports_at_least(metric: Any, reports: int) -> int:
    """Number of reports, with the expected count-hiding and named dummies subtracted."""
    noise = count_noise(metric)
    return reports - named_dummies(metric) - (noise.reach if noise else 0)


def hides_number(metric: Any) -> bool:
    """Whether the shuffler keeps its number of dummies secret, and so the number of reports."""
    noise = value_noise(metric)
    return bool(count_noise(metric) or (noise and noise.number_variance))
