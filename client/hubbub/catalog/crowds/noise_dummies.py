"""Noise dummies: the shuffler adds a secret random number of dummies to a crowd.

To every value, from one distribution, so that a count is as exact as that of a trusted curator who
adds the same noise. Source: Murakami, Sei, Eriguchi (IEEE S&P 2025).

Or to hide the number of reports of an epoch: so the number of reports that leave, or that none
leave, is about equally likely with one person more or less.

It draws the numbers once per epoch, before it checks whether the crowd is complete.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from hubbub.catalog.crowds.crowd import CROWD_LISTED, CROWD_MEANS, CROWD_PARTS, Crowd
from hubbub.mechanisms import build
from hubbub.mechanisms.probability import exp_at_most

if TYPE_CHECKING:
    from hubbub.sealing.dummy_laws import CountNoise, ValueNoise

MAX_SEALED: Final = 500_000
"""How many dummies the shuffler seals for an epoch at most: a minute of time, 25 MB of Redis."""

_MAX_CROWD: Final = 1_000_000
"""Of a minimum, as the shuffler takes it."""


def value_noise(metric: Any) -> "ValueNoise | None":
    """The law of the numbers of dummies of each value; None without, or in development."""
    crowd = metric.central
    if crowd is None or crowd.noise is None:
        return None
    return _value_noise(crowd.noise, metric.randomizer.layout.size, crowd.sum_noise)


def can_seal(crowd: Crowd, values: float) -> bool:
    """Whether the shuffler seals the noise dummies of a crowd for this many values."""
    noise = crowd.noise
    return noise is None or _value_noise(noise, int(values), crowd.sum_noise).sealed <= MAX_SEALED


def _value_noise(noise: "CountNoise", values: int, summed: "CountNoise | None") -> "ValueNoise":
    from hubbub.sealing.dummy_laws import ValueNoise  # noqa: PLC0415 of few crowds

    return ValueNoise(noise, values, summed)


def noise_conflicts(metric: Any) -> dict[str, str]:
    """What conflicts with noise dummies in a metric with a crowd."""
    crowd = metric.crowd
    scale, shift = crowd.dummies_scale, crowd.dummies_shift
    if crowd.dummies_sum_scale and (not scale or metric.mechanism != CROWD_MEANS[-1]):
        return {"dummies_sum_scale": "is only for noise dummies of a mean; leave it out"}
    if not scale and not shift:
        return {}
    if not (scale and shift):
        name, other = ("dummies_shift", "scale") if scale else ("dummies_scale", "shift")
        return {name: f"must be written beside dummies_{other}; write both, or neither"}
    if problem := _several_named(metric):
        message = problem
    elif crowd.rolling:
        message = (
            "cannot be combined with rolling: the numbers are drawn once per epoch, and an "
            "observer of two of its crowds would see them twice; leave one of them out"
        )
    elif crowd.dummies or crowd.dummies_each:
        message = "go without dummies of another kind; leave one of them out"
    elif metric.breakdown:
        message = (
            "cannot be combined with breakdown, whose cells would each need separate "
            "numbers; leave one of them out"
        )
    elif not can_seal(crowd, _named_values(metric)):
        message = (
            f"have the shuffler seal more than {MAX_SEALED:,} of them an epoch; use fewer "
            "values, or raise central_epsilon or delta"
        )
    else:
        return {}
    return {"dummies": message}


def needs_all_parts(parts: int) -> str:
    """Error text about noise dummies of a metric whose reports contain some of its parts."""
    return (
        "need reports that name one cell of the table of all parts; write ways = "
        f"{parts}, or leave the dummies out"
    )


def _several_named(metric: Any) -> str:
    """Error text where a report names no single value; "" where it does."""
    # PRIVACY: the proof requires that one person's report changes two counts by one.
    if metric.mechanism in (CROWD_LISTED, *CROWD_MEANS):
        return ""
    if metric.mechanism != CROWD_PARTS:
        return (
            "are only for listed values, parts and means, whose reports name one value; leave "
            "them out"
        )
    built: Any = build(CROWD_PARTS, **metric.arguments)
    if built.groups > 1:
        return needs_all_parts(len(built.sizes))
    if built.names_one_cell:
        return ""
    return (
        f"need reports that name one cell; with {built.cells[0]:,} cells and a local epsilon of "
        f"{metric.epsilon:g} a report names several; raise max_local_epsilon, or list fewer values"
    )


def _named_values(metric: Any) -> int:
    """How many values a report may name: those listed, cells, or a mean's steps and its end."""
    if metric.mechanism == CROWD_PARTS:
        return int(build(CROWD_PARTS, **metric.arguments).layout.size)
    return len(metric.values) if metric.values else int(metric.parameters.get("steps", 1)) + 1


def count_noise(metric: Any) -> "CountNoise | None":
    """The law of the dummies that hide a metric's number of reports; None as for `value_noise`."""
    crowd = metric.central
    if crowd is None or crowd.count_epsilon is None:
        return None
    return _count_noise(crowd.count_epsilon, crowd.delta)


@lru_cache(maxsize=256)
def _count_noise(epsilon: float, delta: float) -> "CountNoise":
    from hubbub.sealing.dummy_laws import CountNoise  # noqa: PLC0415 of few crowds

    return CountNoise.least(exp_at_most(epsilon), delta)


def count_conflicts(metric: Any) -> dict[str, str]:
    """What conflicts with a hidden number of reports in a metric with a crowd."""
    crowd = metric.crowd
    if crowd.count_epsilon is None:
        return {}
    # PRIVACY: for other mechanisms a uniform payload is distinguishable from a report.
    if metric.mechanism != CROWD_LISTED:
        message = "is only for listed values: each dummy names one; leave it out"
    elif crowd.rolling:
        message = (
            "cannot be combined with rolling: a crowd that leaves when it is full reveals, "
            "by its time, the arrival of the last report; leave one of them out"
        )
    elif crowd.dummies_each:
        message = (
            "cannot be combined with dummies of devices: one more person adds several "
            "reports, but the noise hides only one; leave one of them out"
        )
    elif metric.breakdown:
        message = (
            "cannot be combined with breakdown, whose cells have separate numbers; leave "
            "one of them out"
        )
    elif crowd.reports + _count_noise(crowd.count_epsilon, crowd.delta).most > _MAX_CROWD:
        message = f"has the crowd wait for more than {_MAX_CROWD:,}; write a smaller crowd"
    else:
        return {}
    return {"count_epsilon": message}
