"""Hadamard response: one index, and a transform in place of a vector. For very many values.

Idea: value v stands for row v+1 of a Hadamard matrix, whose entries are +1 for half of the columns.
    Send a column where the row is +1 with probability `keep`, else one where it is -1, uniformly.
    Any two rows agree in exactly half of the columns, so another value is supported half the time.
Guarantee: log(keep / (1-keep)) <= epsilon, keep = e/(e+1) rounded down.
Sends: an index in [0, K), K = 2^ceil(log2(d+1)): 3 bytes for a million values.
Estimator and variance: pure with p = keep, q = 1/2: n (e+1)^2/(e-1)^2 for rare values, optimal for
    epsilon <= 1; for larger epsilon prefer `projective`. One transform of size K reads all values.
Source: Acharya, Sun, Zhang (AISTATS 2019), the scheme for high privacy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen, set_derived
from hubbub.mechanisms import pure_protocols
from hubbub.mechanisms.layout import Estimates, OneHot, Totals
from hubbub.mechanisms.probability import Probability, keep_at_most, log_at_least
from hubbub.mechanisms.random_bits import BitSource


def negative(row: int, column: int) -> bool:
    """Whether an entry of H is -1: row and column share an odd number of binary ones."""
    return (row & column).bit_count() & 1 == 1


@frozen()
class WalshHadamard:
    """The Walsh-Hadamard transform, by which `hadamard` and `hcms` read their totals.

    It sums a vector over the +1 entries of each row of H, of a power of two `size`.
    """

    size: int

    def __post_init__(self) -> None:
        if self.size < 1 or self.size & self.size - 1:
            raise BadParameter(f"size {self.size} is not a power of two")

    def apply(self, vector: Sequence[int]) -> list[int]:
        """The product of H with a vector of `size` integers, in size log2(size) additions."""
        answer = list(vector)
        step = 1
        while step < self.size:
            for start in range(0, self.size, 2 * step):
                for low in range(start, start + step):
                    upper, other = answer[low], answer[low + step]
                    answer[low], answer[low + step] = upper + other, upper - other
            step *= 2
        return answer


@frozen()
class HadamardResponse(pure_protocols.ListedMechanism):
    """Hadamard response over [0, categories)."""

    epsilon: float
    categories: int
    keep: Probability = field(init=False, repr=False)
    channel: pure_protocols.Pure = field(init=False, repr=False)
    transform: WalshHadamard = field(init=False, repr=False)

    NAME = "hadamard"
    VERSION = 1
    SMALL = (
        {"epsilon": 0.1, "categories": 2},
        {"epsilon": 1.0, "categories": 7},
        {"epsilon": 3.0, "categories": 9},
    )

    def __post_init__(self) -> None:
        pure_protocols.check_categories(self.categories)
        keep = keep_at_most(self.epsilon)
        transform = WalshHadamard(1 << self.categories.bit_length())
        channel = pure_protocols.Pure(keep.exact, Fraction(1, 2))
        set_derived(self, keep=keep, channel=channel, transform=transform)

    @property
    def layout(self) -> OneHot:
        return OneHot(self.transform.size)

    def privacy_loss(self) -> float:
        return log_at_least(self.keep.exact / self.keep.complement.exact)

    def likelihood(self, value: int, cells: Mapping[int, int]) -> Fraction:
        column = next(iter(cells))
        return (self.keep.complement if negative(value + 1, column) else self.keep).exact

    def randomize(self, value: int, source: BitSource) -> bytes:
        self.check(value)
        row = value + 1  # row 0 is +1 everywhere and carries no information
        is_true = source.chance(self.keep)
        # All bits of the column but one are free; the one settles on which half it falls.
        lowest_bit = row & -row
        free = source.below(self.transform.size // 2)
        column = (free & -lowest_bit) << 1 | free & lowest_bit - 1
        if negative(row, column) == is_true:
            column ^= lowest_bit
        return self.layout.encode(column)

    def estimate(self, totals: Totals) -> Estimates:
        totals.check(self.layout)
        spectrum = self.transform.apply(totals.cells)[1 : self.categories + 1]
        return self.channel.estimates([(totals.reports + x) // 2 for x in spectrum], totals.reports)
