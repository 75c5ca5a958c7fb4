"""What tests add to a store, and what it holds in one window."""

import secrets
import struct
from collections.abc import Sequence
from typing import Any

from hubbub.aggregator.store.contract import Commit, Integers, TotalsStore, WindowTotals
from hubbub.conservation import Window
from hubbub.mechanisms import Totals

LATER = 4 * 10**9
"""When no test runs any more, in seconds since 1970."""


def commit_of(tags: Sequence[bytes], cells: Integers, **fields: Any) -> Commit:
    """A batch of its own, of which nothing was refused; `fields` of a Commit replace that."""
    batch_fields = {"batch_id": secrets.token_bytes(16), "duplicates": 0, "rejected": {}}
    return Commit(tags=tags, cells=cells, **{**batch_fields, "seen_until": LATER, **fields})


def totals_of(sums: WindowTotals) -> Totals:
    """What a mechanism makes estimates of."""
    return Totals(cells=sums.cells.tolist(), reports=sums.counted, dummies=sums.dummies)


async def totals(store: TotalsStore, window: Window) -> Totals:
    [window_sums] = await store.read([window])
    return totals_of(window_sums)


async def batch_reports(store: TotalsStore, window: Window) -> int:
    [window_sums] = await store.read([window])
    return window_sums.batch_reports


async def keep_in_sets(client: Any, window: Window, tags: Sequence[bytes], buckets: int) -> None:
    """Replaces a window's tags by sets of integers, the form before hashes of buckets."""
    key = window.key("aggregator:tags")
    salt = struct.unpack("<5Q", await client.hget(key, "salt"))
    await client.unlink(*[set_key async for set_key in client.scan_iter(f"{key}:*")])
    changes = client.pipeline(transaction=False)
    for tag in tags:
        words = struct.unpack("<4I", tag)
        hashed = sum(a * b for a, b in zip(words, salt[:4], strict=True)) + salt[4]
        place = f"{key}:1.{(hashed % 2**64 >> 32) * buckets >> 32}"
        changes.sadd(place, int.from_bytes(tag[8:], "little", signed=True))
        changes.sadd(f"{place}+", int.from_bytes(tag[6:8], "little", signed=True))
    await changes.execute()
    await client.hset(key, "generations", f"{buckets}:{len(tags)}")
