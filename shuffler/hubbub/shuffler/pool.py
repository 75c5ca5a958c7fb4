"""The pool: reports that wait to be mixed, and batches on their way, in Redis.

Every step is one Lua script of scripts/ on the keys of one window, so it happens whole or not at
all, and may be repeated where nobody knows whether it happened. Keys, for a window W =
STREAM:EPOCH, behind the prefix "shuffler:":

    pool:{W}       set of sealed reports: a resent one is the same member
    batches:{W}    hash of the batches in flight: id -> the process that sends it
    batch:{W}:ID   set of the sealed reports of one batch in flight
    crowds:{W}     hash of the crowds that leave whole and are being cut: id -> how many cuts :
    secret crowd:{W}:ID   set of the sealed reports of such a crowd that are in no cut yet; a cut is
    a batch law:{W}        hash: acknowledged, withheld, and takes: how many batches were taken
    windows        set of every W that may hold anything
    over           set of every W that is over and empty; its counters are kept for a while
    closed         set of every W that an operator closed before its time
    unknown        hash of every W that the stream table does not know: W -> since when
    alive:OWNER    there while a process lives that sends batches
"""

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hubbub.accounting import Window
from hubbub.runtime import RedisServer, lua, script
from hubbub.shuffler.mixing_policy import Crowd, Take
from hubbub.shuffler.pool_replies import PoolReplies

__all__ = ["Level", "Pool"]

# A Redis that is full lets a script go on that has begun to write, if it began by taking away: so
# those that make room begin by deleting, if only a field that nobody has.
_ADD, _TAKE, _CLAIM, _DELIVERED, _WITHHOLD, _LEVEL, _COUNTS, _LEAVE, _CUT = (
    lua(__package__, f"scripts/{name}")
    for name in (
        *("add", "take", "claim", "delivered", "withhold", "level", "counts", "leave", "cut"),
    )
)
# Lua's unpack fails past some thousands of arguments.
_CHUNK: Final = 4000
# Reports that one step cuts: some milliseconds, in which Redis does nothing else.
_CUT_AT_ONCE: Final = 1000
# The counters of a window that is over stay readable for so long.
_KEEP_SECONDS: Final = 30 * 86_400
# A process that did not say for so long that it lives has its batches sent by another.
_ALIVE_MS: Final = 4000


class Level(NamedTuple):
    """A pool at one moment."""

    reports: int
    takes: int


