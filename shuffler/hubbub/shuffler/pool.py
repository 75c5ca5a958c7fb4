"""The pool: reports that wait to be mixed, and batches on their way, in Redis.

Every step is one Lua script on the keys of one window, so it happens whole or not at all. Keys,
for a window W = STREAM:EPOCH, behind the prefix "shuffler:":

    pool:{W}       set of sealed reports: a resent one is the same member
    batches:{W}    set of the ids of batches in flight
    batch:{W}:ID   set of the sealed reports of one batch in flight
    law:{W}        hash: acknowledged, withheld
    windows        set of every W that may hold anything
    over           set of every W that is over and empty; its counters are kept for a while
    closed         set of every W that an operator closed before its time
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Final

import redis.asyncio

from hubbub.serving import Window, awaited, store_errors
from hubbub.shuffler.batch import Take

__all__ = ["Pool"]

# Lua's unpack fails past some thousands of arguments.
_CHUNK: Final = 4000
# The counters of a window that is over stay readable for so long.
_KEEP_SECONDS: Final = 30 * 86_400

_ADD: Final = """
local added = redis.call('SADD', KEYS[1], unpack(ARGV))
redis.call('HINCRBY', KEYS[2], 'acknowledged', added)
return added
"""

_TAKE: Final = """
if redis.call('SCARD', KEYS[1]) < tonumber(ARGV[3]) then return 0 end
local left, taken = tonumber(ARGV[2]), 0
while left > 0 do
  local some = redis.call('SPOP', KEYS[1], math.min(left, 4000))
  if #some == 0 then break end
  redis.call('SADD', KEYS[3], unpack(some))
  left, taken = left - #some, taken + #some
end
redis.call('SADD', KEYS[2], ARGV[1])
return taken
"""

_WITHHOLD: Final = """
local few = redis.call('SCARD', KEYS[1])
if few >= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
redis.call('HINCRBY', KEYS[2], 'withheld', few)
return few
"""

_COUNTS: Final = """
if redis.call('EXISTS', KEYS[3]) == 0 then return {} end
local flying = 0
for _, id in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  flying = flying + redis.call('SCARD', ARGV[1] .. id)
end
local law = redis.call('HMGET', KEYS[3], 'acknowledged', 'withheld')
return {tonumber(law[1] or 0), redis.call('SCARD', KEYS[1]), flying, tonumber(law[2] or 0)}
"""


class Pool:
    """The shuffler's Redis. Every method raises StoreUnavailable if it cannot be asked."""

    def __init__(self, client: redis.asyncio.Redis, url: str) -> None:
        self._redis = client
        self._url = url
        self._take = client.register_script(_TAKE)
        self._withhold = client.register_script(_WITHHOLD)
        self._counts = client.register_script(_COUNTS)

    async def add(self, reports: Mapping[Window, Sequence[bytes]]) -> None:
        """Put reports into their pools; once this returns they are acknowledged."""
        with store_errors(self._url):
            pipe = self._redis.pipeline(transaction=False)
            pipe.sadd("shuffler:windows", *(window.name for window in reports))
            for window, sealed in reports.items():
                for first in range(0, len(sealed), _CHUNK):
                    # The text itself, not its hash: asking first whether Redis knows the hash
                    # would cost a second trip.
                    pipe.eval(
                        _ADD,
                        2,
                        window.key("shuffler:pool"),
                        window.key("shuffler:law"),
                        *sealed[first : first + _CHUNK],
                    )
            await pipe.execute()

    async def take(self, window: Window, take: Take) -> bytes | None:
        """Move random reports into a new batch in flight: its id, if the pool holds enough."""
        batch_id = secrets.token_bytes(16)
        with store_errors(self._url):
            taken = await self._take(
                keys=[
                    window.key("shuffler:pool"),
                    window.key("shuffler:batches"),
                    _batch_key(window, batch_id),
                ],
                args=[batch_id.hex(), take.number, take.needs],
            )
        return batch_id if taken else None

    async def batches(self, window: Window) -> list[bytes]:
        """The ids of the window's batches in flight."""
        with store_errors(self._url):
            ids = await awaited(self._redis.smembers(window.key("shuffler:batches")))
        return [bytes.fromhex(batch_id.decode()) for batch_id in ids]

    async def batch(self, window: Window, batch_id: bytes) -> list[bytes]:
        """The sealed reports of a batch in flight."""
        with store_errors(self._url):
            return list(await awaited(self._redis.smembers(_batch_key(window, batch_id))))

    async def delivered(self, window: Window, batch_id: bytes) -> None:
        """Forget a batch that the aggregator has counted."""
        with store_errors(self._url):
            pipe = self._redis.pipeline(transaction=True)
            pipe.delete(_batch_key(window, batch_id))
            pipe.srem(window.key("shuffler:batches"), batch_id.hex())
            await pipe.execute()

    async def withhold(self, window: Window, min_batch: int) -> int:
        """Delete and count a pool that holds fewer than the minimum batch: how many those were."""
        with store_errors(self._url):
            return int(
                await self._withhold(
                    keys=[window.key("shuffler:pool"), window.key("shuffler:law")], args=[min_batch]
                )
            )

    async def pooled(self, window: Window) -> int:
        """How many reports the window's pool holds."""
        with store_errors(self._url):
            return int(await awaited(self._redis.scard(window.key("shuffler:pool"))))

    async def lay_aside(self, window: Window) -> None:
        """Lay a window that is over and empty aside; its counters stay readable for a while."""
        with store_errors(self._url):
            pipe = self._redis.pipeline(transaction=False)
            pipe.expire(window.key("shuffler:law"), _KEEP_SECONDS)
            pipe.smove("shuffler:windows", "shuffler:over", window.name)
            await pipe.execute()

    async def windows(self) -> list[Window]:
        """Every window that may hold anything."""
        with store_errors(self._url):
            return sorted(
                map(Window.parse, await awaited(self._redis.smembers("shuffler:windows")))
            )

    async def closed(self) -> frozenset[Window]:
        """The windows that an operator closed before their time."""
        with store_errors(self._url):
            return frozenset(
                map(Window.parse, await awaited(self._redis.smembers("shuffler:closed")))
            )

    async def close_windows(self) -> list[Window]:
        """Close every window now: what holds its minimum batch goes out whole, less is withheld."""
        windows = await self.windows()
        if windows:
            with store_errors(self._url):
                await awaited(
                    self._redis.sadd("shuffler:closed", *(window.name for window in windows))
                )
        return windows

    async def law(self) -> dict[Window, dict[str, int]]:
        """Per window, the shuffler's terms of the conservation law, each window's of one moment."""
        with store_errors(self._url):
            names = await awaited(self._redis.sunion(["shuffler:windows", "shuffler:over"]))
            terms = {
                window: await self._terms(window) for window in sorted(map(Window.parse, names))
            }
            for window in [window for window, found in terms.items() if not found]:
                for index in ("over", "closed"):
                    await awaited(self._redis.srem(f"shuffler:{index}", window.name))
                del terms[window]
        return terms

    async def _terms(self, window: Window) -> dict[str, int]:
        numbers = await self._counts(
            keys=[
                window.key("shuffler:pool"),
                window.key("shuffler:batches"),
                window.key("shuffler:law"),
            ],
            args=[_batch_key(window, b"")],
        )
        names = ("acknowledged", "pooled", "in_flight", "withheld")
        return dict(zip(names, map(int, numbers), strict=True)) if numbers else {}


def _batch_key(window: Window, batch_id: bytes) -> str:
    return f"{window.key('shuffler:batch')}:{batch_id.hex()}"
