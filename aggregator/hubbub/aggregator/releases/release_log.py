"""The record of releases: what was spent, by whom, on what; append-only, with the answers given.

One Redis list, "aggregator:releases", of JSON. A release is looked up and its budget checked by one
who has read the whole list; the script appends if nobody did since. What was spent is never kept
apart from the record that says so. An entry that nobody can read is read round, said, and what
it may have spent is counted for every purpose and year that it may have been of.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from hubbub.aggregator.releases.entry import Entry, Unreadable, read_entry
from hubbub.errors import BudgetExhausted
from hubbub.runtime import RedisServer, lua, script

_log: Final = logging.getLogger("hubbub.aggregator")

_KEY: Final = "aggregator:releases"
# Sums of many floats may end so far above what they should.
_ROUNDING: Final = 1e-9

_APPEND: Final = lua(__package__, "append")


@dataclass(frozen=True, slots=True)
class Entries:
    """What was read of a record, oldest first. mended: how many of `read` are not as written."""

    read: Sequence[Entry]
    lost: Sequence[Unreadable] = ()
    mended: int = 0

    def __iter__(self) -> Iterator[Entry]:
        """The entries that could be read."""
        return iter(self.read)

    @property
    def unreadable(self) -> int:
        """How many entries could not be read as they stand."""
        return len(self.lost) + self.mended

    def spent(self, purpose: str, year: int) -> tuple[float, float]:
        """Epsilon and delta that a purpose has spent in a year, at most."""
        own = [entry for entry in self.read if (entry.purpose, entry.year) == (purpose, year)]
        maybe = [entry for entry in self.lost if entry.may_be(purpose, year)]
        return (
            sum(entry.epsilon for entry in own) + sum(entry.epsilon for entry in maybe),
            sum(entry.delta for entry in own) + sum(entry.delta for entry in maybe),
        )

    def check(self, entry: Entry, allowance: tuple[float, float]) -> None:
        """Raises BudgetExhausted if the entry's purpose has not as much left in its year."""
        used, costs = self.spent(entry.purpose, entry.year), (entry.epsilon, entry.delta)
        for before, more, most in zip(used, costs, allowance, strict=True):
            if not before + more <= most * (1 + _ROUNDING):
                raise BudgetExhausted(
                    f'purpose "{entry.purpose}" has epsilon {max(allowance[0] - used[0], 0):.6g} '
                    f"and delta {max(allowance[1] - used[1], 0):.3g} left in {entry.year}, and "
                    f"this release costs {entry.epsilon:g} and {entry.delta:g}; wait for the next "
                    "year, ask another purpose, or have the budget changed in the catalog"
                )


class ReleaseLog(Protocol):
    """Releases, each entered once, within what its purpose may spend in a year."""

    async def spend(self, entry: Entry, allowance: tuple[float, float]) -> tuple[Entry, bool]:
        """Enter a release: the entry that holds, and whether it was there before.

        Raises:
            BudgetExhausted: its purpose would spend more than this epsilon or delta in its year.
        """
        ...

    async def entries(self) -> Entries:
        """All of them."""
        ...


class RedisReleaseLog:
    """The record in the aggregator's Redis. Raises StoreUnavailable if it cannot be asked."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._said = 0

    async def spend(self, entry: Entry, allowance: tuple[float, float]) -> tuple[Entry, bool]:
        """Enter a release: the entry that holds, and whether it was there before."""
        texts: list[bytes] = await self._texts()
        while True:
            entries = self._read(texts)
            before = next((earlier for earlier in entries.read if earlier.id == entry.id), None)
            if before is not None:
                return before, True
            entries.check(entry, allowance)
            [more] = await self._server.durable(
                [script(_APPEND, [_KEY], [len(texts), entry.text()])]
            )
            if not more:
                return entry, False
            texts += more

    async def entries(self) -> Entries:
        """All of them."""
        return self._read(await self._texts())

    async def _texts(self) -> list[bytes]:
        return list(await self._server.ask("LRANGE", _KEY, 0, -1))

    def _read(self, texts: Sequence[bytes]) -> Entries:
        every = [read_entry(text) for text in texts]
        entries = Entries(
            [item for item, _ in every if isinstance(item, Entry)],
            [item for item, _ in every if isinstance(item, Unreadable)],
            sum(mended for _, mended in every),
        )
        if entries.unreadable > self._said:
            self._said = entries.unreadable
            _log.warning(
                "%d entries of the record of releases cannot be read as they stand; what they may "
                "have spent is counted (docs/operate/restore.md)",
                entries.unreadable,
            )
        return entries
