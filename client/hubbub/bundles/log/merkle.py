"""Append-only Merkle trees, and checks of their two kinds of proofs.

Hashes are SHA-256. Trees and proofs are those of RFC 6962, section 2.1; the checks those of RFC
9162, sections 2.1.3.2 and 2.1.4.2.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from hubbub.errors import BadParameter

HASH_BYTES: Final = 32


def leaf_hash(entry: bytes) -> bytes:
    """The hash of an entry, with a first byte that distinguishes it from a node."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of a node with these two subtrees."""
    return sha256(b"\x01" + left + right).digest()


def proven_root(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """The root of a tree with this leaf at `index` (RFC 9162, 2.1.3.2). Raises BadParameter."""
    if not 0 <= index < size:
        raise BadParameter("an entry's place is outside its log")
    return _climb(leaf, proof, index, size - 1, "inclusion")[1]


def refuse_inconsistent(
    before: tuple[int, bytes], after: tuple[int, bytes], proof: Sequence[bytes]
) -> None:
    """Raises BadParameter unless a tree (size from 1, root) grew from another: RFC 9162 2.1.4.2."""
    (size, root), (size_after, root_after) = before, after
    if not 1 <= size <= size_after:
        raise BadParameter(f"a tree of {size} leaves cannot grow to one of {size_after}")
    if size == size_after:
        if proof or root != root_after:
            raise BadParameter("two trees of the same size differ")
        return
    # If the earlier size is a power of two, its root is itself the first subtree.
    path = [root, *proof] if not size & (size - 1) else list(proof)
    if not path:
        raise BadParameter("a proof of consistency is too short")
    place, last = size - 1, size_after - 1
    while place % 2:
        place, last = place >> 1, last >> 1
    computed_root, computed_root_after = _climb(path[0], path[1:], place, last, "consistency")
    if computed_root != root or computed_root_after != root_after:
        raise BadParameter("the later tree does not begin with the earlier tree")


def _climb(
    start: bytes, proof: Sequence[bytes], place: int, last: int, of: str
) -> tuple[bytes, bytes]:
    """The roots above a subtree: of the tree that ends with it, and of the one that ends at `last`.

    `place` and `last` are indexes among subtrees of this height.
    """
    old_root = new_root = start
    for sibling in proof:
        if not last:
            raise BadParameter(f"a proof of {of} is too long")
        if place % 2 or place == last:
            old_root, new_root = node_hash(sibling, old_root), node_hash(sibling, new_root)
            while not place % 2 and place:
                place, last = place >> 1, last >> 1
        else:
            new_root = node_hash(new_root, sibling)
        place, last = place >> 1, last >> 1
    if last:
        raise BadParameter(f"a proof of {of} is too short")
    return old_root, new_root
