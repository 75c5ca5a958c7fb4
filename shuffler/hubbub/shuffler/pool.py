"""The pool: reports that wait to be mixed, and batches on their way, in Redis.

Every step is one Lua script on the keys of one window, so it happens whole or not at all, and may
be repeated where nobody knows whether it happened. Keys, for a window W = STREAM:EPOCH, behind
the prefix "shuffler:":

    pool:{W}       set of sealed reports: a resent one is the same member
    batches:{W}    hash of the batches in flight: id -> the process that sends it
    batch:{W}:ID   set of the sealed reports of one batch in flight
    law:{W}        hash: acknowledged, withheld, and takes: how many batches were taken
    windows        set of every W that may hold anything
    over           set of every W that is over and empty; its counters are kept for a while
    closed         set of every W that an operator closed before its time
    unknown        hash of every W that the stream table does not know: W -> since when
    alive:OWNER    there while a process lives that sends batches
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hubbub.serving import RedisServer, Window, awaited
from hubbub.shuffler import scripts
from hubbub.shuffler.batch import Take

__all__ = ["Level", "Pool"]

# Lua's unpack fails past some thousands of arguments.
_CHUNK: Final = 4000
# The counters of a window that is over stay readable for so long.
_KEEP_SECONDS: Final = 30 * 86_400
# A process that did not say for so long that it lives has its batches sent by another.
_ALIVE_MS: Final = 4000

_TERMS: Final = ("acknowledged", "pooled", "in_flight", "withheld")


class Level(NamedTuple):
    """A pool at one moment."""

    reports: int
    takes: int


class Pool:
    """The shuffler's Redis. Every method raises StoreUnavailable if it cannot be asked."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._redis = server.client
        self._owner = secrets.token_bytes(8)
        self._take = server.client.register_script(scripts.TAKE)
        self._pooled = server.client.register_script(scripts.POOLED)
        self._hold = server.client.register_script(scripts.HOLD)
        self._withhold = server.client.register_script(scripts.WITHHOLD)
        self._delivered = server.client.register_script(scripts.DELIVERED)
        self._counts = server.client.register_script(scripts.COUNTS)

    async def add(self, reports: Mapping[Window, Sequence[bytes]]) -> None:
        """Put reports into their pools; once this returns they are acknowledged."""
        names = [window.name for window in reports]
        pipe = self._redis.pipeline(transaction=False)
        pipe.sadd("shuffler:windows", *names)
        for window, sealed in reports.items():
            for first in range(0, len(sealed), _CHUNK):
                # The text itself, not its hash: asking first whether Redis knows the hash
                # would cost a second trip.
                pipe.eval(
                    scripts.ADD,
                    2,
                    window.key("shuffler:pool"),
                    window.key("shuffler:law"),
                    *sealed[first : first + _CHUNK],
                )
        # Once more: another process may have laid the window aside in between, as empty.
        pipe.sadd("shuffler:windows", *names)
        await self._server.durable(pipe)

    async def take(self, window: Window, take: Take, level: Level) -> bytes | None:
        """Move random reports into a new batch in flight: its id, if the pool holds enough.

        level: as it was when this was decided; if anybody took since, nothing is taken.
        """
        batch_id = secrets.token_bytes(16)
        async with self._server.errors():
            taken = await self._take(
                keys=[
                    window.key("shuffler:pool"),
                    window.key("shuffler:batches"),
                    _batch_key(window, batch_id),
                    window.key("shuffler:law"),
                ],
                args=[batch_id.hex(), take.number, take.needs, self._owner, level.takes],
            )
        return batch_id if taken else None

    async def batches(self, window: Window) -> dict[bytes, bytes]:
        """The ids of the window's batches in flight that are ours to send, with who has sent them.

        Ours are those that we took, and those of processes that live no more.
        """
        async with self._server.errors():
            owners = await awaited(self._redis.hgetall(window.key("shuffler:batches")))
            others = set(owners.values()) - {self._owner}
            dead = {o for o in others if not await self._redis.exists(b"shuffler:alive:" + o)}
        return {
            bytes.fromhex(batch_id.decode()): owner
            for batch_id, owner in owners.items()
            if owner == self._owner or owner in dead
        }

    async def hold(self, window: Window, batch_id: bytes, owner: bytes | None) -> list[bytes]:
        """The sealed reports of a batch in flight, ours to send from now on.

        owner: who has sent it, if that was not us. Empty if it was delivered, or is another's now.
        """
        pipe = self._redis.pipeline(transaction=False)
        await self._hold(
            keys=[window.key("shuffler:batches"), _batch_key(window, batch_id)],
            args=[batch_id.hex(), self._owner, owner or self._owner],
            client=pipe,
        )
        [sealed] = await self._server.durable(pipe)
        return list(sealed)

    async def live(self) -> None:
        """Say that this process lives; to be repeated every second."""
        key = b"shuffler:alive:" + self._owner
        async with self._server.errors():
            # A Redis that is full still prolongs a key, though it takes no new one.
            if not await self._redis.pexpire(key, _ALIVE_MS):
                await self._redis.set(key, 1, px=_ALIVE_MS)

    async def leave(self) -> None:
        """Say that this process ends: others may send its batches at once."""
        async with self._server.errors():
            await self._redis.delete(b"shuffler:alive:" + self._owner)

    async def delivered(self, window: Window, batch_id: bytes) -> None:
        """Forget a batch that the aggregator has counted."""
        async with self._server.errors():
            await self._delivered(
                keys=[window.key("shuffler:batches"), _batch_key(window, batch_id)],
                args=[batch_id.hex()],
            )

    async def withhold(self, window: Window, min_batch: float) -> int:
        """Delete and count a pool that holds fewer than the minimum batch: how many those were."""
        async with self._server.errors():
            return int(
                await self._withhold(
                    keys=[window.key("shuffler:pool"), window.key("shuffler:law")], args=[min_batch]
                )
            )

    async def level(self, window: Window) -> Level:
        """How many reports the window's pool holds, and how often any were taken."""
        keys = [window.key("shuffler:pool"), window.key("shuffler:law")]
        async with self._server.errors():
            return Level(*map(int, await self._pooled(keys=keys)))

    async def is_empty(self, window: Window) -> bool:
        """Whether the window holds no report, pooled or in flight."""
        async with self._server.errors():
            return not await self._redis.exists(
                window.key("shuffler:pool"), window.key("shuffler:batches")
            )

    async def lay_aside(self, window: Window) -> None:
        """Lay a window that is over and empty aside; its counters stay readable for a while."""
        async with self._server.errors():
            pipe = self._redis.pipeline(transaction=False)
            pipe.expire(window.key("shuffler:law"), _KEEP_SECONDS)
            pipe.smove("shuffler:windows", "shuffler:over", window.name)
            pipe.hdel("shuffler:unknown", window.name)
            await pipe.execute()

    async def unknown_since(self, window: Window, now: float) -> float:
        """When a window was first found not to be in the stream table; now, if it is found now."""
        async with self._server.errors():
            await awaited(self._redis.hsetnx("shuffler:unknown", window.name, str(now)))
            return float(await awaited(self._redis.hget("shuffler:unknown", window.name)) or now)

    async def windows(self) -> list[Window]:
        """Every window that may hold anything."""
        return await self._listed("windows")

    async def closed(self) -> frozenset[Window]:
        """The windows that an operator closed before their time."""
        return frozenset(await self._listed("closed"))

    async def close_windows(self) -> list[Window]:
        """Close every window now: what holds its minimum batch goes out whole, less is withheld."""
        windows = await self.windows()
        if windows:
            async with self._server.errors():
                await awaited(
                    self._redis.sadd("shuffler:closed", *(window.name for window in windows))
                )
        return windows

    async def held(self) -> int:
        """How many reports Redis holds for us, pooled or in flight."""
        terms = await self._terms(await self.windows())
        return sum(term["pooled"] + term["in_flight"] for term in terms.values())

    async def memory(self) -> float:
        """Which part of the memory that it may use Redis uses; 0 where it has no limit."""
        return await self._server.memory()

    async def relist(self) -> None:
        """List windows again that were laid aside though they hold reports.

        A command that waited in a connection long given up can do that to them.
        """
        aside = await self._listed("over")
        terms = await self._terms(aside)
        back = [w.name for w, t in terms.items() if t["pooled"] or t["in_flight"]]
        if back:
            async with self._server.errors():
                await awaited(self._redis.sadd("shuffler:windows", *back))

    async def law(self) -> dict[Window, dict[str, int]]:
        """Per window, the shuffler's terms of the conservation law, each window's of one moment."""
        windows = sorted({*await self._listed("windows"), *await self._listed("over")})
        terms = await self._terms(windows)
        forgotten = [window.name for window in windows if window not in terms]
        if forgotten:
            async with self._server.errors():
                await awaited(self._redis.srem("shuffler:over", *forgotten))
                await awaited(self._redis.srem("shuffler:closed", *forgotten))
        return terms

    async def _terms(self, windows: Sequence[Window]) -> dict[Window, dict[str, int]]:
        """The terms of every window that has any."""
        if not windows:
            return {}
        async with self._server.errors():
            pipe = self._redis.pipeline(transaction=False)
            for window in windows:
                keys = [window.key(f"shuffler:{what}") for what in ("pool", "batches", "law")]
                await self._counts(keys=keys, args=[_batch_key(window, b"")], client=pipe)
            answers = await pipe.execute()
        return {
            window: dict(zip(_TERMS, map(int, numbers), strict=True))
            for window, numbers in zip(windows, answers, strict=True)
            if numbers
        }

    async def _listed(self, index: str) -> list[Window]:
        async with self._server.errors():
            names = await awaited(self._redis.smembers(f"shuffler:{index}"))
        return sorted(map(Window.parse, names))


def _batch_key(window: Window, batch_id: bytes) -> str:
    return f"{window.key('shuffler:batch')}:{batch_id.hex()}"
