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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Final

from hubbub.mechanisms import pure, ranges
from hubbub.mechanisms.bits import BitSource
from hubbub.mechanisms.layout import Estimates, OneHot, Totals
from hubbub.mechanisms.mechanism import DomainName, FamilyName
from hubbub.mechanisms.parameter import check_whole, whole
from hubbub.mechanisms.probability import exp_at_most
from hubbub.mechanisms.ranges import Range
from hubbub.mechanisms.window import Window

# The finest resolution of the paper; the estimator takes time that grows with its cube.
MAX_WAVE_BUCKETS: Final = 1024


@dataclass(frozen=True, slots=True)
class SquareWave:
    """Square Wave over [low, high] in `buckets` equal buckets."""

    epsilon: float
    low: float = field(metadata=ranges.LOW)
    high: float = field(metadata=ranges.HIGH)
    buckets: int = field(
        metadata=whole(
            "Number of equal parts of the range from low to high.", 2, MAX_WAVE_BUCKETS, example=12
        )
    )
    range: Range = field(init=False, repr=False)
    window: Window = field(init=False, repr=False)
    channel: pure.Pure = field(init=False, repr=False)

    NAME: ClassVar[str] = "wave"
    VERSION: ClassVar[int] = 1
    VALUES: ClassVar[DomainName] = "numbers"
    FAMILY: ClassVar[FamilyName] = "ranges"
    SMALL: ClassVar[tuple[Mapping[str, Any], ...]] = (
        {"epsilon": 0.1, "low": 0, "high": 1, "buckets": 2},
        {"epsilon": 1.0, "low": -2.5, "high": 7, "buckets": 8},
        {"epsilon": 3.0, "low": 0, "high": 3600, "buckets": 16},
    )

    groups: ClassVar[int] = 1
    check = ranges.check
    probes = ranges.middles
    edges = ranges.edges
    variance = pure.variance

    def __post_init__(self) -> None:
        check_whole(self, "buckets")
        e = float(exp_at_most(self.epsilon))
        wide = (self.epsilon * e - e + 1) / (e * (e - 1 - self.epsilon))  # 2b, of the range
        width = min(max(1, round(wide * self.buckets)), self.buckets)
        window = Window(self.epsilon, self.buckets, width)
        object.__setattr__(self, "range", Range(self.low, self.high))
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "channel", pure.Pure(window.near, window.far))

    @property
    def layout(self) -> OneHot:
        return self.window.layout

    def privacy_loss(self) -> float:
        return self.window.privacy_loss()

    def total_variation(self) -> Fraction:
        return self.window.total_variation()

    def randomize(self, value: float, source: BitSource) -> bytes:
        return self.window.draw(self.range.bucket(value, self.buckets), source)

    def likelihood(self, value: float, cells: Mapping[int, int]) -> Fraction:
        start = self.range.bucket(value, self.buckets)
        return self.window.chance(start, next(iter(cells)))

    def row(self, value: float) -> Sequence[int]:
        start = self.range.bucket(value, self.buckets)
        covered = range(start, start + self.window.width)
        return [int(place in covered) for place in range(self.layout.size)]

    def estimate(self, totals: Totals) -> Estimates:
        """Per place: how many reports hold a number whose window covers it."""
        totals.check(self.layout)
        return self.channel.estimates(totals.cells, totals.reports)
