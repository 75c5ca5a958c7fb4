"""What a store holds in one window, as tests ask it."""

import struct
from collections.abc import Sequence
from typing import Any

from hubbub.aggregator.store.contract import TotalsStore
from hubbub.conservation import Window
from hubbub.mechanisms import Totals


async def totals(store: TotalsStore, window: Window) -> Totals:
    [window_sums] = await store.read([window])
    return window_sums.totals


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
