"""The files of a log's tree and entries, for any web server (C2SP tlog-tiles)."""

from collections.abc import Iterator, Sequence
from typing import Final

from hubbub.errors import BadParameter
from hubbub.signing.log.tree import tree_root

CHECKPOINT: Final = "checkpoint"
MAX_ENTRIES: Final = 1 << 20
"""More than any operator signs; whoever reads a stranger's log reads no more."""
_WIDTH: Final = 256
_LENGTH_BYTES: Final = 2


def hash_tiles(leaves: Sequence[bytes], *, since: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yields path and content of the hash tiles that changed since the log had `since` entries."""
    level, hashes = 0, list(leaves)
    while hashes:
        first = since // _WIDTH ** (level + 1)
        for number in range(first, -(-len(hashes) // _WIDTH)):
            tile = hashes[number * _WIDTH : (number + 1) * _WIDTH]
            yield _path(str(level), number, len(tile)), b"".join(tile)
        full_tiles = len(hashes) // _WIDTH
        hashes = [tree_root(hashes[n * _WIDTH : (n + 1) * _WIDTH]) for n in range(full_tiles)]
        level += 1


def entry_tiles(size: int) -> list[str]:
    """The paths of the entry files of a log of this size, in order."""
    return [
        _path("entries", first // _WIDTH, min(_WIDTH, size - first))
        for first in range(0, size, _WIDTH)
    ]


def packed_entries(entries: Sequence[bytes], *, since: int = 0) -> Iterator[tuple[str, bytes]]:
    """Yields path and content of the entry files that changed since there were `since` entries."""
    paths = entry_tiles(len(entries))
    for number in range(since // _WIDTH, len(paths)):
        members = entries[number * _WIDTH : (number + 1) * _WIDTH]
        yield (
            paths[number],
            b"".join(len(entry).to_bytes(_LENGTH_BYTES, "big") + entry for entry in members),
        )


def entries_in(packed: bytes) -> list[bytes]:
    """The entries in one entry file. Raises BadParameter if it is cut off."""
    entries, position = [], 0
    while position < len(packed):
        start = position + _LENGTH_BYTES
        position = start + int.from_bytes(packed[position:start], "big")
        if len(packed) < max(position, start):
            raise BadParameter("the file of entries is cut off; copy the log again")
        entries.append(packed[start:position])
    return entries


def content_path(digest: str) -> str:
    """The path of an entry's content, by its SHA-256 in hexadecimal: our own extension."""
    return f"content/{digest}"


def _path(level: str, number: int, width: int) -> str:
    """A tile's path: its number in groups of three digits, and its width if it is not full."""
    groups = [f"{number % 1000:03d}"]
    while number := number // 1000:
        groups.append(f"x{number % 1000:03d}")
    partial = "" if width == _WIDTH else f".p/{width}"
    return f"tile/{level}/{'/'.join(reversed(groups))}{partial}"
