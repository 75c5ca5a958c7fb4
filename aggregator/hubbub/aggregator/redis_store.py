"""Totals in Redis: one Lua script commits a batch, whole or not at all.

Keys, for a window W = STREAM:EPOCH, behind the prefix "aggregator:":

    totals:{W}    the cells, packed as little-endian int64
    seen:{W}      set of the tags counted, until the window takes no more reports
    batches:{W}   set of the batch ids applied, for some time longer
    law:{W}       hash: counted, duplicate, rejected:REASON
    windows       hash: every W -> its number of shards

A window of several shards has {W#1}, {W#2}, ... beside {W}; on a Redis Cluster they spread over the
nodes. A report's tag says which one is its own, so it can be counted in no other.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from hubbub.aggregator.store import Commit, Outcome
from hubbub.catalog import TAG_BYTES
from hubbub.mechanisms import Totals
from hubbub.serving import RedisServer, Window, awaited

__all__ = ["RedisStore"]

# KEYS: totals, seen, batches, law. ARGV: batch id, tags end to end, cells, seen_until,
# applied_until, then name and amount of every term of the law.
# `unpack` fails past some thousands of arguments, so tags and cells go in chunks. Lua's numbers
# are doubles: a cell is exact only below 2**53, so a sum past it is refused before any write.
_ADD: Final = """
if redis.call('SISMEMBER', KEYS[3], ARGV[1]) == 1 then return {'already_applied'} end

local tags, chunks, seen = ARGV[2], {}, {}
for first = 1, #tags, 16 * 4000 do
  local chunk = {}
  for at = first, math.min(first + 16 * 4000, #tags + 1) - 16, 16 do
    chunk[#chunk + 1] = string.sub(tags, at, at + 15)
  end
  for i, found in ipairs(redis.call('SMISMEMBER', KEYS[2], unpack(chunk))) do
    if found == 1 then seen[#seen + 1] = chunk[i] end
  end
  chunks[#chunks + 1] = chunk
end
if #seen > 0 then return {'seen', unpack(seen, 1, math.min(#seen, 4000))} end

local more, old = ARGV[3], redis.call('GET', KEYS[1])
if old and #more > 0 then
  if #old ~= #more then return redis.error_reply('totals of another shape') end
  local parts, most = {}, 128
  for first = 1, #more, 8 * most do
    local n = math.min(most, (#more - first + 1) / 8)
    local format = '<' .. string.rep('i8', n)
    local a, b = {struct.unpack(format, old, first)}, {struct.unpack(format, more, first)}
    for i = 1, n do
      a[i] = a[i] + b[i]
      if a[i] >= 9007199254740992 then return redis.error_reply('a cell passes 2^53') end
    end
    parts[#parts + 1] = struct.pack(format, unpack(a, 1, n))
  end
  more = table.concat(parts)
end

for _, chunk in ipairs(chunks) do redis.call('SADD', KEYS[2], unpack(chunk)) end
if #more > 0 then redis.call('SET', KEYS[1], more) end
redis.call('SADD', KEYS[3], ARGV[1])
redis.call('EXPIREAT', KEYS[2], ARGV[4])
redis.call('EXPIREAT', KEYS[3], ARGV[5])
for i = 6, #ARGV, 2 do redis.call('HINCRBY', KEYS[4], ARGV[i], ARGV[i + 1]) end
return {'applied'}
"""


# Not MULTI: a Redis that is full takes nothing into one, and is still to answer queries.
_READ: Final = "return {redis.call('GET', KEYS[1]), redis.call('HGET', KEYS[2], 'counted')}"


class RedisStore:
    """The aggregator's Redis. Every method raises StoreUnavailable if it cannot be asked.

    shards: of windows to come; those that exist keep theirs.
    """

    def __init__(self, server: RedisServer, shards: int = 1) -> None:
        self._server = server
        self._redis = server.client
        self._shards = shards
        self._add = server.client.register_script(_ADD)
        self._both = server.client.register_script(_READ)

    async def shards(self, window: Window) -> int:
        """How many shards a window has: decided once, when it is first asked about."""
        pipe = self._redis.pipeline(transaction=False)
        pipe.hsetnx("aggregator:windows", window.name, str(self._shards))
        pipe.hget("aggregator:windows", window.name)
        _, shards = await self._server.durable(pipe)
        return int(shards)

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        """Apply a commit whole or not at all; with SEEN, tags that were counted before."""
        terms: dict[str, int] = {"counted": len(commit.tags), "duplicate": commit.duplicates}
        terms |= {f"rejected:{reason}": number for reason, number in commit.rejected.items()}
        pipe = self._redis.pipeline(transaction=False)
        await self._add(
            keys=[
                _key(what, window, commit.shard) for what in ("totals", "seen", "batches", "law")
            ],
            args=[
                commit.batch_id,
                b"".join(commit.tags),
                commit.cells.astype("<i8").tobytes() if len(commit.tags) else b"",
                commit.seen_until,
                commit.applied_until,
                *(part for item in terms.items() if item[1] for part in item),
            ],
            client=pipe,
        )
        [[kind, *seen]] = await self._server.durable(pipe)
        return Outcome(kind.decode()), frozenset(seen)

    async def read(self, window: Window) -> Totals:
        """The totals of a window; no cells at all if nothing was counted."""
        async with self._server.errors():
            shards = int(await awaited(self._redis.hget("aggregator:windows", window.name)) or 0)
            parts = [await self._read(window, shard) for shard in range(shards)]
        cells = [cells for cells, _ in parts if len(cells)]
        summed = np.sum(cells, axis=0).tolist() if cells else []
        return Totals(summed, sum(counted for _, counted in parts))

    async def _read(self, window: Window, shard: int) -> tuple[npt.NDArray[np.int64], int]:
        keys = [_key("totals", window, shard), _key("law", window, shard)]
        packed, counted = await self._both(keys=keys)
        return np.frombuffer(packed or b"", dtype="<i8"), int(counted or 0)

    async def law(self) -> Mapping[Window, Mapping[str, int]]:
        """Per window, the aggregator's terms of the conservation law."""
        async with self._server.errors():
            known = await awaited(self._redis.hgetall("aggregator:windows"))
            shards = [
                (window, shard)
                for window, number in sorted((Window.parse(w), int(n)) for w, n in known.items())
                for shard in range(number)
            ]
            pipe = self._redis.pipeline(transaction=False)
            for window, shard in shards:
                pipe.hgetall(_key("law", window, shard))
            answers = await pipe.execute()
        terms: dict[Window, Counter[str]] = {}
        for (window, _), law in zip(shards, answers, strict=True):
            entry = terms.setdefault(window, Counter())
            entry.update({term.decode(): int(number) for term, number in law.items()})
        return terms


def _key(what: str, window: Window, shard: int) -> str:
    return window.key(f"aggregator:{what}", f"#{shard}" if shard else "")


if TAG_BYTES != 16:  # noqa: PLR2004 what the script cuts by
    raise AssertionError("the commit script cuts tags of 16 bytes")
