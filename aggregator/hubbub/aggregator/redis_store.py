"""Totals in Redis: one Lua script commits a batch, whole or not at all.

Keys, for a window W = STREAM:EPOCH, behind the prefix "aggregator:":

    totals:{W}    hash: cells (packed little-endian int64), batches (first 8 bytes of the id of each
                  that is in them), law (JSON: counted, duplicate, rejected:REASON), crowd (of the
                  smallest batch), at (when reports were last counted)
    seen:{W}      hash: tag -> the batch that it was counted in, until the window takes no more
    windows       hash: every W -> its number of shards

A window of several shards has {W#1}, {W#2}, ... beside {W}; on a Redis Cluster they spread over the
nodes. A report's tag says which one is its own, so it can be counted in no other.

What a batch changes is one HSET of all fields, absolute; tags come before it, each with its
batch. A Redis that is killed while it writes may, one restart later, bring back the first commands
of a script and not the others (decision 0019): tags of a batch that was not counted are then no
obstacle to it, since they are its own.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np

from hubbub.aggregator.store import Commit, Held, Outcome
from hubbub.catalog import TAG_BYTES
from hubbub.serving import RedisServer, Window, script

__all__ = ["RedisStore"]

# Of a batch id, which is random, so many bytes are kept; the script's own number.
_ID_BYTES: Final = 8
# Beyond any batch.
_NOBODY: Final = 1 << 40

# KEYS: totals, seen. ARGV: batch id, tags end to end, cells, seen_until, crowd, at, then name and
# amount of every term of the law. `unpack` fails past some thousands of arguments, so tags and
# cells go in chunks. Lua's numbers are doubles: a cell is exact only below 2**53, so a sum past it
# is refused before any write.
_ADD: Final = """
local id = ARGV[1]
local old = redis.call('HMGET', KEYS[1], 'cells', 'batches', 'law', 'crowd', 'at')
local ids, at = old[2] or '', 0
repeat
  at = string.find(ids, id, at + 1, true)
  if at and (at - 1) % #id == 0 then return {'already_applied'} end
until not at

