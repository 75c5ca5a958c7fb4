"""Scripts of Redis that die after some of their writes, which stay."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import count

import pytest

from hubbub.conservation import Window, balances
from hubbub.errors import StoreUnavailable
from hubbub.runtime.redis.command_lists import RedisServer
from hubbub.shuffler import hidden_counts
from hubbub.shuffler.crowd_release import sealed_dummies
from hubbub.shuffler.pool import Pool
from hubbub.shuffler.streams import StreamTable
from tests.support.bundles import DAY
from tests.support.mixing import law_of, sealed_reports
from tests.support.moment import now

_WRITES = ("SADD", "SREM", "HSET", "HDEL", "HINCRBY", "RENAME", "PERSIST", "EXPIRE", "DEL")
_TORN = """
local real, left, writes = redis, {left}, {writes}
local redis = setmetatable({{call = function(name, ...)
  if writes[name] then
    if left == 0 then error('torn') end
    left = left - 1
  end
  return real.call(name, ...)
end}}, {{__index = real}})
"""


def torn(script: str, writes: int) -> str:
    """A script that dies after so many writes: what it wrote stays."""
    lua_table = "{" + ", ".join(f"{name} = true" for name in _WRITES) + "}"
    return _TORN.format(left=writes, writes=lua_table) + script


async def writes_until_hidden(
    server: RedisServer,
    table: StreamTable,
    drawn: Callable[[Pool, Window], Awaitable[Sequence[int]]],
    monkeypatch: pytest.MonkeyPatch,
) -> int:
    """Tears the script that hides a number after 0, 1, 2, ... writes: how many it has.

    Another process goes on each time, with seals of its own. `drawn` are the numbers of dummies.
    """
    window, whole = Window("theme", int(now()) // DAY), hidden_counts._HIDE
    for writes in count():
        await server.client.flushdb()
        pools, reports, is_torn = [Pool(server) for _ in range(2)], sealed_reports(90), False
        await pools[0].add({window: reports})
        draws = {tuple(await drawn(pool, window)) for pool in pools * 20}
        assert len(draws) == 1, "whoever asks, and however often"
        number = sum(draws.pop())
        assert not await pools[0].hidden.pooled(window, 49), "none is made yet"
        for pool in pools:
            dummies = sealed_dummies(table, window, table.streams["theme"], number)
            await pool.hidden.keep(window, dummies)
            with monkeypatch.context() as once:
                if pool is pools[0]:
                    once.setattr(hidden_counts, "_HIDE", torn(whole, writes))
                try:
                    assert await pool.hidden.pooled(window, 49)
                except StoreUnavailable:
                    is_torn = True
        law = await law_of(pools[0], window)
        assert (law["pooled"], law["dummies"]) == (len(reports) + number, number)
        uncounted = dict.fromkeys(("counted", "duplicate", "rejected", "fillers"), 0)
        assert balances({**law, **uncounted})
        if not is_torn:
            break
    return writes
