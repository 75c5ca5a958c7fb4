"""The record of releases: what was spent, by whom, on what; append-only, with the answers given.

One Redis list, "aggregator:releases", of JSON. A release is looked up, its budget checked and the
record appended in one Lua script; what was spent is never kept apart from the record that says so.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from hubbub.errors import BudgetExhausted
from hubbub.privacy.releases import Released
from hubbub.serving import RedisServer, script

__all__ = ["Entry", "MemoryRecord", "Record", "RedisRecord", "spent"]

_KEY: Final = "aggregator:releases"
# Sums of many floats may end so far above what they should.
_ROUNDING: Final = 1e-9

# KEYS: the list. ARGV: id, purpose, year, epsilon and delta of this one, those allowed, the entry.
_SPEND: Final = """
local epsilon, delta = tonumber(ARGV[4]), tonumber(ARGV[5])
for _, text in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local entry = cjson.decode(text)
  if entry.id == ARGV[1] then return {'again', text} end
  if entry.purpose == ARGV[2] and entry.year == tonumber(ARGV[3]) then
    epsilon, delta = epsilon + entry.epsilon, delta + entry.delta
  end
end
if epsilon > tonumber(ARGV[6]) * (1 + 1e-9) or delta > tonumber(ARGV[7]) * (1 + 1e-9) then
  return {'exhausted', ''}
end
redis.call('RPUSH', KEYS[1], ARGV[8])
return {'released', ARGV[8]}
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One release as it is kept.

    id: what was asked, digested: the same question has the same. at: seconds since 1970.
    """

    id: str
    at: int
    year: int
    purpose: str
    by: str
    metric: str
    query: str
    value: str
    epochs: tuple[int, ...]
    mechanism: str
    epsilon: float
    delta: float
    answer: tuple[Released, ...]

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def told(self) -> dict[str, Any]:
        """All of it that is told beside the answer."""
        fields = asdict(self)
        del fields["answer"], fields["year"]
        return fields

    @classmethod
    def load(cls, text: bytes | str) -> "Entry":
        """The entry of a text."""
        data: dict[str, Any] = json.loads(text)
        data["epochs"] = tuple(data["epochs"])
        data["answer"] = tuple(Released(**value) for value in data["answer"])
        return cls(**data)


class Record(Protocol):
    """Releases, each entered once, within what its purpose may spend in a year."""

    async def spend(self, entry: Entry, allowance: tuple[float, float]) -> tuple[Entry, bool]:
        """Enter a release: the entry that holds, and whether it was there before.

        Raises:
            BudgetExhausted: its purpose would spend more than this epsilon or delta in its year.
        """
        ...

    async def entries(self) -> Sequence[Entry]:
        """All of them, oldest first."""
        ...


def spent(entries: Sequence[Entry], purpose: str, year: int) -> tuple[float, float]:
    """Epsilon and delta that a purpose has spent in a year."""
    own = [entry for entry in entries if (entry.purpose, entry.year) == (purpose, year)]
    return sum(entry.epsilon for entry in own), sum(entry.delta for entry in own)


def _exhausted(entries: Sequence[Entry], entry: Entry, allowance: tuple[float, float]) -> str:
    epsilon, delta = spent(entries, entry.purpose, entry.year)
    return (
        f'purpose "{entry.purpose}" has epsilon {max(allowance[0] - epsilon, 0):.6g} and delta '
        f"{max(allowance[1] - delta, 0):.3g} left in {entry.year}, and this release costs "
        f"{entry.epsilon:g} and {entry.delta:g}; wait for the next year, ask another purpose, or "
        "have the budget changed in the catalog"
    )


@dataclass(slots=True)
class MemoryRecord:
    """A record in this process's memory. Passes the same tests."""

    _entries: dict[str, Entry] = field(default_factory=dict)

    async def spend(self, entry: Entry, allowance: tuple[float, float]) -> tuple[Entry, bool]:
        """Enter a release: the entry that holds, and whether it was there before."""
        if entry.id in self._entries:
            return self._entries[entry.id], True
        entries = await self.entries()
        before = spent(entries, entry.purpose, entry.year)
        for used, more, most in zip(before, (entry.epsilon, entry.delta), allowance, strict=True):
            if used + more > most * (1 + _ROUNDING):
                raise BudgetExhausted(_exhausted(entries, entry, allowance))
        self._entries[entry.id] = entry
        return entry, False

    async def entries(self) -> Sequence[Entry]:
        """All of them, oldest first."""
        return list(self._entries.values())


class RedisRecord:
    """The record in the aggregator's Redis. Raises StoreUnavailable if it cannot be asked."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def spend(self, entry: Entry, allowance: tuple[float, float]) -> tuple[Entry, bool]:
        """Enter a release: the entry that holds, and whether it was there before."""
        costs = [repr(float(cost)) for cost in (entry.epsilon, entry.delta, *allowance)]
        arguments = [entry.id, entry.purpose, entry.year, *costs, entry.text()]
        [[kind, text]] = await self._server.durable([script(_SPEND, [_KEY], arguments)])
        if kind == b"exhausted":
            raise BudgetExhausted(_exhausted(await self.entries(), entry, allowance))
        return Entry.load(text), kind == b"again"

    async def entries(self) -> Sequence[Entry]:
        """All of them, oldest first."""
        return [Entry.load(text) for text in await self._server.ask("LRANGE", _KEY, 0, -1)]