local tags, pairs_of, seen = ARGV[2], {}, {}
for first = 1, #tags, 16 * 2000 do
  local chunk, entry = {}, {}
  for from = first, math.min(first + 16 * 2000, #tags + 1) - 16, 16 do
    local tag = string.sub(tags, from, from + 15)
    chunk[#chunk + 1] = tag
    entry[#entry + 1] = tag
    entry[#entry + 1] = id
  end
  for i, batch in ipairs(redis.call('HMGET', KEYS[2], unpack(chunk))) do
    if batch and batch ~= id then seen[#seen + 1] = chunk[i] end
  end
  pairs_of[#pairs_of + 1] = entry
end
if #seen > 0 then return {'seen', unpack(seen, 1, math.min(#seen, 4000))} end

local cells, more = old[1] or '', ARGV[3]
if #cells > 0 and #more > 0 then
  if #cells ~= #more then return redis.error_reply('totals of another shape') end
  local parts, most = {}, 128
  for first = 1, #more, 8 * most do
    local n = math.min(most, (#more - first + 1) / 8)
    local format = '<' .. string.rep('i8', n)
    local a, b = {struct.unpack(format, cells, first)}, {struct.unpack(format, more, first)}
    for i = 1, n do
      a[i] = a[i] + b[i]
      if a[i] >= 9007199254740992 then return redis.error_reply('a cell passes 2^53') end
    end
    parts[#parts + 1] = struct.pack(format, unpack(a, 1, n))
  end
  cells = table.concat(parts)
elseif #more > 0 then
  cells = more
end
local law = old[3] and cjson.decode(old[3]) or {}
for i = 7, #ARGV, 2 do law[ARGV[i]] = (law[ARGV[i]] or 0) + tonumber(ARGV[i + 1]) end
local crowd, at = tonumber(old[4] or ARGV[5]), old[5] or '0'
if #tags > 0 then crowd, at = math.min(crowd, tonumber(ARGV[5])), ARGV[6] end

for _, entry in ipairs(pairs_of) do redis.call('HSET', KEYS[2], unpack(entry)) end
redis.call('EXPIREAT', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], 'cells', cells, 'batches', ids .. id, 'law', cjson.encode(law),
           'crowd', string.format('%d', crowd), 'at', at)
return {'applied'}
"""


class RedisStore:
    """The aggregator's Redis. Every method raises StoreUnavailable if it cannot be asked.

    shards: of windows to come; those that exist keep theirs.
    """

    def __init__(self, server: RedisServer, shards: int = 1) -> None:
        self._server = server
        self._shards = shards

    async def shards(self, window: Window) -> int:
        """How many shards a window has: decided once, when it is first asked about."""
        first = ("HSETNX", "aggregator:windows", window.name, str(self._shards))
        _, shards = await self._server.durable([first, ("HGET", *first[1:3])])
        return int(shards)

    async def add(self, window: Window, commit: Commit) -> tuple[Outcome, frozenset[bytes]]:
        """Apply a commit whole or not at all; with SEEN, tags that were counted before."""
        terms: dict[str, int] = {"counted": len(commit.tags), "duplicate": commit.duplicates}
        terms |= {f"rejected:{reason}": number for reason, number in commit.rejected.items()}
        step = script(
            _ADD,
            [_key(what, window, commit.shard) for what in ("totals", "seen")],
            [
                commit.batch_id[:_ID_BYTES],
                b"".join(commit.tags),
                commit.cells.astype("<i8").tobytes() if len(commit.tags) else b"",
                commit.seen_until,
                # What counts nothing leaves the smallest crowd as it is.
                commit.crowd if len(commit.tags) else _NOBODY,
                commit.at,
                *(part for item in terms.items() if item[1] for part in item),
            ],
        )
        [[kind, *seen]] = await self._server.durable([step])
        return Outcome(kind.decode()), frozenset(seen)

    async def read(self, windows: Sequence[Window]) -> list[Held]:
        """What each of these windows holds, in their order."""
        if not windows:
            return []
        known = await self._server.ask("HGETALL", "aggregator:windows")
        shards = [int(known.get(window.name.encode(), 0)) for window in windows]
        answers = await self._server.execute(
            [
                ("HMGET", _key("totals", window, shard), "cells", "law", "crowd", "at")
                for window, number in zip(windows, shards, strict=True)
                for shard in range(number)
            ]
        )
        parts = iter(answers)
        return [_held([next(parts) for _ in range(number)]) for number in shards]

    async def counted(self, streams: Collection[str]) -> Mapping[Window, int]:
        """How many reports every window of these streams holds, where it holds any."""
        found = (await self._laws(streams)).items()
        return {window: terms["counted"] for window, terms in found if terms["counted"]}

    async def law(self) -> Mapping[Window, Mapping[str, int]]:
        """Per window, the aggregator's terms of the conservation law."""
        return await self._laws(None)

    async def _laws(self, streams: Collection[str] | None) -> dict[Window, Counter[str]]:
        known = await self._server.ask("HGETALL", "aggregator:windows")
        shards = [
            (window, shard)
            for window, number in sorted((Window.parse(w), int(n)) for w, n in known.items())
            if streams is None or window.stream in streams
            for shard in range(number)
        ]
        answers = await self._server.execute(
            [("HGET", _key("totals", window, shard), "law") for window, shard in shards]
        )
        terms: dict[Window, Counter[str]] = {}
        for (window, _), law in zip(shards, answers, strict=True):
            terms.setdefault(window, Counter()).update(_law(law))
        return terms


def _held(shards: Sequence[Sequence[bytes | None]]) -> Held:
    """A window from cells, law, crowd and time of each of its shards."""
    counts = [_law(law).get("counted", 0) for _, law, _, _ in shards]
    cells = [np.frombuffer(packed, dtype="<i8") for packed, _, _, _ in shards if packed]
    summed = np.stack(cells).sum(axis=0) if cells else np.zeros(0, dtype=np.int64)
    # Totals of before crowds and times were kept have none: nothing is known of them.
    crowds = [int(shard[2] or 0) for shard, counted in zip(shards, counts, strict=True) if counted]
    times = [int(at or 0) for _, _, _, at in shards]
    return Held(summed, sum(counts), min(crowds, default=0), max(times, default=0))


def _law(text: bytes | None) -> dict[str, int]:
    return {term: int(number) for term, number in json.loads(text or b"{}").items()}


def _key(what: str, window: Window, shard: int) -> str:
    return window.key(f"aggregator:{what}", f"#{shard}" if shard else "")


if TAG_BYTES != 16:  # noqa: PLR2004 what the script cuts by
    raise AssertionError("the commit script cuts tags of 16 bytes")
