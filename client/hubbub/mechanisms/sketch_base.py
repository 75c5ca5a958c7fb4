"""What `cms`, `hcms` and `local_hash` share: strings hashed to buckets by one of many functions."""

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Protocol

from hubbub.mechanisms.hashing import STRINGS, encoded, position
from hubbub.mechanisms.mechanism import DomainName
from hubbub.mechanisms.parameter import check_cells, check_whole, whole
from hubbub.mechanisms.pure_protocols import PureMechanism

HASHES: Final = whole(
    "Number of hash functions; a report uses one of them (m_h).", 1, 1 << 16, example=64
)
WIDTH: Final = whole("Number of buckets of each hash function (m_w).", 2, 1 << 16, example=1024)
"""What both say of these parameters."""


class Sketch(PureMechanism[str], Protocol):
    """A mechanism with `hashes` functions (m_h) into `width` buckets (m_w) each."""

    __slots__ = ()

    VALUES: ClassVar[DomainName] = "strings"
    FAMILY: ClassVar[str] = "sketch"

    hashes: int
    width: int

    @property
    def groups(self) -> int:
        return self.hashes

    def check(self, value: Any) -> None:
        encoded(value)

    def positions(self, value: str) -> list[int]:
        """Per function, the bucket of one string."""
        string = encoded(value)
        return [position(string, function, self.width) for function in range(self.hashes)]

    def row(self, value: str) -> Sequence[int]:
        """Per function and bucket, whether the string is in it."""
        return [int(b == bucket) for bucket in self.positions(value) for b in range(self.width)]

    def probes(self) -> Sequence[str]:
        return STRINGS


def check_size(self: Sketch, each: int = 1) -> None:
    """Raises BadParameter unless there are at least two buckets, of `each` cells, but not many."""
    check_whole(self, "hashes", "width")
    check_cells(self, "width", "hashes", each=each)
