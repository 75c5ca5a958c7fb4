"""The Merkle tree of a transparency log, and its files for any web server (C2SP tlog-tiles)."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

from hubbub.bundles.transparency_log import Checkpoint, LogProof, node_hash
from hubbub.errors import BadParameter


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """The root of the tree over these leaf hashes. RFC 6962, section 2.1."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = _left_size(len(leaves))
    return node_hash(tree_root(leaves[:split]), tree_root(leaves[split:]))


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes beside a leaf's path, from the leaf to the root. RFC 6962, section 2.1.1."""
    if len(leaves) == 1:
        return []
    split = _left_size(len(leaves))
    if index < split:
        return [*inclusion_proof(leaves[:split], index), tree_root(leaves[split:])]
    return [*inclusion_proof(leaves[split:], index - split), tree_root(leaves[:split])]


def consistency_proof(leaves: Sequence[bytes], before: int, *, whole: bool = True) -> list[bytes]:
    """Proves that the tree grew from its first `before` leaves. RFC 6962, section 2.1.2.

    `whole` is whether the verifier has the former hash of this tree; of a part it may not.
    """
    if before == len(leaves):
        return [] if whole else [tree_root(leaves)]
    split = _left_size(len(leaves))
    if before <= split:
        return [*consistency_proof(leaves[:split], before, whole=whole), tree_root(leaves[split:])]
    former = consistency_proof(leaves[split:], before - split, whole=False)
    return [*former, tree_root(leaves[:split])]


def _left_size(size: int) -> int:
    """The largest power of two below `size`, which is at least 2."""
    return 1 << (size - 1).bit_length() - 1


def prove(
    leaves: Sequence[bytes], index: int, checkpoint: Checkpoint, sizes: Sequence[int]
) -> LogProof:
    """Proves an entry of a log; `sizes` are the log's sizes when earlier bundles were shipped."""
    return LogProof(
        index,
        checkpoint,
        tuple(inclusion_proof(leaves, index)),
        {size: tuple(consistency_proof(leaves, size)) for size in sizes},
    )


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
