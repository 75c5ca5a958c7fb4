"""Layouts: the payload formats, each with the cells that a payload adds to.

The aggregator has one numpy fold per layout, tested to equal `cells`. Bytes may be hostile: a
payload that no honest client sends is refused with BadPayload, never clamped.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from hubbub.errors import BadParameter, BadPayload, ShapeMismatch
from hubbub.fields.frozen import frozen


@frozen(kw_only=True)
class Totals:
    """The sum of many payloads.

    Args:
        cells: one whole number per cell.
        dummies: payloads beside the reports, with any value equally likely.
        dummies_variance: variance of their number, if a further dummy means one report fewer (a
            crowd of which only a part has arrived).
        beside_variance: variance of their number, independent of the reports (devices made them, or
            they hide the number of reports).
        value_law: probabilities of 0, 1, 2, ... dummies of one value, if each value has its own
            number of dummies beside those in `dummies`.
        sum_variance: variance of the sum of the dummies' cells, if their number is fixed, beside
            which of them arrived.
        sums: number of epochs whose sums that mostly is, each with a law of its own.
        at_ends: number of dummies of the first and the last cell together, which then are beside
            those of each value.
    """

    cells: Sequence[int]
    reports: int
    dummies: int = 0
    dummies_variance: float = 0.0
    beside_variance: float = 0.0
    value_law: Sequence[float] = ()
    sum_variance: float = 0.0
    sums: int = 0
    at_ends: int = 0

    @property
    def has_dummies(self) -> bool:
        """Whether dummies, or an uncertain number of them, are among the payloads."""
        uncertain = self.dummies_variance or self.beside_variance or self.value_law
        return bool(self.dummies or uncertain)

    def evenly(self) -> float:
        """The mean number of dummies that hold any value with equal chance."""
        named_dummies = len(self.cells) * self._mean() + self.at_ends if self.value_law else 0
        return self.dummies - named_dummies

    def spread(self) -> float:
        """The variance of the number of dummies of one value, beside its share of all dummies.

        Where dummies of the first and the last cell fix the sum, the variance is theirs, which is
        the largest.
        """
        share = 1 / max(len(self.cells), 1)
        fixing = 1 + len(self.cells) / 3 if self.at_ends else 1
        return (self._value_variance() * fixing + self.evenly() * share) * (1 - share)

    def weighted_variance(self, weights: Sequence[float]) -> float:
        """The variance of the sum over all dummies of the weight of their value.

        Where the number of dummies is fixed, weights must rise evenly.
        """
        if self.at_ends:
            step = (weights[-1] - weights[0]) / (len(weights) - 1)
            arriving = sum(w**2 * n for w, n in zip(weights, self.by_cell(), strict=True))
            return self.sum_variance * step**2 + self.dummies_variance * arriving / self.dummies
        mean, squares = (sum(w**power for w in weights) / len(weights) for power in (1, 2))
        per_value = self._value_variance() * len(weights) * squares
        return per_value + self.evenly() * (squares - mean**2)

    def by_cell(self) -> list[float]:
        """The mean number of dummies of each cell."""
        even_share = (self.dummies - self.at_ends) / max(len(self.cells), 1)
        numbers = [even_share] * len(self.cells)
        for end in (0, -1):
            numbers[end] += self.at_ends / 2
        return numbers

    def _mean(self) -> float:
        return sum(p * number for number, p in enumerate(self.value_law))

    def _value_variance(self) -> float:
        """The variance of the number of dummies of one value under `value_law`; 0 without one."""
        mean = self._mean()
        return sum(p * (number - mean) ** 2 for number, p in enumerate(self.value_law))

    def check(self, layout: "Layout") -> None:
        """Raises ShapeMismatch unless these totals have the layout's shape."""
        if len(self.cells) != layout.size:
            raise ShapeMismatch(f"totals of {len(self.cells)} cells, the layout has {layout.size}")
        if not self.reports >= 0:
            raise ShapeMismatch(f"reports {self.reports} is below 0")
        if self.dummies and not isinstance(layout, OneHot):
            raise ShapeMismatch(
                "reports of this layout have no single value, but each dummy has one"
            )


@frozen()
class Estimates:
    """Unbiased estimates, in reports, and the variance of each, in reports squared.

    A variance is the exact formula at the estimate clipped to [0, reports].
    """

    values: tuple[float, ...]
    variances: tuple[float, ...]
    reports: int


def concat(groups: Iterable[Estimates], reports: int) -> Estimates:
    """The estimates of all groups, one group after the other; `reports` are those of all."""
    estimates = list(groups)
    return Estimates(
        tuple(value for estimate in estimates for value in estimate.values),
        tuple(variance for estimate in estimates for variance in estimate.variances),
        reports,
    )


class Layout(Protocol):
    """A payload format: constant length, and the cells that a payload adds to."""

    @property
    def size(self) -> int:
        """The number of cells of the totals."""

    @property
    def payload_bytes(self) -> int:
        """The length of every payload, in bytes."""

    def cells(self, payload: bytes) -> Mapping[int, int]:
        """The sparse vector that `payload` adds: {cell: amount}, ascending. Raises BadPayload."""


def tally(layout: Layout, payloads: Iterable[bytes]) -> Totals:
    """Adds payloads up one by one: the reference for every faster fold."""
    sums = [0] * layout.size
    reports = 0
    for payload in payloads:
        for cell, amount in layout.cells(payload).items():
            sums[cell] += amount
        reports += 1
    return Totals(cells=sums, reports=reports)


