"""The transparency log, as devices check it: its tree, signed checkpoints, and what it contains.

A log is an append-only Merkle tree. Hashes are SHA-256. Trees and proofs are those of RFC 6962,
section 2.1; the checks those of RFC 9162, sections 2.1.3.2 and 2.1.4.2.

A signed note is a text with a line for each signature; a checkpoint is the note of a log's size and
root (C2SP signed-note and tlog-checkpoint, Ed25519).

The proof that a log contains a bundle is the bundle's third line: its index, a checkpoint, and how
the log grew. The logged entry of a bundle is the SHA-256 of the first two lines.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Self

from hubbub.bundles.encoding import MALFORMED, from_text, read_json, to_text
from hubbub.bundles.signatures import SignatureMismatch, check_signature, refuse_weak_signing_key
from hubbub.errors import BadParameter, BundleRefused
from hubbub.fields.frozen import frozen
from hubbub.fields.rules import int_if_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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


ED25519: Final = b"\x01"
COSIGNATURE: Final = b"\x04"
_ID_BYTES: Final = 4
_LINE: Final = re.compile(r"— (?P<name>[^\s+]+) (?P<signature>[A-Za-z0-9+/=]+)")
_NAME: Final = re.compile(r"[^\s+]{1,200}")
_MAX_SIGNATURES: Final = 100
SIZE: Final = re.compile("0|[1-9][0-9]{0,15}")
"""A size, as a checkpoint and a proof write it."""
_LINES: Final = 3


@frozen()
class NoteKey:
    """A key whose signatures are checked.

    Args:
        name: without spaces and plus signs.
        kind: ED25519 signs the text of a note; COSIGNATURE also the time (witnesses.py).

    Raises:
        BadParameter: an invalid name, or a key that protects nothing.
    """

    name: str
    public: bytes
    kind: bytes = ED25519

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and _NAME.fullmatch(self.name)):
            raise BadParameter("a signer's name in a note is empty, or has a space or plus sign")
        refuse_weak_signing_key(self.public)

    @property
    def id(self) -> bytes:
        """The four bytes that a signature begins with."""
        named = self.name.encode() + b"\n" + self.kind + self.public
        return hashlib.sha256(named).digest()[:_ID_BYTES]

    def __str__(self) -> str:
        """The key in the format of other log tools: name, id and key."""
        public = base64.b64encode(self.kind + self.public).decode()
        return f"{self.name}+{self.id.hex()}+{public}"

    @classmethod
    def read(cls, text: str, kind: bytes) -> Self:
        """Reads what `str()` made of a key of this kind. Raises BadParameter for anything else."""
        name, _, encoded = text.partition("+")
        try:
            public = base64.b64decode(encoded.partition("+")[2], validate=True)
        except ValueError:
            public = b""
        key = cls(name, public[1:], kind)
        if str(key) != text:
            raise BadParameter("its name, id and key do not match, or its type is unsupported")
        return key


def signed_note(text: str, key: NoteKey, signature: bytes) -> str:
    """Makes a note of a text, which ends with a line break; the only signature is not checked."""
    return _note(text, [(key.name, key.id + signature)])


def merge_notes(note: str, other: str) -> str:
    """Adds another note's signatures; where both have a signer, the other's replaces it.

    Raises BadParameter if they are no notes, differ in text, or together have too many lines.
    """
    (text, lines), (other_text, others) = _parts(note), _parts(other)
    if other_text != text:
        raise BadParameter("the two copies of the note have different texts")
    by_signer = {(name, signed[:_ID_BYTES]): (name, signed) for name, signed in [*lines, *others]}
    if len(by_signer) > _MAX_SIGNATURES:
        raise BadParameter(f"a note has {_MAX_SIGNATURES} signatures at most")
    return _note(text, list(by_signer.values()))


def signers(note: str) -> list[str]:
    """The names in a note's lines, unchecked. Raises BadParameter if it is no note."""
    return [name for name, _ in _parts(note)[1]]


def note_text(note: str) -> str:
    """The text of a note, whoever signed it. Raises BadParameter if it is no note."""
    return _parts(note)[0]


def refuse_unsigned(note: str, key: NoteKey) -> None:
    """Checks one signer's line, and ignores others, such as witnesses. Raises BadParameter."""
    for signature in signatures(note, key):
        refuse_unfit(signature, note_text(note), key)


def signatures(note: str, key: NoteKey) -> list[bytes]:
    """A signer's signatures, at least one. Raises BadParameter if there is none."""
    _, lines = _parts(note)
    ours = [signed for name, signed in lines if name == key.name and signed[:_ID_BYTES] == key.id]
    if not ours:
        raise BadParameter(f"the note is not signed by {key}")
    return [signed[_ID_BYTES:] for signed in ours]


def refuse_unfit(signature: bytes, message: str, key: NoteKey) -> None:
    """Raises BadParameter if the key did not sign this message."""
    try:
        check_signature(key.public, signature, message.encode())
    except SignatureMismatch:
        raise BadParameter(f"the signature of {key.name} does not match the note") from None


@frozen()
class Checkpoint:
    """A log's signed statement: its name, size in entries, root (32 bytes), and the note."""

    origin: str
    size: int
    root: bytes
    note: str

    @classmethod
    def sign(cls, origin: str, size: int, root: bytes, key: "Ed25519PrivateKey") -> Self:
        """Signs a checkpoint with the log's key."""
        text = f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"
        note_key = NoteKey(origin, key.public_key().public_bytes_raw())
        return cls(origin, size, root, signed_note(text, note_key, key.sign(text.encode())))

    @classmethod
    def open(cls, note: str, key: NoteKey) -> Self:
        """Reads a log's checkpoint from a note, and checks its signature. Raises BadParameter."""
        refuse_unsigned(note, key)
        origin, *lines = note_text(note).split("\n")
        if len(lines) < _LINES or origin != key.name or not SIZE.fullmatch(lines[0]):
            raise BadParameter(f"not a checkpoint of {key.name}")
        try:
            root = base64.b64decode(lines[1], validate=True)
        except binascii.Error:
            root = b""
        if len(root) != HASH_BYTES:
            raise BadParameter(f"not a checkpoint of {key.name}")
        return cls(origin, int(lines[0]), root, note)


def _note(text: str, lines: Sequence[tuple[str, bytes]]) -> str:
    signed = (f"— {name} {base64.b64encode(signature).decode()}\n" for name, signature in lines)
    return f"{text}\n{''.join(signed)}"


def _parts(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    text, gap, signed = note.rpartition("\n\n")
    lines = signed.split("\n")
    if not gap or lines.pop() or not 1 <= len(lines) <= _MAX_SIGNATURES:
        raise BadParameter("not a signed note")
    signatures = []
    for line in lines:
        match = _LINE.fullmatch(line)
        try:
            signature = base64.b64decode(match["signature"] if match else "-", validate=True)
        except binascii.Error:
            signature = b""
        if match is None or len(signature) <= _ID_BYTES:
            raise BadParameter("not a signed note: a signature line is malformed")
        signatures.append((match["name"], signature))
    return text + "\n", signatures


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
