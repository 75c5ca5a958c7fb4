"""Signed notes and checkpoints of a log (C2SP signed-note and tlog-checkpoint, Ed25519).

A note is a text with a line for each signature; a checkpoint is the note of a log's size and root.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Self

from hubbub.bundles.log_proof import HASH_BYTES
from hubbub.bundles.signatures import SignatureMismatch, check_signature, refuse_weak_signing_key
from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
