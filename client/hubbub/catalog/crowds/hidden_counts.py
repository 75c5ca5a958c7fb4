"""Hides the number of reports of an epoch: the shuffler adds a secret number of dummies.

It draws the number once, before it checks whether the crowd is complete. So the number of reports
that leave, or that none leave, is about equally likely with one person more or less.
"""

from functools import lru_cache
from typing import Any, Final

from hubbub.mechanisms.probability import exp_at_most
from hubbub.sealing import CountNoise

_LISTED: Final = "grr"
_LARGEST: Final = 1_000_000
"""Of a minimum, as the shuffler takes it."""


def count_noise(metric: Any) -> CountNoise | None:
    """The distribution of the dummies that hide a metric's number of reports; None without.

    None also in development, whose settings protect nobody.
    """
    if metric.count_epsilon is None or not metric.central:
        return None
    return _noise(metric.count_epsilon, metric.delta)


@lru_cache(maxsize=256)
def _noise(epsilon: float, delta: float) -> CountNoise:
    return CountNoise.least(exp_at_most(epsilon), delta)


def count_conflicts(metric: Any) -> dict[str, str]:
    """What conflicts with a hidden number of reports in a metric with a crowd."""
    if metric.count_epsilon is None:
        return {}
    # PRIVACY: for other mechanisms a uniform payload is distinguishable from a report.
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
