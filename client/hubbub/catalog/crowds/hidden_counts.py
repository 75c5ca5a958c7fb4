"""How many reports an epoch has, hidden: the shuffler adds a number of dummies that nobody is told.

It draws the number once, before it looks whether the crowd is complete. So who sees what leaves, or
that nothing does, sees a number of reports that could as well be of one person more or less.
"""

from functools import lru_cache
from typing import Any, Final

from hubbub.catalog.crowds.noise_dummies import named_dummies, value_noise
from hubbub.mechanisms.probability import exp_at_most
from hubbub.sealing import CountNoise

_LISTED: Final = "grr"
_LARGEST: Final = 1_000_000
"""Of a minimum, as the shuffler takes it."""


def count_noise(metric: Any) -> CountNoise | None:
    """The law of how many dummies hide a metric's number of reports; None where it is told.

    So in development, whose numbers protect nobody.
    """
    if metric.count_epsilon is None or not metric.central:
        return None
    return _noise(metric.count_epsilon, metric.delta)


@lru_cache(maxsize=256)
def _noise(epsilon: float, delta: float) -> CountNoise:
    return CountNoise.least(exp_at_most(epsilon), delta)


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


def count_conflicts(metric: Any) -> dict[str, str]:
    """What in a metric with a crowd does not go with a hidden number of reports."""
    if metric.count_epsilon is None:
        return {}
    # PRIVACY: of parts, numbers and strings an evenly drawn payload is no report of somebody.
    if metric.mechanism != _LISTED:
        message = "goes with listed values alone: its dummies each name one; leave it out"
    elif metric.rolling:
        message = (
            "does not go with rolling: a crowd that leaves as it fills tells by when it leaves who "
            "came last, whatever is added; leave one of them out"
        )
    elif metric.dummies_each:
        message = (
            "does not go with dummies of devices: a person more is several reports more, and the "
            "number is hidden by one; leave one of them out"
        )
    elif metric.breakdown:
        message = (
            "does not go with breakdown, whose cells have numbers of their own; leave one of them "
            "out"
        )
    elif metric.crowd + _noise(metric.count_epsilon, metric.delta).most > _LARGEST:
        message = f"has the crowd wait for more than {_LARGEST:,}; write a smaller crowd"
    else:
        return {}
    return {"count_epsilon": message}
