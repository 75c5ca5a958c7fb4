"""Crowds and hidden counts in Redis: crowds set apart, padded with dummies, and cut into batches.

Each step is one script. Random dummies hide the number of reports in a window, in all or per value.
The keys are listed in pool.py.
"""

import secrets
from collections.abc import Collection, Sequence
from typing import Final, Literal

from hubbub.conservation import Window
from hubbub.runtime.redis.command_sender import Command, RedisServer, lua, script
from hubbub.sealing.dummy_laws import CountNoise, ValueNoise
from hubbub.shuffler.mixing_policy import CrowdTake
from hubbub.shuffler.pool_replies import Level, PoolReplies
from hubbub.shuffler.shards import Place, chunks, keys_of, places, set_key

_HIDE: Final = lua(__package__, "scripts/hide")
_SETTLE: Final = lua(__package__, "scripts/settle")


class HiddenCounts:
    """The hidden counts in one shuffler's Redis. Methods raise StoreUnavailable."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def draw_number(self, window: Window, noise: CountNoise) -> int:
        """The number of dummies of a window, drawn at the first call by any process.

        It is 0 once the crowd has left: the number is deleted then.

        PRIVACY: it is drawn once, whatever crashes: two numbers for one window would tell more.
        """
        return int(await self._store_once(window, "noise", noise.draw()) or 0)

    async def draw_by_value(self, window: Window, law: ValueNoise) -> list[int]:
        """The number of dummies of each value, drawn once as in `drawn`; empty once deleted."""
        text = await self._store_once(window, "named", ",".join(map(str, law.draw())))
        return [int(number) for number in text.split(b",")] if text else []

    async def _store_once(self, window: Window, field: str, drawn_count: int | str) -> bytes:
        """Stores what was drawn unless the field has a value; returns the field's value."""
        key = window.key("shuffler:law")
        await self._server.durable([("HSETNX", key, field, drawn_count)])
        return await self._server.ask("HGET", key, field) or b""

    async def keep(self, window: Window, sealed: Collection[bytes]) -> None:
        """Stores a window's dummies in one plain command, unless it has some."""
        key = window.key("shuffler:noise")
        await self._server.durable([("HSETNX", key, "sealed", b"".join(sealed))])

    async def move_to_pool(self, window: Window, sealed_bytes: int) -> bool:
        """Moves the stored dummies into the pool, once; returns whether they are there."""
        step = script(_HIDE, keys_of(window, "pool", "law", "noise"), [sealed_bytes])
        [count] = await self._server.durable([step])
        return bool(count)

    async def has_left(self, window: Window) -> bool:
        """Whether the window's crowd has left or was withheld; after that nothing leaves."""
        return await self._server.ask("HGET", window.key("shuffler:law"), "left") is not None

    async def windows(self, windows: Collection[Window]) -> frozenset[Window]:
        """Those windows for which a number was drawn, whatever the stream table says now."""
        commands = [("HMGET", w.key("shuffler:law"), "noise", "named") for w in windows]
        replies = await self._server.ask_each(commands) if commands else []
        answers = zip(windows, replies, strict=True)
        return frozenset(window for window, drawn in answers if drawn != [None, None])


def settle(place: Place, *, is_over: bool = False) -> Command:
    """The command that deletes a place's secret numbers once its crowd has left or was withheld.

    If `is_over`, they are deleted in any case; then nothing leaves any more.
    """
    return script(_SETTLE, keys_of(place, "law"), [int(is_over)])


_LEAVE, _CUT = (lua(__package__, f"scripts/{name}") for name in ("leave", "cut"))
# Reports that one step cuts: about 10 ms, in which Redis does nothing else.
_CUT_AT_ONCE: Final = 2000
# Unused dummies expire; a later crowd gets new ones.
_STAGED_SECONDS: Final = 86_400


