"""Hides the number of reports in a window, in all or per value, by random dummies in its pool.

The keys are listed in pool.py.
"""

from collections.abc import Collection
from typing import Final

from hubbub.conservation import Window
from hubbub.runtime.redis.command_sender import Command, RedisServer, lua, script
from hubbub.sealing.dummy_laws import CountNoise, ValueNoise
from hubbub.shuffler.shards import Place, keys_of

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
