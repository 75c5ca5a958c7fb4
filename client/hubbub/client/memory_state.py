"""MemoryState: a device's state that ends with the process."""

import secrets
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace

from hubbub.client.consent import turned
from hubbub.client.device import SECRET_BYTES
from hubbub.client.state import (
    DISABLED,
    HISTORY,
    SENT,
    Bounds,
    Drawn,
    Dropped,
    Entry,
    Kept,
    Standing,
    Waiting,
    admit,
    excess,
    fitting,
)
from hubbub.client.witness import Witness

__all__ = ["MemoryState"]


class MemoryState:
    """Forgets with the process.

    witness: where what was spent is written down all the same, if anywhere.
    """

    def __init__(
        self,
        secret: bytes | None = None,
        witness: Witness | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self._standing = Standing(
            secret or secrets.token_bytes(SECRET_BYTES), may_send=witness is None
        )
        self._witness = witness
        self._bounds = bounds or Bounds()
        self._noted = self._done = self._last = 0
        self._reports: dict[int, tuple[Entry, str]] = {}
        self._lock = threading.RLock()
        if witness and witness.accounts:
            self._standing.accounts = dict(witness.accounts)
            self._standing.counts["state_lost"] += 1

    def standing(self) -> Standing:
        """Where the device stands now; the caller's own copy."""
        with self._lock:
            now = self._standing
            if not now.may_send:
                now.may_send = self._witness is None or self._witness.usable()
            return replace(now, accounts=deepcopy(now.accounts), counts=Counter(now.counts))

    def has_room(self, size_bytes: int) -> bool:  # noqa: ARG002 counted, not measured
        """Whether another payload can be noted."""
        return self._noted - self._done < self._bounds.reports

    def note(self, drawn: Drawn) -> int:  # noqa: ARG002 the caller holds it, and that is all
        """Number a payload that only this process's memory holds."""
        self._noted += 1
        return self._noted

    def enter(
        self,
        entries: Sequence[Entry],
        lost: Sequence[Dropped],
        upto: int,
        owner: str = "",  # noqa: ARG002 there are no orphans
    ) -> list[Dropped]:
        """Charge and keep payloads; says which were given up."""
        with self._lock:
            fresh = [entry for entry in entries if entry.number > self._done]
            kept, refused = admit(fresh, self._standing)
            for entry in kept:
                self._last += 1
                self._reports[self._last] = entry, ""
            self._done = max(self._done, upto)
            for id_ in [id_ for id_, (_, fate) in self._reports.items() if fate][:-HISTORY]:
                del self._reports[id_]
            dropped = [*lost, *refused, *self._overflow()]
            self._standing.counts.update(one.reason for one in dropped)
            return dropped

    def orphans(self) -> Iterator[tuple[str, list[tuple[int, Drawn]]]]:
        """None: what a process notes here ends with it."""
        return iter(())

    def take(self, most: int, most_bytes: int, now: float) -> tuple[list[Waiting], list[Dropped]]:
        """Reports to send now, in random order; and those now too late."""
        with self._lock:
            if self._witness:
                self._witness.write("memory", 0, self._standing.accounts)
            late = [id_ for id_, entry in self._left().items() if entry.late <= now]
            self.settle(dict.fromkeys(late, "expired"))
            dropped = [Dropped(self._reports[id_][0].drawn.stream, "expired") for id_ in late]
            left = self._left()
            drawn = secrets.SystemRandom().sample(sorted(left), min(most, len(left)))
            return fitting([_waiting(id_, left[id_]) for id_ in drawn], most_bytes), dropped

    def settle(self, fates: Mapping[int, str]) -> None:
        """Reports that were taken have met their fate."""
        with self._lock:
            for id_, fate in fates.items():
                entry, before = self._reports.get(id_, (None, SENT))
                if entry and (not before or (before == DISABLED and fate == SENT)):
                    self._reports[id_] = entry, fate
                    self._standing.counts.update([fate] if fate != SENT else [])
                    self._standing.counts.subtract([before] if before else [])

    def release(self, ids: Iterable[int]) -> None:
        """Nobody else would try."""

    def leaving(self, now: float) -> int:  # noqa: ARG002 the sender has ended its submission
        """None: there is no other process."""
        return 0

    def waiting(self) -> int:
        """How many reports wait to be sent."""
        with self._lock:
            return len(self._left())

    def kept(self) -> list[Kept]:
        """Every payload of this process, oldest first."""
        with self._lock:
            return [
                Kept(e.drawn.stream, e.drawn.epoch, e.drawn.payload, e.drawn.made, fate)
                for e, fate in self._reports.values()
            ]

    def consent(self, *, on: bool, forget: bool, now: float) -> None:
        """Switch reporting. Off purges what waits; `forget` the secret and the ledger too."""
        with self._lock:
            old = self._standing
            old.generation = turned(old.generation, on=on)
            if not on:
                self.settle(dict.fromkeys(self._left(), DISABLED))
            if forget:
                self._reports.clear()
                self._standing = Standing(secrets.token_bytes(SECRET_BYTES), old.generation)
                self._standing.since = now

    def prefer(self, epsilon: float) -> None:
        """Keep the most epsilon that the person allows a report."""
        with self._lock:
            self._standing.preference = epsilon

    def close(self) -> None:
        """There is nothing to let go of."""

    def _left(self) -> dict[int, Entry]:
        return {id_: entry for id_, (entry, fate) in self._reports.items() if not fate}

    def _overflow(self) -> list[Dropped]:
        left = self._left()
        sizes = [len(entry.sealed) for entry in left.values()]
        over = excess(sizes, self._bounds)
        gone = list(left)[:over]
        for id_ in gone:
            self._reports[id_] = left[id_], "outbox_full"
        return [Dropped(left[id_].drawn.stream, "outbox_full") for id_ in gone]


def _waiting(id_: int, entry: Entry) -> Waiting:
    return Waiting(id_, entry.drawn.stream, entry.drawn.epoch, entry.key_id, entry.sealed)
