"""Totals in Redis: one Lua script commits a batch, whole or not at all.

Keys, for a window W = STREAM:EPOCH, behind the prefix "aggregator:":

    totals:{W}    the cells, packed as little-endian int64
    seen:{W}      set of the tags counted, until the window takes no more reports
    batches:{W}   set of the batch ids applied, for some time longer
    law:{W}       hash: counted, duplicate, rejected:REASON
    windows       set of every W
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import redis.asyncio

from hubbub.aggregator.store import Commit, Outcome
from hubbub.catalog import TAG_BYTES
from hubbub.mechanisms import Totals
from hubbub.serving import Window, awaited, store_errors

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


class RedisStore:
    """The aggregator's Redis. Every method raises StoreUnavailable if it cannot be asked."""

    def __init__(self, client: redis.asyncio.Redis, url: str) -> None:
        self._redis = client
        self._url = url
        self._add = client.register_script(_ADD)

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        """Apply a commit whole or not at all; with SEEN, tags that were counted before."""
        terms: dict[str, int] = {"counted": len(commit.tags), "duplicate": commit.duplicates}
        terms |= {f"rejected:{reason}": number for reason, number in commit.rejected.items()}
        with store_errors(self._url):
            await awaited(self._redis.sadd("aggregator:windows", window.name))
            kind, *seen = await self._add(
                keys=[
                    window.key(f"aggregator:{what}")
                    for what in ("totals", "seen", "batches", "law")
                ],
                args=[
                    commit.batch_id,
                    b"".join(commit.tags),
                    commit.cells.astype("<i8").tobytes() if len(commit.tags) else b"",
                    commit.seen_until,
                    commit.applied_until,
                    *(part for item in terms.items() if item[1] for part in item),
                ],
            )
        return Outcome(kind.decode()), frozenset(seen)

    async def read(self, window: Window) -> Totals:
        """The totals of a window; no cells at all if nothing was counted."""
        with store_errors(self._url):
            pipe = self._redis.pipeline(transaction=True)
            pipe.get(window.key("aggregator:totals"))
            pipe.hget(window.key("aggregator:law"), "counted")
            packed, counted = await pipe.execute()
        return Totals(np.frombuffer(packed or b"", dtype="<i8").tolist(), int(counted or 0))

    async def law(self) -> Mapping[Window, Mapping[str, int]]:
        """Per window, the aggregator's terms of the conservation law."""
        terms = {}
        with store_errors(self._url):
            names = await awaited(self._redis.smembers("aggregator:windows"))
            for window in sorted(map(Window.parse, names)):
                law = await awaited(self._redis.hgetall(window.key("aggregator:law")))
                terms[window] = {term.decode(): int(number) for term, number in law.items()}
        return terms


if TAG_BYTES != 16:  # noqa: PLR2004 what the script cuts by
    raise AssertionError("the commit script cuts tags of 16 bytes")
