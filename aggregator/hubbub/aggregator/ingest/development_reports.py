"""The newest counted reports, kept in memory in development only.

PRIVACY: a production aggregator does not have this, and remembers no single report.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Final

from hubbub.conservation import Window

_MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Arrival:
    """One counted report.

    Args:
        number: from 1, in the order of arrival.
        at: seconds since 1970.
    """

    number: int
    at: float
    window: Window
    payload: bytes


class Arrivals:
    """The newest arrivals."""

    def __init__(self) -> None:
        self._arrivals: deque[Arrival] = deque(maxlen=_MOST)
        self._numbers = count(1)

    def add(self, window: Window, payloads: Iterable[bytes], time: float) -> None:
        """Remembers counted payloads."""
        self._arrivals.extend(
            Arrival(next(self._numbers), time, window, payload) for payload in payloads
        )

    def newer_than(self, number: int) -> list[Arrival]:
        """Arrivals after this number, the oldest first; all if the number is from another run."""
        latest = self._arrivals[-1].number if self._arrivals else 0
        return [arrival for arrival in self._arrivals if arrival.number > number or number > latest]
