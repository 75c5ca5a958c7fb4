"""Tags as commit.lua takes and keeps them: in the order of their places, in buckets of hashes."""

from typing import Any, Final

import numpy as np

from hubbub.catalog import TAG_BYTES

if TAG_BYTES != 16:  # noqa: PLR2004 what the script cuts by
    raise AssertionError("commit.lua cuts tags of 16 bytes")
# Of a tag so many bytes are kept, in so many buckets a hash.
_END_BYTES: Final = 9
_BUCKETS: Final = 1 << 14
# Four numbers to multiply by and one to add, of 64 bits.
SALT_BYTES: Final = 40


def in_places(tags: bytes, salt: bytes) -> list[Any]:
    """Tags in the order of their places, with their ends, and places.

    A place is a hash that is strongly universal whatever the tags, which nobody guesses without the
    salt. Source: Dietzfelbinger 1996, Universal hashing and k-wise independent random variables.
    """
    multipliers = np.frombuffer(salt, dtype="<u8")
    words = np.frombuffer(tags, dtype="<u4").reshape(-1, 4).astype(np.uint64)
    places = (((words * multipliers[:4]).sum(axis=1) + multipliers[4]) >> 32).astype("<u4")
    order = np.argsort(places, kind="stable")
    ordered = np.frombuffer(tags, dtype="V16")[order].tobytes()
    ends = np.frombuffer(ordered, dtype=np.uint8).reshape(-1, TAG_BYTES)[:, -_END_BYTES:].tobytes()
    return [ordered, ends, places[order].tobytes()]


def bucket_keys(tags: str, generations: bytes) -> list[str]:
    """The keys of all buckets, from how many each generation has."""
    keys = []
    for generation, part in enumerate(generations.split(), start=1):
        packed = b"=" in part
        buckets = int(part.split(b"=" if packed else b":")[0])
        places = range(-(-buckets // _BUCKETS) if packed else buckets)
        kinds = ("",) if packed else ("", "+")
        keys += [f"{tags}:{generation}.{place}{kind}" for place in places for kind in kinds]
    return keys
