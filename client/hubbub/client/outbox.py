"""The outbox: payloads that wait to be sent. Bounded; never a raw value."""

import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate

from hubbub.wire.v1.report_pb2 import SealedReport

__all__ = ["Outbox", "Waiting"]


@dataclass(slots=True, eq=False)
class Waiting:
    """A payload on its way. Once sealed it stays sealed, so that a resend is the same bytes."""

    stream: str
    epoch: int
    payload: bytes
    report: SealedReport | None = field(default=None)


class Outbox:
    """A bounded pool of waiting payloads; safe between threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: list[Waiting] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether another payload would be one too many."""
        return len(self._waiting) >= self._size

    def add(self, waiting: Waiting) -> None:
        """Put one payload in."""
        with self._lock:
            self._waiting.append(waiting)

    def some(self, most: int, most_bytes: int) -> list[Waiting]:
        """At most so many and, past the first, so many bytes; in random order.

        They stay in until removed.
        """
        with self._lock:
            drawn = secrets.SystemRandom().sample(self._waiting, min(most, len(self._waiting)))
        ends = accumulate(len(waiting.payload) for waiting in drawn)
        fitting = sum(end <= most_bytes for end in ends)
        return drawn[: max(1, fitting)]

    def remove(self, done: Iterable[Waiting]) -> None:
        """Take out what was acknowledged or given up."""
        gone = {id(waiting) for waiting in done}
        with self._lock:
            self._waiting = [waiting for waiting in self._waiting if id(waiting) not in gone]
