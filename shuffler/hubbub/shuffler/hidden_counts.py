"""How many reports a window has, hidden: drawn dummies in its pool, and what the others are told.

The keys are those of the pool (pool.py).
"""

from collections.abc import Collection, Mapping
from typing import Final

from hubbub.conservation import Window
from hubbub.runtime import RedisServer, lua, script
from hubbub.sealing import CountNoise
from hubbub.shuffler.keys import keys_of
from hubbub.shuffler.streams import Stream

_HIDE: Final = lua(__package__, "scripts/hide")


class HiddenCounts:
    """Those of one shuffler's Redis. Methods raise StoreUnavailable if it cannot be asked."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def drawn(self, window: Window, noise: CountNoise) -> int:
        """How many dummies a window has: drawn when it is asked for the first time, by anybody.

        PRIVACY: once, whatever dies when. Who knew two numbers of one window would know more.
        """
        law = window.key("shuffler:law")
        await self._server.durable([("HSETNX", law, "noise", noise.draw())])
        return int(await self._server.ask("HGET", law, "noise"))

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
        asked = [("HGET", window.key("shuffler:law"), "noise") for window in listed]
        told = await self._server.each(asked) if asked else []
        return frozenset(one for one, noise in zip(listed, told, strict=True) if noise is not None)


def told_outside(
    terms: Mapping[Window, Mapping[str, int]],
    streams: Mapping[str, Stream],
    hidden: Collection[Window],
) -> dict[Window, Mapping[str, int]]:
    """The shuffler's terms of the law, as those may know them who must not know a hidden number.

    hidden: windows that have a number drawn. Of those, and of streams that will, they are told what
    left, which the aggregator sees, with the dummies that are expected in place of those that there
    are. Nothing of what waits, or was withheld: a number that is told as it grows, or of those that
    came too late, has no noise.
    """
    told: dict[Window, Mapping[str, int]] = {}
    for window, own in terms.items():
        stream = streams.get(window.stream)
        if window not in hidden and not (stream and stream.noise):
            told[window] = own
            continue
        left = own["acknowledged"] + own["dummies"] - own["pooled"] - own["withheld"]
        expected = stream.expected_dummies if stream else 0
        if left > 0:
            told[window] = {
                **dict.fromkeys(own, 0),
                "acknowledged": left - expected,
                "dummies": expected,
                "in_flight": own["in_flight"],
            }
    return told
