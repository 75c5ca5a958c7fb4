"""Hashes strings: to positions for all mechanisms over strings, to buckets for the sketches.

The sketches are `cms`, `hcms` and `local_hash`. The hash is MurmurHash3 x64/128; positions are its
little-endian 32-bit words modulo the size.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Protocol

import mmh3

from hubbub.errors import ValueOutOfDomain
from hubbub.mechanisms.mechanism import DomainName, check_cells, check_whole, whole
from hubbub.mechanisms.pure_protocols import PureMechanism

MAX_STRING_BYTES: Final = 4096
WORDS: Final = 4  # positions taken from one 128-bit hash, 32 bits each
STRINGS: Final = ("", "b", "e", "example.org", "naïve", "日本")
"""Strings of every kind, for probes."""


def encoded(value: Any) -> bytes:
    """A string as UTF-8. Raises ValueOutOfDomain for other values; never shows them."""
    if not isinstance(value, str):
        raise ValueOutOfDomain("value is not a string")
    try:
        string = value.encode()
    except UnicodeEncodeError:
        # The error of the codec would quote the value.
        raise ValueOutOfDomain("value is not encodable as UTF-8") from None
    if len(string) > MAX_STRING_BYTES:
        raise ValueOutOfDomain(f"value is longer than {MAX_STRING_BYTES} bytes")
    return string


digest: Final[Callable[[bytes, int], bytes]] = mmh3.mmh3_x64_128_digest
"""Of a string and a seed 16 bytes: four little-endian words of 32 bits, as good as independent."""


def position(string: bytes, seed: int, size: int) -> int:
    """One position in [0, size), from the hash's first word under this seed."""
    return int.from_bytes(digest(string, seed)[:4], "little") % size


def positions(string: bytes, cohort: int, hashes: int, size: int) -> list[int]:
    """`hashes` positions (at most 8) in [0, size), perhaps one twice.

    They are words under the seeds 2 cohort and, past the fourth, 2 cohort + 1.
    """
    places: list[int] = []
    for block in range(0, hashes, WORDS):
        word = digest(string, 2 * cohort + block // WORDS)
        words = range(min(WORDS, hashes - block))
        places += [int.from_bytes(word[4 * w : 4 * w + 4], "little") % size for w in words]
    return places


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
