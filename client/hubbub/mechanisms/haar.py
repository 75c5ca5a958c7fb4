"""Haar response: the distribution of a number over a range, for percentiles of many reports.

Idea: the range is halved again and again. A report is of one level, drawn evenly: in which of its
    intervals the number is, and in which half, as the sign of a Haar coefficient. It is sent by
    Hadamard response: a row, and the sign there, which is true with probability `keep`. A share
    below a number needs one coefficient a level, so its error hardly grows with the buckets.
Guarantee: log(keep / (1-keep)) <= epsilon, keep = e/(e+1) rounded down.
Sends: an index in [0, 2 (D-1)), D = 2^ceil(log2 buckets): a pair of signs for each row.
Estimator and variance: linear and unbiased. With h = log2 D levels and g = 2 keep - 1, of a bucket
    that t of n reports hold: n [h (D^2-1) / (3 D^2 g^2) - 1/D^2] + t (2/D - 1).
Source: Cormode, Kulkarni, Srivastava (VLDB 2019), section 4.6, HaarHRR.
"""

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction

from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import number_range
from hubbub.mechanisms.hadamard import WalshHadamard, negative
from hubbub.mechanisms.layout import Estimates, OneHot, Totals
from hubbub.mechanisms.mechanism import check_whole
from hubbub.mechanisms.number_range import Range
from hubbub.mechanisms.probability import Probability, keep_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource


@frozen()
class HaarResponse(number_range.IndexInBuckets):
    """Haar response over [low, high] in `buckets` equal buckets."""

    epsilon: float
    low: float = field(metadata=number_range.LOW)
    high: float = field(metadata=number_range.HIGH)
    buckets: int = field(metadata=number_range.FINE_BUCKETS)
    range: Range = field(init=False, repr=False)
    levels: int = field(init=False, repr=False)
    keep: Probability = field(init=False, repr=False)

    NAME = "haar"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "low": 0, "high": 1, "buckets": 2},
        {"epsilon": 1.0, "low": -2.5, "high": 7, "buckets": 8},
        {"epsilon": 3.0, "low": 0, "high": 3600, "buckets": 11},
    )

    def __post_init__(self) -> None:
        check_whole(self, "buckets")
        keep = keep_at_most(self.epsilon)
        levels = (self.buckets - 1).bit_length()
        set_derived(self, range=Range(self.low, self.high), levels=levels, keep=keep)

    @property
    def layout(self) -> OneHot:
        return OneHot(2 * ((1 << self.levels) - 1))

    @property
    def lie(self) -> Probability:
        """The chance that the sign is the other one."""
        return self.keep.complement

    def privacy_loss(self) -> float:
        return log_at_least(self.keep.exact / self.lie.exact)

    def total_variation(self) -> Fraction:
        """Of numbers in both halves of the range: all rows of one level, half of the others'."""
        return (self.keep.exact - self.lie.exact) * Fraction(self.levels + 1, 2 * self.levels)

    def randomize(self, value: float, source: BitSource) -> bytes:
        bucket = self.range.bucket(value, self.buckets)
        level = source.below(self.levels)
        row = source.below(1 << level)
        is_minus = self._is_minus(bucket, level, row) == source.chance(self.keep)
        return self.layout.encode(2 * ((1 << level) - 1 + row) + is_minus)

    def likelihood(self, value: float, cells: Mapping[int, int]) -> Fraction:
        pair, minus = divmod(next(iter(cells)), 2)
        level = (pair + 1).bit_length() - 1
        row = pair + 1 - (1 << level)
        is_true = self._is_minus(self.range.bucket(value, self.buckets), level, row) == bool(minus)
        return (self.keep if is_true else self.lie).exact / (self.levels << level)

    def chances(self, bucket: int) -> list[float]:
        keep, lie = float(self.keep.exact), float(self.lie.exact)
        answer = list[float]()
        for level in range(self.levels):
            interval, is_upper = self._half(bucket, level)
            true, false = keep / (self.levels << level), lie / (self.levels << level)
            for row in range(1 << level):
                is_plus = is_upper == negative(row, interval)
                answer += (true, false) if is_plus else (false, true)
        return answer

    def estimate(self, totals: Totals) -> Estimates:
        """Reports in each bucket. Raises ShapeMismatch for totals of another shape."""
        totals.check(self.layout)
        size, gap = 1 << self.levels, float(2 * self.keep.exact - 1)
        values = [totals.reports / size] * self.buckets
        for level in range(self.levels):
            start = 2 * ((1 << level) - 1)
            pairs = totals.cells[start : start + (2 << level)]
            signs = [plus - minus for plus, minus in zip(pairs[::2], pairs[1::2], strict=True)]
            sums = WalshHadamard(1 << level).apply(signs)
            weight = self.levels * (1 << level) / (size * gap)
            for bucket in range(self.buckets):
                interval, is_upper = self._half(bucket, level)
                values[bucket] += weight * (-sums[interval] if is_upper else sums[interval])
        variances = tuple(
            self.variance(min(max(value, 0.0), totals.reports), totals.reports) for value in values
        )
        return Estimates(tuple(values), variances, totals.reports)

    def variance(self, true: float, reports: int) -> float:
        size, gap = 1 << self.levels, float(2 * self.keep.exact - 1)
        noise = self.levels * (size**2 - 1) / (3 * size**2 * gap**2) - size**-2
        return reports * noise + true * (2 / size - 1)

    def _half(self, bucket: int, level: int) -> tuple[int, bool]:
        """The interval of a level that has the bucket, and whether it is in the upper half."""
        half_index = bucket >> self.levels - level - 1
        return half_index >> 1, half_index & 1 == 1

    def _is_minus(self, bucket: int, level: int, row: int) -> bool:
        """The true sign in a row: of the half, times the entry of the Hadamard matrix."""
        interval, is_upper = self._half(bucket, level)
        return is_upper != negative(row, interval)
