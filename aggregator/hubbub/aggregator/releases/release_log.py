"""The record of releases: costs, purposes and answers; append-only.

One Redis list, "aggregator:releases", of JSON. A caller that has read the whole list looks up a
release and checks its budget; the script appends if nobody else has appended since. Spent budget is
never stored apart from its entries. An unreadable entry is skipped and logged, and its possible
cost counts for every purpose and year that it may belong to.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hubbub.aggregator.releases.release_entry import Entry, Unreadable, read_entry
from hubbub.errors import BudgetExhausted
from hubbub.runtime.redis.command_lists import RedisServer, lua, script

_log: Final = logging.getLogger("hubbub.aggregator")

_KEY: Final = "aggregator:releases"
# Tolerance for rounding in sums of many floats.
_ROUNDING: Final = 1e-9

_APPEND: Final = lua(__package__, "append")


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a record, oldest first.

    Args:
        lost: remains of unreadable entries.
        mended: number of entries in `read` with replaced characters.
    """

    read: Sequence[Entry]
    lost: Sequence[Unreadable] = ()
    mended: int = 0

    def __iter__(self) -> Iterator[Entry]:
        """The readable entries."""
        return iter(self.read)

    @property
    def unreadable(self) -> int:
        """Number of entries that could not be read exactly."""
        return len(self.lost) + self.mended

    def spent(self, purpose: str, year: int) -> tuple[float, float]:
        """Upper bounds on the epsilon and delta that a purpose has spent in a year."""
        entries = [entry for entry in self.read if (entry.purpose, entry.year) == (purpose, year)]
        maybe = [
            entry
            for entry in self.lost
            if entry.purpose in {None, purpose} and entry.year in {None, year}
        ]
        return (
            sum(entry.epsilon for entry in entries) + sum(entry.epsilon for entry in maybe),
            sum(entry.delta for entry in entries) + sum(entry.delta for entry in maybe),
        )

    def check(self, entry: Entry, allowance: tuple[float, float]) -> None:
        """Raises BudgetExhausted if the entry's purpose does not have enough left in its year."""
        used, costs = self.spent(entry.purpose, entry.year), (entry.epsilon, entry.delta)
        for before, cost, most in zip(used, costs, allowance, strict=True):
            if not before + cost <= most * (1 + _ROUNDING):
                raise BudgetExhausted(
                    f'purpose "{entry.purpose}" has epsilon {max(allowance[0] - used[0], 0):.6g} '
                    f"and delta {max(allowance[1] - used[1], 0):.3g} left in {entry.year}, and "
                    f"this release costs {entry.epsilon:g} and {entry.delta:g}; wait for the next "
                    "year, use another purpose, or have the budget changed in the catalog"
                )


class ReleaseLog:
    """Releases, each entered once, within the yearly budget of its purpose.

    Both methods raise StoreUnavailable if Redis does not answer.
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._reported_unreadable = 0

    async def spend(self, entry: Entry, allowance: tuple[float, float]) -> tuple[Entry, bool]:
        """Enters a release; returns the valid entry, and whether it already existed.

        Raises BudgetExhausted if its purpose would exceed this epsilon or delta in its year.
        """
        texts: list[bytes] = await self._texts()
        while True:
            entries = self._read(texts)
            before = next((earlier for earlier in entries.read if earlier.id == entry.id), None)
            if before is not None:
                return before, True
            entries.check(entry, allowance)
            later_texts = await self._append(len(texts), entry.text())
            if not later_texts:
                return entry, False
            texts += later_texts

    async def entries(self) -> Entries:
        """All entries."""
        return self._read(await self._texts())

    async def _texts(self) -> list[bytes]:
        return list(await self._server.ask("LRANGE", _KEY, 0, -1))

    async def _append(self, length: int, text: str) -> list[bytes]:
        """Appends to a record of this length; otherwise returns what follows."""
        [later_texts] = await self._server.durable([script(_APPEND, [_KEY], [length, text])])
        return list(later_texts)

    def _read(self, texts: Sequence[bytes]) -> Entries:
        items = [read_entry(text) for text in texts]
        entries = Entries(
            [item for item, _ in items if isinstance(item, Entry)],
            [item for item, _ in items if isinstance(item, Unreadable)],
            sum(mended for _, mended in items),
        )
        if entries.unreadable > self._reported_unreadable:
            self._reported_unreadable = entries.unreadable
            _log.warning(
                "%d entries of the record of releases are unreadable; their largest possible cost "
                "is counted (docs/operate/restore.md)",
                entries.unreadable,
            )
        return entries