@frozen()
class OneHot:
    """One index in [0, size), little-endian in as few whole bytes as hold it."""

    size: int

    @property
    def payload_bytes(self) -> int:
        return _index_bytes(self.size)

    def encode(self, index: int) -> bytes:
        """The payload of one index."""
        return index.to_bytes(self.payload_bytes, "little")

    def cells(self, payload: bytes) -> dict[int, int]:
        _check_length(payload, self.payload_bytes)
        index = int.from_bytes(payload, "little")
        if not index < self.size:
            raise BadPayload(f"index is outside [0, {self.size})")
        return {index: 1}


@frozen()
class BitVector:
    """`size` bits: bit i is bit i % 8 (1 << i % 8) of byte i // 8; the bits left over are 0."""

    size: int

    @property
    def payload_bytes(self) -> int:
        return (self.size + 7) // 8

    def encode(self, bits: int) -> bytes:
        """The payload of a packed vector: bit i of the int is bit i of the payload."""
        return bits.to_bytes(self.payload_bytes, "little")

    def cells(self, payload: bytes) -> dict[int, int]:
        _check_length(payload, self.payload_bytes)
        bits = int.from_bytes(payload, "little")
        if bits >> self.size:
            raise BadPayload(f"padding after bit {self.size - 1} is not zero")
        return {cell: 1 for cell in range(self.size) if bits >> cell & 1}


@frozen()
class Subset:
    """A bit vector as in BitVector, of which exactly `ones` bits are 1."""

    size: int
    ones: int

    @property
    def payload_bytes(self) -> int:
        return BitVector(self.size).payload_bytes

    def encode(self, bits: int) -> bytes:
        """The payload of a packed vector with the right number of ones."""
        return BitVector(self.size).encode(bits)

    def cells(self, payload: bytes) -> dict[int, int]:
        cells = BitVector(self.size).cells(payload)
        if len(cells) != self.ones:
            raise BadPayload(f"{len(cells)} bits are 1, {self.ones} expected")
        return cells


@frozen()
class Samples:
    """Yes or no about `sampled` of `buckets` buckets: indices 2 bucket + answer, buckets ascending.

    Little-endian, each in as few whole bytes as hold 2 buckets. Cells: per bucket its noes, then
    its yeses; together they are how many were asked about it.
    """

    buckets: int
    sampled: int

    @property
    def size(self) -> int:
        return 2 * self.buckets

    @property
    def payload_bytes(self) -> int:
        return self.sampled * _index_bytes(self.size)

    def encode(self, answers: Mapping[int, bool]) -> bytes:
        """The payload of an answer per sampled bucket, buckets ascending."""
        step = 8 * _index_bytes(self.size)
        number = shift = 0
        for bucket, yes in answers.items():
            number |= (2 * bucket + yes) << shift
            shift += step
        return number.to_bytes(shift // 8, "little")

    def cells(self, payload: bytes) -> dict[int, int]:
        _check_length(payload, self.payload_bytes)
        one_hot = OneHot(self.size)
        width = one_hot.payload_bytes
        cells: dict[int, int] = {}
        last = -1
        for start in range(0, len(payload), width):
            [cell] = one_hot.cells(payload[start : start + width])
            if not cell // 2 > last:
                raise BadPayload("buckets do not ascend")
            last = cell // 2
            cells[cell] = 1
        return cells


@frozen()
class CohortBits:
    """A cohort (two bytes, little-endian), then a bit vector as in BitVector.

    Cells: per cohort its number of reports, then its bit counts. Cell of cohort c's count:
    c * (bits + 1); of its bit i: c * (bits + 1) + 1 + i.
    """

    cohorts: int
    bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.cohorts <= 1 << 16:
            raise BadParameter(f"cohorts {self.cohorts} is outside [1, 65536]")

    @property
    def size(self) -> int:
        return self.cohorts * (self.bits + 1)

    @property
    def payload_bytes(self) -> int:
        return 2 + BitVector(self.bits).payload_bytes

    def cell(self, cohort: int, bit: int) -> int:
        """The cell that counts a cohort's bit."""
        return cohort * (self.bits + 1) + 1 + bit

    def cohort(self, cells: Mapping[int, int]) -> int:
        """The cohort of the payload that adds to these cells."""
        return min(cells) // (self.bits + 1)

    def encode(self, cohort: int, bits: int) -> bytes:
        """The payload of one cohort's packed vector."""
        return cohort.to_bytes(2, "little") + BitVector(self.bits).encode(bits)

    def cells(self, payload: bytes) -> dict[int, int]:
        _check_length(payload, self.payload_bytes)
        cohort = int.from_bytes(payload[:2], "little")
        if not cohort < self.cohorts:
            raise BadPayload(f"cohort is outside [0, {self.cohorts})")
        start = cohort * (self.bits + 1)
        vector = BitVector(self.bits).cells(payload[2:])
        return {start: 1} | {start + 1 + bit: amount for bit, amount in vector.items()}


def _index_bytes(size: int) -> int:
    """The number of bytes that hold an index in [0, size)."""
    return max(1, ((size - 1).bit_length() + 7) // 8)


def _check_length(payload: bytes, expected: int) -> None:
    if len(payload) != expected:
        raise BadPayload(f"payload of {len(payload)} bytes, {expected} expected")
