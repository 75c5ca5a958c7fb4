"""The proof that a log contains a bundle: its index, a checkpoint, and how the log grew.

It is the bundle's third line. The logged entry of a bundle is the SHA-256 of the first two lines.
A log is an append-only Merkle tree. Hashes are SHA-256. Trees and proofs are those of RFC 6962,
section 2.1; the checks those of RFC 9162, sections 2.1.3.2 and 2.1.4.2.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Self

from hubbub.bundles.encoding import MALFORMED, from_text, read_json, to_text
from hubbub.bundles.signed_notes import SIZE, Checkpoint, NoteKey
from hubbub.errors import BadParameter, BundleRefused
from hubbub.fields.frozen import frozen
from hubbub.fields.rules import int_if_whole

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


KINDS: Final = ("bundle", "notice", "keys")
"""What a log has entries of."""


@frozen()
class LogProof:
    """A proof that the log of a checkpoint contains an entry.

    Args:
        index: of the entry, from 0.
        inclusion: hashes of the subtrees beside its path.
        grown: consistency proof from each size at which an earlier bundle was shipped.
    """

    index: int
    checkpoint: Checkpoint
    inclusion: tuple[bytes, ...]
    grown: Mapping[int, tuple[bytes, ...]]

    def dump(self) -> bytes:
        """The third line of a bundle."""
        return json.dumps(
            {
                "hubbub log": 1,
                "index": self.index,
                "checkpoint": self.checkpoint.note,
                "inclusion": list(map(to_text, self.inclusion)),
                "grown": {
                    str(size): list(map(to_text, proof)) for size, proof in self.grown.items()
                },
            },
            separators=(",", ":"),
        ).encode()

    @classmethod
    def load(cls, line: bytes, key: NoteKey) -> Self:
        """Reads what `dump()` wrote, for this log. Raises one of MALFORMED, or BadParameter."""
        json = read_json(line)
        index = int_if_whole(json["index"])
        version_ok = type(json["hubbub log"]) in (int, float) and json["hubbub log"] == 1
        if not (version_ok and type(index) is int and all(map(SIZE.fullmatch, json["grown"]))):
            raise ValueError("not a proof of a log")
        return cls(
            index,
            Checkpoint.open(json["checkpoint"], key),
            _hashes(json["inclusion"]),
            {int(size): _hashes(proof) for size, proof in json["grown"].items()},
        )

    def refuse_fork(self, size: int, root: bytes) -> None:
        """Raises BundleRefused unless the log grew from the checkpoint with this size and root."""
        now = self.checkpoint
        if now.size < size:
            raise BundleRefused(
                f"its checkpoint of {now.origin} is older ({now.size} entries) than the "
                f"last one on this device ({size}); ship the newer bundle"
            )
        proof = self.grown.get(size, ())
        if now.size > size and size not in self.grown:
            raise BundleRefused(
                f"it does not prove how {now.origin} grew from {size} entries, its last "
                "size on this device; build it with the log of the previous bundle"
            )
        try:
            refuse_inconsistent((size, root), (now.size, now.root), proof)
        except BadParameter as error:
            raise BundleRefused(
                f"the log {now.origin} has forked: {error}. Somebody saw another log than "
                "this device; keep the old and the new bundle, and run: hubbub log audit"
            ) from error


def entry_of(kind: str, content: bytes) -> bytes:
    """A log entry: the kind of a thing, and the SHA-256 of its bytes."""
    return f"hubbub/1 {kind}\n{hashlib.sha256(content).hexdigest()}\n".encode()


def open_proof(line: bytes, content: bytes, key: NoteKey) -> LogProof:
    """The checked proof in a bundle's line 3; `content`: the first two. Raises BundleRefused."""
    try:
        proof = LogProof.load(line, key)
        root = proven_root(
            leaf_hash(entry_of("bundle", content)),
            proof.index,
            proof.checkpoint.size,
            proof.inclusion,
        )
    except (*MALFORMED, BadParameter) as error:
        raise BundleRefused(
            f"its proof of the log {key.name} is invalid: {error}; build it again"
        ) from error
    if root != proof.checkpoint.root:
        raise BundleRefused(
            f"the log {key.name} does not contain this bundle; ship the bundle as it was built"
        )
    return proof


def _hashes(texts: Any) -> tuple[bytes, ...]:
    if not isinstance(texts, list):
        raise TypeError("hashes are not a list")
    hashes = tuple(map(from_text, texts))
    if any(len(digest) != HASH_BYTES for digest in hashes):
        raise ValueError(f"a hash does not have {HASH_BYTES} bytes")
    return hashes
