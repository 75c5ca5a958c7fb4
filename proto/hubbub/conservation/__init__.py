"""Floor 1. The accounting unit Window, and the conservation law that its reports obey.

A window is one stream in one epoch, in which reports are pooled, mixed and accounted.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Self

__all__ = ["TERMS", "Window", "balances", "sum_terms"]

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
    """Whether the terms balance: each report acknowledged, and each dummy, is counted once."""
    come = sum(terms[term] for term in _COME)
    return come == sum(terms[term] for term in TERMS[len(_COME) :])


def sum_terms(windows: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Adds up each term of the law; a term such as rejected:expired is added to rejected."""
    terms = dict.fromkeys(TERMS, 0)
    for window in windows:
        for term, number in window.items():
            terms[term.partition(":")[0]] += number
    return terms


_EPOCHS: Final = 1 << 32  # a report has its epoch in 32 bits


class Window(NamedTuple):
    """One stream in one epoch."""

    stream: str
    epoch: int

    @property
    def name(self) -> str:
        """The window's name in Redis keys, STREAM:EPOCH."""
        return f"{self.stream}:{self.epoch}"

    @classmethod
    def parse(cls, name: bytes) -> Self:
        """Reads a window from its name in Redis. Raises ValueError if `name` is not a window's."""
        stream, _, epoch = name.decode().rpartition(":")
        window = cls(stream, int(epoch))
        canonical = window.epoch in range(_EPOCHS) and str(window.epoch) == epoch
        if not (canonical and stream.isprintable()):
            raise ValueError("no window")
        return window

    def key(self, prefix: str, part: str = "") -> str:
        """The Redis key of one part. Its braces keep all keys of the part on one Cluster slot."""
        return f"{prefix}:{{{self.name}{part}}}"
