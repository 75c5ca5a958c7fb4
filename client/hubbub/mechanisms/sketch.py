"""Functions shared by `cms` and `hcms`, which hash strings to buckets by one of many functions.

A mechanism takes these functions into its class body as they stand, as those of pure.py are.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from hubbub.errors import BadParameter
from hubbub.mechanisms.hashing import encoded, position
from hubbub.mechanisms.parameter import check_whole, whole
from hubbub.mechanisms.pure import Pure

# More cells cost reads from the store at every query and reduce the error only slightly.
MAX_CELLS: Final = 1 << 22

HASHES: Final = whole(
    "Number of hash functions; a report uses one of them (m_h).", 1, 1 << 16, example=64
)
WIDTH: Final = whole("Number of buckets of each hash function (m_w).", 2, 1 << 16, example=1024)
"""What both say of these parameters."""


class SketchMechanism(Protocol):
    """A mechanism with `hashes` functions into `width` buckets."""

    @property
    def hashes(self) -> int:
        """The number of hash functions (m_h)."""
        ...

    @property
    def width(self) -> int:
        """The number of buckets of each (m_w)."""
        ...

    @property
    def channel(self) -> Pure:
        """The chances that a report supports a bucket of its function."""
        ...


def check_size(self: SketchMechanism, max_cells: int) -> None:
    """Raises BadParameter unless there are at least two buckets, and at most `max_cells` cells."""
    check_whole(self, "hashes", "width")
    if not self.hashes * self.width <= max_cells:
        raise BadParameter(
            f"width {self.width} or hashes {self.hashes} is too large: together above {max_cells}"
        )


def check(self: SketchMechanism, value: Any) -> None:  # noqa: ARG001 what an app passed
    """Raises ValueOutOfDomain unless `value` is a string. Never shows it."""
    encoded(value)


def positions(self: SketchMechanism, value: str) -> list[int]:
    """Per function, the bucket of one string."""
    string = encoded(value)
    return [position(string, function, self.width) for function in range(self.hashes)]


def row(self: SketchMechanism, value: str) -> Sequence[int]:
    """Per function and bucket, whether the string is in it."""
    return [int(b == bucket) for bucket in positions(self, value) for b in range(self.width)]


def probes(self: SketchMechanism) -> Sequence[str]:  # noqa: ARG001 the same for all
    """Strings of every kind."""
    return ("", "b", "e", "example.org", "naïve", "日本")
