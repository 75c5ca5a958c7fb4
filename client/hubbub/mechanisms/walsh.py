"""The Walsh-Hadamard transform, by which `hadamard` and `hcms` read their totals.

H[r, y] is +1 where r and y share an even number of binary ones, else -1.
"""

from collections.abc import Sequence

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen


def negative(row: int, column: int) -> bool:
    """Whether the entry of the Hadamard matrix is -1."""
    return (row & column).bit_count() & 1 == 1


@frozen()
class WalshHadamard:
    """Sums of a vector over the +1 entries of each row of H, of a power of two `size`."""

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