class Pool:
    """The shuffler's Redis. Every method raises StoreUnavailable if it cannot be asked."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._owner = secrets.token_bytes(8)
        self._told = PoolReplies()

    async def add(self, reports: Mapping[Window, Sequence[bytes]]) -> None:
        """Put reports into their pools; once this returns they are acknowledged."""
        listed = ("SADD", "shuffler:windows", *(window.name for window in reports))
        added = [
            script(_ADD, _keys(window, "pool", "law"), sealed[first : first + _CHUNK])
            for window, sealed in reports.items()
            for first in range(0, len(sealed), _CHUNK)
        ]
        # Twice: another process may have archived the window in between, as empty.
        await self._server.durable([listed, *added, listed])

    async def take(self, window: Window, take: Take, level: Level) -> bytes | None:
        """Move random reports into a new batch in flight: its id, if the pool holds enough.

        level: as it was when this was decided; if anybody took since, nothing is taken.
        """
        batch_id = secrets.token_bytes(16)
        pool, batches, law = _keys(window, "pool", "batches", "law")
        step = script(
            _TAKE,
            [pool, batches, _batch_key(window, batch_id), law],
            [batch_id.hex(), take.number, take.needs, self._owner, level.takes],
        )
        [taken] = await self._server.execute([step])
        return batch_id if taken else None

    async def leave(self, window: Window, crowd: Crowd, level: Level) -> int:
        """Set the pool apart as a crowd that leaves whole: how many reports, 0 if too few.

        level: as it was when this was decided; if anybody took since, nothing happens.
        """
        crowd_id = secrets.token_bytes(16)
        pool, crowds, law = _keys(window, "pool", "crowds", "law")
        step = script(
            _LEAVE,
            [pool, crowds, _crowd_key(window, crowd_id), law],
            [
                *(crowd_id.hex(), crowd.needs, crowd.cut_reports),
                *(secrets.token_hex(32), level.takes),
            ],
        )
        [left] = await self._server.durable([step])
        return int(left)

    async def crowds(self, window: Window) -> list[bytes]:
        """The ids of the crowds that are being cut, by whomever."""
        names = await self._server.ask("HKEYS", window.key("shuffler:crowds"))
        found = [self._told.batch_id(window, name) for name in names]
        return [one for one in found if one is not None]

    async def cut(self, window: Window, crowd_id: bytes) -> bool:
        """Cut some of a crowd, as its secret says: whether there is more to do.

        Its cuts are batches in flight, ours to send, once all are whole. Several processes may do
        it.
        """
        step = script(
            _CUT,
            [
                *_keys(window, "crowds"),
                _crowd_key(window, crowd_id),
                *_keys(window, "batches"),
            ],
            [crowd_id.hex(), _batch_key(window, b""), _CUT_AT_ONCE, self._owner],
        )
        [more] = await self._server.execute([step])
        return bool(more)

    async def batches(self, window: Window) -> dict[bytes, bytes]:
        """The ids of the window's batches in flight that are ours to send, with who has sent them.

        Ours are those that we took, and those of processes that live no more.
        """
        owners = await self._server.ask("HGETALL", window.key("shuffler:batches"))
        others = set(owners.values()) - {self._owner}
        dead = {o for o in others if not await self._server.ask("EXISTS", _alive(o))}
        ours = {
            self._told.batch_id(window, name): owner
            for name, owner in owners.items()
            if owner == self._owner or owner in dead
        }
        return {batch_id: owner for batch_id, owner in ours.items() if batch_id is not None}

    async def claim(self, window: Window, batch_id: bytes, owner: bytes | None) -> list[bytes]:
        """The sealed reports of a batch in flight, ours to send from now on.

        owner: who has sent it, if that was not us. Empty if it was delivered, or is another's now.
        """
        keys = [*_keys(window, "batches"), _batch_key(window, batch_id)]
        owners = [self._owner, owner or self._owner]
        step = script(_CLAIM, keys, [batch_id.hex(), *owners])
        [sealed] = await self._server.durable([step])
        return list(sealed)

    async def heartbeat(self) -> None:
        """Say that this process lives; to be repeated every second."""
        key = _alive(self._owner)
        # A Redis that is full still prolongs a key, though it takes no new one.
        if not await self._server.ask("PEXPIRE", key, _ALIVE_MS):
            await self._server.ask("SET", key, 1, "PX", _ALIVE_MS)

    async def resign(self) -> None:
        """Say that this process ends: others may send its batches at once."""
        await self._server.ask("DEL", _alive(self._owner))

    async def delivered(self, window: Window, batch_id: bytes) -> None:
        """Forget a batch that the aggregator has counted."""
        keys = [*_keys(window, "batches"), _batch_key(window, batch_id)]
        await self._server.execute([script(_DELIVERED, keys, [batch_id.hex()])])

    async def withhold(self, window: Window, min_batch: float) -> int:
        """Delete and count a pool that holds fewer than the minimum batch: how many those were."""
        step = script(_WITHHOLD, _keys(window, "pool", "law"), [min_batch])
        [few] = await self._server.execute([step])
        return int(few)

    async def level(self, window: Window) -> Level:
        """How many reports the window's pool holds, and how often any were taken."""
        [level] = await self._server.execute([script(_LEVEL, _keys(window, "pool", "law"))])
        return Level(*self._told.level(window, level))

    async def is_empty(self, window: Window) -> bool:
        """Whether the window holds no report, pooled or in flight."""
        return not await self._server.ask("EXISTS", *_keys(window, "pool", "batches", "crowds"))

    async def archive(self, window: Window) -> None:
        """Archive a window that is over and empty; its counters stay readable for a while."""
        # Listed in both or in the first, wherever it ends: on a Cluster they are of two nodes.
        await self._server.durable([("SADD", "shuffler:over", window.name)])
        await self._server.execute(
            [
                ("EXPIRE", *_keys(window, "law"), _KEEP_SECONDS),
                ("SREM", "shuffler:windows", window.name),
                ("HDEL", "shuffler:unknown", window.name),
            ]
        )

    async def unknown_since(self, window: Window, now: float) -> float:
        """When a window was first found not to be in the stream table; now, if it is found now."""
        first = ("HSETNX", "shuffler:unknown", window.name, str(now))
        _, since = await self._server.execute([first, ("HGET", *first[1:3])])
        return self._told.since(since, now)

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
            await self._server.ask("SADD", "shuffler:closed", *(w.name for w in windows))
        return windows

    async def pool_reports(self) -> int:
        """How many reports Redis holds for us, pooled or in flight."""
        return sum((await self.held_of_streams()).values())

    async def held_of_streams(self) -> dict[str, int]:
        """How many of them each stream has."""
        held: Counter[str] = Counter()
        for window, term in (await self._terms(await self.windows())).items():
            held[window.stream] += term["pooled"] + term["in_flight"]
        return dict(held)

    async def memory(self) -> float:
        """Which part of the memory that it may use Redis uses; 0 where it has no limit."""
        return await self._server.memory()

    async def memory_left(self, part: float) -> float:
        """How many bytes are left of this part of what Redis may use; endless without a limit."""
        return await self._server.memory_left(part)

    async def restore_archived(self) -> None:
        """List windows again that were archived though they hold reports.

        A command that waited in a connection long given up can do that to them.
        """
        aside = await self._listed("over")
        terms = await self._terms(aside)
        back = [w.name for w, t in terms.items() if t["pooled"] or t["in_flight"]]
        if back:
            await self._server.ask("SADD", "shuffler:windows", *back)

    async def report_counts(self) -> dict[Window, dict[str, int]]:
        """Per window, the shuffler's terms of the conservation law, each window's of one moment."""
        windows = sorted({*await self._listed("windows"), *await self._listed("over")})
        terms = await self._terms(windows)
        forgotten = [window.name for window in windows if window not in terms]
        if forgotten:
            await self._server.execute(
                [("SREM", f"shuffler:{index}", *forgotten) for index in ("over", "closed")]
            )
        return terms

    async def _terms(self, windows: Sequence[Window]) -> dict[Window, dict[str, int]]:
        """The terms of every window that has any."""
        if not windows:
            return {}
        parts = ("pool", "batches", "law", "crowds")
        answers = await self._server.each(
            [
                script(_COUNTS, _keys(w, *parts), [_batch_key(w, b""), _crowd_key(w, b"")])
                for w in windows
            ]
        )
        return {
            window: self._told.terms(window, numbers)
            for window, numbers in zip(windows, answers, strict=True)
            if numbers
        }

    async def _listed(self, index: str) -> list[Window]:
        names = await self._server.ask("SMEMBERS", f"shuffler:{index}")
        return self._told.windows(index, list(names))


def _keys(window: Window, *parts: str) -> list[str]:
    return [window.key(f"shuffler:{part}") for part in parts]


def _batch_key(window: Window, batch_id: bytes) -> str:
    return f"{window.key('shuffler:batch')}:{batch_id.hex()}"


def _crowd_key(window: Window, crowd_id: bytes) -> str:
    return f"{window.key('shuffler:crowd')}:{crowd_id.hex()}"


def _alive(owner: bytes) -> bytes:
    return b"shuffler:alive:" + owner
