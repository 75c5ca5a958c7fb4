"""Means, and ranges with the mean of what is in them."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from hubbub.analysis import answer_tiers, shares
from hubbub.mechanisms import AnyMechanism, build
from hubbub.privacy.draws import draw
from tests.calibration.listed import ENDS
from tests.calibration.statement import Counted, Setting, Statement

__all__ = ["SETTINGS"]

MEAN = Statement(
    "95% interval of a mean",
    0.95,
    (*ENDS, "Estimated.mean", "Mean.estimate", "Mean.stderr", "Mean.low", "Mean.high"),
)
BAND = Statement("95% band of a mean's trend", 0.95, ("Point.low", "Point.high", "Point.stderr"))
PEOPLE = 5000
# Each in the middle of a range, so that ranges round nothing.
NUMBERS = [0.5, 2.5, 4.5, 15.5]
HELD = [2000, 1500, 1000, 500]


def _mean(mechanism: AnyMechanism, chance: np.random.Generator) -> Iterator[Counted]:
    answer = answer_tiers([(mechanism, draw(mechanism, NUMBERS, HELD, chance))], None)
    true = float(np.dot(NUMBERS, HELD)) / PEOPLE
    told = answer.mean or answer.values[0]
    yield MEAN, told.low <= true <= told.high, 1
    others = chance.multinomial(PEOPLE, np.array(HELD) / PEOPLE).tolist()
    [point] = shares([(mechanism, draw(mechanism, NUMBERS, others, chance))], [0])
    yield BAND, point.low <= true <= point.high, 1


def _built(name: str, epsilon: float) -> AnyMechanism:
    more = {"buckets": 16} if name in {"wave", "buckets"} else {}
    part = {"sampled": 4} if name == "buckets" else {}
    return build(name, epsilon=epsilon, low=0.0, high=16.0, **more, **part)


SETTINGS: Sequence[Setting] = [
    Setting(
        f"{name} {epsilon:g}, 5,000 reports",
        40 if name == "wave" else 200,  # its smooth shape takes long
        partial(_mean, _built(name, epsilon)),
    )
    for name in ("mean.one_bit", "mean.piecewise", "wave", "buckets")
    for epsilon in (1.0, 4.0)
]
