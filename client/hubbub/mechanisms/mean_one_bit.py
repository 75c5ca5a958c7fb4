"""One-bit mean: the average of a number, from one bit a report.

Idea: send 1 with a chance that grows with the number, from `lie` at low to `keep` at high.
Guarantee: log(keep / lie) <= epsilon, keep = e/(e+1) rounded down, lie = 1 - keep.
Sends: 1 byte, 0 or 1.
Estimator and variance: with C ones of n, the sum of the numbers' places in the range (0 at low, 1
    at high) is (C - n lie)/(keep - lie). Variance: n P(1-P)/(keep - lie)^2 with P = the chance of a
    1; exact if all hold one number, and an upper bound otherwise (P(1-P) is concave).
Source: 1BitMean of Ding, Kulkarni, Yekhanin (NeurIPS 2017), section 2; Duchi, Jordan, Wainwright
    (2013).
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import number_range
from hubbub.mechanisms.layout import Estimates, OneHot, Totals
from hubbub.mechanisms.number_range import Range
from hubbub.mechanisms.probability import Probability, keep_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource


@frozen()
class OneBitMean(number_range.OfMean):
    """The mean of numbers in [low, high] from one bit each."""

    epsilon: float
    low: float = field(metadata=number_range.LOW)
    high: float = field(metadata=number_range.HIGH)
    keep: Probability = field(init=False, repr=False)
    range: Range = field(init=False, repr=False)

    NAME = "mean.one_bit"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "low": 0, "high": 1},
        {"epsilon": 1.0, "low": -2.5, "high": 7},
        {"epsilon": 3.0, "low": 0, "high": 3600},
    )

    def __post_init__(self) -> None:
        keep = keep_at_most(self.epsilon)
        set_derived(self, range=Range(self.low, self.high), keep=keep)

    @property
    def layout(self) -> OneHot:
        return OneHot(2)

    @property
    def contributions(self) -> Sequence[float]:
        """What a report of 0, and one of 1, adds to the estimate."""
        lie = self.keep.complement.exact
        return [float((bit - lie) / self._gap) for bit in range(2)]

    def privacy_loss(self) -> float:
        return log_at_least(self.keep.exact / self.keep.complement.exact)

    def total_variation(self) -> Fraction:
        return self._gap

    def randomize(self, value: float, source: BitSource) -> bytes:
        return self.layout.encode(source.chance(self._chance_of_one(value)))

    def likelihood(self, value: float, cells: Mapping[int, int]) -> Fraction:
        chance = self._chance_of_one(value).exact
        return chance if 1 in cells else 1 - chance

    def estimate(self, totals: Totals) -> Estimates:
        """One estimate: the sum over all reports of the number's place in the range, in [0, 1]."""
        totals.check(self.layout)
        lie, gap = self.keep.complement.exact, self._gap
        one_count = totals.cells[1] - Fraction(totals.dummies, 2)
        value = float((one_count - totals.reports * lie) / gap)
        clipped = min(max(value, 0.0), totals.reports)
        variance = self.variance(clipped, totals.reports)
        variance += number_range.dummies_variance(self.contributions, totals, clipped)
        return Estimates((value,), (variance,), totals.reports)

    def variance(self, true: float, reports: int) -> float:
        if not reports:
            return 0.0
        chance = self.keep.complement.exact + Fraction(true) / reports * self._gap
        return float(reports * chance * (1 - chance) / self._gap**2)

    def _chance_of_one(self, value: float) -> Probability:
        """The chance of sending 1."""
        lie = self.keep.complement.threshold
        return Probability(lie + self.range.scaled(value, self.keep.threshold - lie))

    @property
    def _gap(self) -> Fraction:
        return self.keep.exact - self.keep.complement.exact
