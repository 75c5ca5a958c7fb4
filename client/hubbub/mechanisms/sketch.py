"""What `cms` and `hcms` share: strings hashed by one of many functions to one of many buckets.

A mechanism takes these functions into its class body as they stand, as those of pure.py are.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from hubbub.errors import BadParameter
from hubbub.mechanisms.hashing import check_counts, encoded, position
from hubbub.mechanisms.pure import Pure

__all__ = ["MAX_CELLS", "SketchMechanism", "check", "check_size", "positions", "probes", "row"]

# More cells than this are read from the store at every query for little more certainty.
MAX_CELLS: Final = 1 << 22


class SketchMechanism(Protocol):
    """A mechanism with `hashes` functions into `width` buckets."""

    @property
    def hashes(self) -> int:
        """How many hash functions (m_h)."""
        ...

    @property
    def width(self) -> int:
        """How many buckets each has (m_w)."""
        ...

    @property
    def channel(self) -> Pure:
        """The chances that a report supports a bucket of its function."""
        ...


def check_size(hashes: int, width: int, most: int) -> None:
    """Raises BadParameter unless there are two buckets at least and `most` in all."""
    check_counts(hashes=(hashes, 1 << 16), width=(width, 1 << 16))
    if not (width > 1 and hashes * width <= most):
        raise BadParameter(f"width {width} is 1, or hashes * width is above {most}")


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
