"""Crowds in Redis: set apart, padded with dummies, and cut into batches; each step one script.

The keys are those of the pool (pool.py).
"""

import secrets
from collections.abc import Sequence
from typing import Final

from hubbub.conservation import Window
from hubbub.runtime import RedisServer, lua, script
from hubbub.shuffler.hidden_counts import settle
from hubbub.shuffler.keys import batch_key, crowd_key, keys_of
from hubbub.shuffler.mixing_policy import CrowdTake
from hubbub.shuffler.pool_replies import Level, PoolReplies
from hubbub.shuffler.shards import Place, places

_LEAVE, _CUT = (lua(__package__, f"scripts/{name}") for name in ("leave", "cut"))
# Lua's unpack fails past some thousands of arguments, and Redis is held up by long commands.
_CHUNK: Final = 4000
# Reports that one step cuts: some ten milliseconds, in which Redis does nothing else.
_CUT_AT_ONCE: Final = 2000
# Dummies that no crowd took; who needs some later makes others.
_STAGED_SECONDS: Final = 86_400


class Crowds:
    """The crowds of one shuffler's Redis. Methods raise StoreUnavailable if it cannot be asked.

    owner: the process whose the batches are that a crowd is cut into.
    """

    def __init__(self, server: RedisServer, owner: bytes, replies: PoolReplies) -> None:
        self._server = server
        self._owner = owner
        self._told = replies

    async def stage(self, window: Window, crowd_id: bytes, sealed: Sequence[bytes] = ()) -> int:
        """Keep sealed dummies for a crowd that will have this id: how many it has.

        Plain commands: no half of them comes back after a crash, as half of a script may.
        """
        key = crowd_key(window, crowd_id, "dummies")
        added = [
            ("SADD", key, *sealed[first : first + _CHUNK])
            for first in range(0, len(sealed), _CHUNK)
        ]
        commands = [*added, ("EXPIRE", key, _STAGED_SECONDS)] if added else []
        *_, size = await self._server.durable([*commands, ("SCARD", key)])
        return int(size)

    async def unstage(self, window: Window, crowd_id: bytes) -> None:
        """Forget the dummies of a crowd that will not leave."""
        await self._server.ask("UNLINK", crowd_key(window, crowd_id, "dummies"))

    async def leave(
        self,
        window: Window,
        crowd: CrowdTake,
        level: Level,
        crowd_id: bytes | None = None,
        *,
        shards: int = 1,
    ) -> int:
        """Set the pool apart as a crowd that leaves whole: how many reports, 0 if too few.

        level: as it was when this was decided; if anybody took since, nothing happens. crowd_id:
        what its dummies were kept for; it leaves with as many as it takes, or not at all. shards:
        that the window has; of several it is the first's part, and `gather` sets the others' apart.
        """
        crowd_id = crowd_id or secrets.token_bytes(16)
        return max(0, await self._set_apart(window, crowd, level, crowd_id, shards))

    async def gathering(self, window: Window) -> list[bytes]:
        """The ids of crowds of several shards that are not whole yet; one, if any."""
        names = await self._server.ask("HKEYS", window.key("shuffler:gathering"))
        ids = [self._told.batch_id(window, name) for name in names]
        return [crowd_id for crowd_id in ids if crowd_id is not None]

    async def gather(
        self, window: Window, crowd: CrowdTake, levels: Sequence[Level], crowd_id: bytes
    ) -> None:
        """Set apart what every shard has of a crowd; after this it is whole, and may be cut.

        levels: of each shard, read before `gathering` named the crowd. Where one has changed since,
        the crowd is gathered on at the next look. May be repeated, by anybody.
        """
        for place, level in zip(places(window, len(levels)), levels, strict=True):
            if await self._set_apart(place, crowd, level, crowd_id, 0) < 0:
                return
        gathering = window.key("shuffler:gathering")
        await self._server.durable([("HDEL", gathering, crowd_id.hex())])

    async def _set_apart(
        self, place: Place, crowd: CrowdTake, level: Level, crowd_id: bytes, shards: int
    ) -> int:
        pool, crowds, law, gathering = keys_of(place, "pool", "crowds", "law", "gathering")
        own = (crowd_key(place, crowd_id), crowd_key(place, crowd_id, "dummies"))
        step = script(
            _LEAVE,
            [pool, crowds, own[0], law, own[1], gathering],
            [
                crowd_id.hex(),
                crowd.needs if shards == 1 else 0,
                crowd.cut_reports,
                secrets.token_hex(32),
                level.takes,
                crowd.dummies,
                shards,
                crowd.hidden,
            ],
        )
        settled = [settle(place)] if crowd.hidden else []
        count, *_ = await self._server.durable([step, *settled])
        return int(count)

    async def ids(self, place: Place) -> list[bytes]:
        """The ids of the crowds that are being cut, by whomever."""
        names = await self._server.ask("HKEYS", place.key("shuffler:crowds"))
        batch_ids = [self._told.batch_id(place, name) for name in names]
        return [crowd_id for crowd_id in batch_ids if crowd_id is not None]

    async def cut(self, place: Place, crowd_id: bytes, cursor: bytes = b"0") -> bytes | None:
        """Cut some of a crowd, as its secret says: where to go on, None once it is done.

        cursor: where the last step said to go on. Its cuts are batches in flight, ours to send,
        once all are whole. Several processes may do it, each from the beginning.
        """
        step = script(
            _CUT,
            [
                *keys_of(place, "crowds"),
                crowd_key(place, crowd_id),
                *keys_of(place, "batches"),
                crowd_key(place, crowd_id, "dummies"),
                *keys_of(place, "pool", "shares", "law"),
            ],
            [
                crowd_id.hex(),
                batch_key(place, b""),
                _CUT_AT_ONCE,
                self._owner,
                _STAGED_SECONDS,
                cursor,
            ],
        )
        [more] = await self._server.execute([step])
        return None if more is None else bytes(more)
