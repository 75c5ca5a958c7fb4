"""How many reports a window has, or name a value, hidden: drawn dummies in its pool.

The keys are those of the pool (pool.py).
"""

from collections.abc import Collection
from typing import Final

from hubbub.conservation import Window
from hubbub.runtime import Command, RedisServer, lua, script
from hubbub.sealing import CountNoise
from hubbub.shuffler.keys import keys_of
from hubbub.shuffler.shards import Place

_HIDE: Final = lua(__package__, "scripts/hide")
_SETTLE: Final = lua(__package__, "scripts/settle")


class HiddenCounts:
    """Those of one shuffler's Redis. Methods raise StoreUnavailable if it cannot be asked."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def drawn(self, window: Window, noise: CountNoise) -> int:
        """How many dummies a window has: drawn when it is asked for the first time, by anybody.

        0 once its crowd has left: the number is deleted then.

        PRIVACY: once, whatever dies when. Who knew two numbers of one window would know more.
        """
        law = window.key("shuffler:law")
        await self._server.durable([("HSETNX", law, "noise", noise.draw())])
        return int(await self._server.ask("HGET", law, "noise") or 0)

    async def named(self, window: Window, law: CountNoise, values: int) -> list[int]:
        """How many dummies each of so many values has: drawn once, as in `drawn`, then none."""
        key = window.key("shuffler:law")
        text = ",".join(str(law.draw()) for _ in range(values))
        await self._server.durable([("HSETNX", key, "named", text)])
        drawn = await self._server.ask("HGET", key, "named")
        return [int(number) for number in drawn.split(b",")] if drawn else []

    async def keep(self, window: Window, sealed: Collection[bytes]) -> None:
        """Keep a window's dummies, unless others are kept. All at once, by one plain command."""
        key = window.key("shuffler:noise")
        await self._server.durable([("HSETNX", key, "sealed", b"".join(sealed))])

    async def pooled(self, window: Window, sealed_bytes: int) -> bool:
        """Put what is kept into the pool, once: whether it is there."""
        step = script(_HIDE, keys_of(window, "pool", "law", "noise"), [sealed_bytes])
        [there] = await self._server.durable([step])
        return bool(there)

    async def has_left(self, window: Window) -> bool:
        """Whether its crowd has left or was withheld, after which nothing leaves."""
        return await self._server.ask("HGET", window.key("shuffler:law"), "left") is not None

    async def windows(self, windows: Collection[Window]) -> frozenset[Window]:
        """Those of them that have a number drawn, whatever the stream table says by now."""
        listed = list(windows)
        commands = [("HMGET", window.key("shuffler:law"), "noise", "named") for window in listed]
        replies = await self._server.each(commands) if commands else []
        return frozenset(
            window for window, drawn in zip(listed, replies, strict=True) if drawn != [None, None]
        )


def settle(place: Place, *, over: bool = False) -> Command:
    """Forgets a place's secret numbers once its crowd has left or was withheld.

    over: also where neither happened; then nothing leaves any more.
    """
    return script(_SETTLE, keys_of(place, "law"), [int(over)])
