"""Square Wave, in discrete form: the distribution of a number over a range.

Idea: the range is cut into buckets; the report is a place on a slightly longer line, likely in a
    window around the number's bucket. Near buckets are confused, far ones hardly ever.
Guarantee: log(near / far) <= epsilon, the chances of one place inside and outside the window.
Sends: an index in [0, buckets + width - 1), width = 2 b buckets, b = (epsilon e - e + 1) /
    (2 e (e - 1 - epsilon)): 2 bytes.
Estimator and variance: what is estimated exactly is, per place, how many reports hold a number
    whose window covers it: pure with p = near, q = far. From windows to buckets: least squares
    (unbiased), or maximum likelihood with smoothing, in analysis.
Source: Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric (SIGMOD 2020), section 5; the discrete form is ours
    (docs/decisions/0212-mechanisms-and-families.md).
"""

from collections.abc import Sequence
from dataclasses import field

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import number_range, pure_protocols
from hubbub.mechanisms.layout import Estimates, Totals
from hubbub.mechanisms.mechanism import check_whole
from hubbub.mechanisms.near_outcomes import Window, Windowed
from hubbub.mechanisms.number_range import Range
from hubbub.mechanisms.probability import exp_at_most


@frozen()
class SquareWave(Windowed, number_range.IndexInBuckets):
    """Square Wave over [low, high] in `buckets` equal buckets."""

    epsilon: float
    low: float = field(metadata=number_range.LOW)
    high: float = field(metadata=number_range.HIGH)
    buckets: int = field(metadata=number_range.FINE_BUCKETS)
    range: Range = field(init=False, repr=False)
    window: Window = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)

    NAME = "wave"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "low": 0, "high": 1, "buckets": 2},
        {"epsilon": 1.0, "low": -2.5, "high": 7, "buckets": 8},
        {"epsilon": 3.0, "low": 0, "high": 3600, "buckets": 16},
    )

    def __post_init__(self) -> None:
        check_whole(self, "buckets")
        e = float(exp_at_most(self.epsilon))
        wide = (self.epsilon * e - e + 1) / (e * (e - 1 - self.epsilon))  # 2b, of the range
        width = min(max(1, round(wide * self.buckets)), self.buckets)
        window = Window(self.epsilon, self.buckets, width)
        channel = pure_protocols.Pure(window.near, window.far)
        set_derived(self, range=Range(self.low, self.high), window=window, channel=channel)

    def step(self, value: float) -> tuple[int, int]:
        return self.range.bucket(value, self.buckets), 0

    def chances(self, bucket: int) -> list[float]:
        line = [float(self.window.far)] * self.layout.size
        line[bucket : bucket + self.window.width] = [float(self.window.near)] * self.window.width
        return line

    def row(self, value: float) -> Sequence[int]:
        start = self.range.bucket(value, self.buckets)
        covered = range(start, start + self.window.width)
        return [int(place in covered) for place in range(self.layout.size)]

    def estimate(self, totals: Totals) -> Estimates:
        """Per place: how many reports hold a number whose window covers it."""
        totals.check(self.layout)
        return self.channel.estimates(totals.cells, totals.reports)

    def variance(self, true: float, reports: int) -> float:
        return self.channel.variance(true, reports)
