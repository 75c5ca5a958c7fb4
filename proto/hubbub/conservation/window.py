"""Window: one stream in one epoch, pooled, mixed and added up together; the law of its reports."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self

_COME: Final = ("acknowledged", "dummies")
TERMS: Final = (
    *_COME,
    "pooled",
    "in_flight",
    "counted",
    "duplicate",
    "rejected",
    "fillers",
    "withheld",
)
"""The terms of the conservation law: the first two add up to what the others do."""


def balances(terms: Mapping[str, int]) -> bool:
    """Whether everything acknowledged, and every dummy, is somewhere, and once."""
    come = sum(terms[term] for term in _COME)
    return come == sum(terms[term] for term in TERMS[len(_COME) :])


def sum_terms(windows: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The terms of the law over all these windows.

    Terms with a reason, such as rejected:expired, count with their own.
    """
    terms = dict.fromkeys(TERMS, 0)
    for window in windows:
        for term, number in window.items():
            terms[term.partition(":")[0]] += number
    return terms


_EPOCHS: Final = 1 << 32  # a report tells its own in 32 bits


class Window(NamedTuple):
    """One stream in one epoch."""

    stream: str
    epoch: int

    @property
    def name(self) -> str:
        """As Redis keys have it: STREAM:EPOCH."""
        return f"{self.stream}:{self.epoch}"

    @classmethod
    def parse(cls, name: bytes) -> Self:
        """The window of a name, as Redis gives it back. Raises ValueError for what is none."""
        stream, _, epoch = name.decode().rpartition(":")
        window = cls(stream, int(epoch))
        canonical = window.epoch in range(_EPOCHS) and str(window.epoch) == epoch
        if not (canonical and stream.isprintable()):
            raise ValueError("no window")
        return window

    def key(self, prefix: str, part: str = "") -> str:
        """A Redis key. The braces put all keys of a window's part on one slot of a Cluster."""
        return f"{prefix}:{{{self.name}{part}}}"
