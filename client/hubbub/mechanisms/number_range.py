"""A range of numbers, for mechanisms over numbers."""

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Final, Protocol

from hubbub.errors import BadParameter, ValueOutOfDomain
from hubbub.fields.frozen import frozen, set_derived
from hubbub.fields.rules import has_variance, is_number
from hubbub.mechanisms.layout import Totals
from hubbub.mechanisms.mechanism import DomainName, Mechanism, number, whole

# Estimates are one number a bucket; finer than this is a number, not a bucket.
MAX_BUCKETS: Final = 4096
# The finest resolution of Square Wave's paper; the estimator takes time that grows with its cube.
MAX_FINE_BUCKETS: Final = 1024

LOW: Final = number("The smallest number that can be reported.", example=0)
HIGH: Final = number("The largest number that can be reported, above `low`.", example=24)
BUCKETS: Final = whole(
    "Number of buckets, equally wide, from low to high.", 2, MAX_BUCKETS, example=12
)
FINE_BUCKETS: Final = whole(
    "Number of buckets, equally wide, from low to high.", 2, MAX_FINE_BUCKETS, example=12
)
"""What every mechanism over a range says of these parameters."""

PLACES: Final = tuple(place / 32 for place in range(33))
"""Places in a range: the largest error of a mean over these is within 1% of the largest of all."""


@frozen()
class Range:
    """The numbers in [low, high]."""

    low: float
    high: float
    _wide: tuple[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ends = (self.low, self.high)
        if not (all(map(is_number, ends)) and self.low < self.high):
            raise BadParameter(
                f"low {self.low} and high {self.high} are not a range: low must be below high"
            )
        if not has_variance(*ends):
            raise BadParameter(
                f"low {self.low} and high {self.high} are more than floats can square: they must "
                "be within 1e100, and 1e-100 apart"
            )
        width = Fraction(self.high) - Fraction(self.low)
        set_derived(self, _wide=width.as_integer_ratio())

    def check(self, value: Any) -> None:
        """Raises ValueOutOfDomain unless `value` is a number in the range. Never shows it."""
        if not (is_number(value) and self.low <= value <= self.high):
            raise ValueOutOfDomain(f"value is not a number in [{self.low}, {self.high}]")

    def share(self, value: Any) -> Fraction:
        """How far up the range the value is, exactly: 0 at low, 1 at high."""
        self.check(value)
        return (Fraction(value) - Fraction(self.low)) / (Fraction(self.high) - Fraction(self.low))

    def scaled(self, value: Any, units: int) -> int:
        """The share in `units`, rounded down: floor(share * units), without a Fraction."""
        self.check(value)
        numerator, denominator = value.as_integer_ratio()
        low, low_denominator = self.low.as_integer_ratio()
        width, width_denominator = self._wide
        offset = (numerator * low_denominator - low * denominator) * width_denominator * units
        return int(offset // (denominator * low_denominator * width))

    def bucket(self, value: Any, buckets: int) -> int:
        """The index of the value's bucket among equal ones; the last one includes `high`."""
        return min(self.scaled(value, buckets), buckets - 1)

    def edges(self, buckets: int) -> list[float]:
        """The start of each bucket, and the end of the last one."""
        low, width = Fraction(self.low), Fraction(*self._wide)
        return [float(low + width * i / buckets) for i in range(buckets + 1)]


class OverRange(Mechanism[float], Protocol):
    """A mechanism over the numbers of a range."""

    __slots__ = ()

    VALUES: ClassVar[DomainName] = "numbers"

    @property
    def range(self) -> Range:
        """The range."""

    def check(self, value: Any) -> None:
        self.range.check(value)


class OfMean(OverRange, Protocol):
    """A mechanism that estimates the sum of the numbers' places in the range, in [0, 1]."""

    __slots__ = ()

    FAMILY: ClassVar[str] = "mean"

    def row(self, value: float) -> Sequence[Fraction]:
        return [self.range.share(value)]

    def probes(self) -> Sequence[float]:
        """Both ends, the middle, and a place between two steps."""
        low, high = self.range.low, self.range.high
        return (low, high, (low + high) / 2, low + (high - low) / 7)


class InBuckets(OverRange, Protocol):
    """A mechanism over the equal buckets of a range."""

    __slots__ = ()

    FAMILY: ClassVar[str] = "ranges"

    buckets: int

    def edges(self) -> Sequence[float]:
        """The start of each bucket, and the end of the last one."""
        return self.range.edges(self.buckets)

    def row(self, value: float) -> Sequence[int]:
        true_bucket = self.range.bucket(value, self.buckets)
        return [int(bucket == true_bucket) for bucket in range(self.buckets)]

    def probes(self) -> Sequence[float]:
        """The middle of every bucket."""
        return [(low + high) / 2 for low, high in pairwise(self.edges())]


class IndexInBuckets(InBuckets, Protocol):
    """A mechanism over buckets whose report is one index, more or less likely for each bucket."""

    __slots__ = ()

    epsilon: float

    def chances(self, bucket: int) -> list[float]:
        """The probability of each index as the report of a number in this bucket."""


def dummies_variance(contributions: Sequence[float], totals: Totals, places: float) -> float:
    """The variance that dummies add to the mean, times the squared number of reports.

    A further dummy counts as a report of the mean, whose outcome adds one of the `contributions` to
    the estimate; `places` is the estimated sum of the numbers' places, in [0, reports].
    """
    mean = places / max(totals.reports, 1)
    return totals.weighted_variance([share - mean for share in contributions])
