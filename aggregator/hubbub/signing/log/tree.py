"""The Merkle tree of a transparency log: its root, and proofs for devices."""

from collections.abc import Sequence
from hashlib import sha256

from hubbub.bundles.log.merkle import node_hash
from hubbub.bundles.log.notes import Checkpoint
from hubbub.bundles.log.proof import LogProof


def tree_root(leaves: Sequence[bytes]) -> bytes:
    """The root of the tree over these leaf hashes. RFC 6962, section 2.1."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = _split(len(leaves))
    return node_hash(tree_root(leaves[:split]), tree_root(leaves[split:]))


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes beside a leaf's path, from the leaf to the root. RFC 6962, section 2.1.1."""
    if len(leaves) == 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*inclusion_proof(leaves[:split], index), tree_root(leaves[split:])]
    return [*inclusion_proof(leaves[split:], index - split), tree_root(leaves[:split])]


def consistency_proof(leaves: Sequence[bytes], before: int, *, whole: bool = True) -> list[bytes]:
    """Proves that the tree grew from its first `before` leaves. RFC 6962, section 2.1.2.

    `whole` is whether the verifier has the former hash of this tree; of a part it may not.
    """
    if before == len(leaves):
        return [] if whole else [tree_root(leaves)]
    split = _split(len(leaves))
    if before <= split:
        return [*consistency_proof(leaves[:split], before, whole=whole), tree_root(leaves[split:])]
    former = consistency_proof(leaves[split:], before - split, whole=False)
    return [*former, tree_root(leaves[:split])]


def _split(size: int) -> int:
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
