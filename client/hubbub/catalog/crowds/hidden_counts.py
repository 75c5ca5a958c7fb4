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
        message = "is only for listed values: each dummy names one; leave it out"
    elif metric.rolling:
        message = (
            "cannot be combined with rolling: a crowd that leaves when it is full reveals, "
            "by its time, the arrival of the last report; leave one of them out"
        )
    elif metric.dummies_each:
        message = (
            "cannot be combined with dummies of devices: one more person adds several "
            "reports, but the noise hides only one; leave one of them out"
        )
    elif metric.breakdown:
        message = (
            "cannot be combined with breakdown, whose cells have separate numbers; leave "
            "one of them out"
        )
    elif metric.crowd + _noise(metric.count_epsilon, metric.delta).most > _LARGEST:
        message = f"has the crowd wait for more than {_LARGEST:,}; write a smaller crowd"
    else:
        return {}
    return {"count_epsilon": message}