class Crowds:
    """The crowds in one shuffler's Redis. Methods raise StoreUnavailable if it cannot be asked.

    `owner` is the process that sends the batches that a crowd is cut into.
    """

    def __init__(self, server: RedisServer, owner: bytes, replies: PoolReplies) -> None:
        self._server = server
        self._owner = owner
        self._replies = replies

    async def stage(self, window: Window, crowd_id: bytes, sealed: Sequence[bytes] = ()) -> int:
        """Stores sealed dummies for the crowd that will have this id; returns how many it has.

        Plain commands are used: half of a script might be restored after a crash, half of these
        not.
        """
        key = set_key(window, "dummies", crowd_id)
        added = [("SADD", key, *part) for part in chunks(sealed)]
        commands = [*added, ("EXPIRE", key, _STAGED_SECONDS)] if added else []
        *_, size = await self._server.durable([*commands, ("SCARD", key)])
        return int(size)

    async def unstage(self, window: Window, crowd_id: bytes) -> None:
        """Deletes the dummies of a crowd that will not leave."""
        await self._server.ask("UNLINK", set_key(window, "dummies", crowd_id))

    async def leave(
        self,
        window: Window,
        crowd: CrowdTake,
        level: Level,
        crowd_id: bytes | None = None,
        *,
        shards: int = 1,
    ) -> int:
        """Sets the whole pool apart as a crowd; returns its number of reports, 0 if too few.

        `level` is the pool's state when this was decided: if anybody took reports since, nothing
        happens. `crowd_id` is the one its dummies were staged for; it leaves with all of them or
        not at all. If `shards` exceeds 1, this sets the first shard apart, and `gather` the others.
        """
        crowd_id = crowd_id or secrets.token_bytes(16)
        return max(0, await self._set_apart(window, crowd, level, crowd_id, shards))

    async def gather(
        self, window: Window, crowd: CrowdTake, levels: Sequence[Level], crowd_id: bytes
    ) -> None:
        """Sets apart every shard's part of a crowd; then it is complete and may be cut.

        `levels` are the states of the shards, read before `gathering` named the crowd. If one has
        changed since, gathering goes on at the next look. Any process may repeat this.
        """
        for place, level in zip(places(window, len(levels)), levels, strict=True):
            if await self._set_apart(place, crowd, level, crowd_id, 0) < 0:
                return
        await self._server.durable([("HDEL", window.key("shuffler:gathering"), crowd_id.hex())])

    async def _set_apart(
        self, place: Place, crowd: CrowdTake, level: Level, crowd_id: bytes, shards: int
    ) -> int:
        pool, crowds, law, gathering = keys_of(place, "pool", "crowds", "law", "gathering")
        reports, dummies = (set_key(place, part, crowd_id) for part in ("crowd", "dummies"))
        keys = [pool, crowds, reports, law, dummies, gathering]
        needs = crowd.needs if shards == 1 else 0
        cutting = needs, crowd.cut_reports, secrets.token_hex(32), level.takes
        arguments = [crowd_id.hex(), *cutting, crowd.dummies, shards, crowd.hidden]
        step = script(_LEAVE, keys, arguments)
        settled = [settle(place)] if crowd.hidden else []
        count, *_ = await self._server.durable([step, *settled])
        return int(count)

    async def ids(
        self, place: Place, part: Literal["crowds", "gathering"] = "crowds"
    ) -> list[bytes]:
        """The ids of the crowds that are being cut, by any process.

        With "gathering", of the crowds of several shards that are not complete yet; at most one.
        """
        names = await self._server.ask("HKEYS", place.key(f"shuffler:{part}"))
        ids = [self._replies.batch_id(place, name) for name in names]
        return [crowd_id for crowd_id in ids if crowd_id is not None]

    async def cut(self, place: Place, crowd_id: bytes, cursor: bytes = b"0") -> bytes | None:
        """Cuts part of a crowd into batches; returns the cursor of the next step, None at the end.

        The batches are ours to send once all are complete. Several processes may cut one crowd,
        each from the beginning: which reports go together follows from the crowd's secret.
        """
        crowds, batches, *others = keys_of(place, "crowds", "batches", "pool", "shares", "law")
        reports, dummies = (set_key(place, part, crowd_id) for part in ("crowd", "dummies"))
        keys = [crowds, reports, batches, dummies, *others]
        limits = set_key(place, "batch"), _CUT_AT_ONCE, self._owner, _STAGED_SECONDS
        step = script(_CUT, keys, [crowd_id.hex(), *limits, cursor])
        [next_cursor] = await self._server.execute([step])
        return None if next_cursor is None else bytes(next_cursor)
