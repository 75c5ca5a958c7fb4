"""Signed notes: a text, and a line for each who signed it (C2SP signed-note, Ed25519)."""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from hubbub.catalog.keys.points import refuse_weak_signing_key
from hubbub.errors import BadParameter

_ED25519: Final = b"\x01"
_ID_BYTES: Final = 4
_LINE: Final = re.compile(r"— (?P<name>[^\s+]+) (?P<signature>[A-Za-z0-9+/=]+)")
_NAME: Final = re.compile(r"[^\s+]{1,200}")
_MAX_SIGNATURES: Final = 100


@dataclass(frozen=True, slots=True)
class NoteKey:
    """Whose signature is looked for. name: without spaces and plus signs. public: Ed25519.

    Raises:
        BadParameter: no such name, or a key that protects nothing.
    """

    name: str
    public: bytes

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and _NAME.fullmatch(self.name)):
            raise BadParameter("who signs a note has a name without spaces and plus signs")
        refuse_weak_signing_key(self.public)

    @property
    def id(self) -> bytes:
        """The four bytes that a signature begins with."""
        named = self.name.encode() + b"\n" + _ED25519 + self.public
        return hashlib.sha256(named).digest()[:_ID_BYTES]

    def __str__(self) -> str:
        """It as other tools of such logs take it: name, id and key."""
        public = base64.b64encode(_ED25519 + self.public).decode()
        return f"{self.name}+{self.id.hex()}+{public}"


def sign_note(text: str, name: str, key: Ed25519PrivateKey) -> str:
    """A text, which ends with a line's end, as a note that one signed."""
    own = NoteKey(name, key.public_key().public_bytes_raw())
    signature = base64.b64encode(own.id + key.sign(text.encode())).decode()
    return f"{text}\n— {name} {signature}\n"


def note_text(note: str) -> str:
    """What a note says, whoever signed it. Raises BadParameter for what is no note."""
    return _parts(note)[0]


def refuse_unsigned(note: str, key: NoteKey) -> None:
    """Check one signer's line; those of others, witnesses among them, are passed over.

    Raises:
        BadParameter: no note, the key signed it not, or its signature does not fit.
    """
    text, lines = _parts(note)
    ours = [signed for name, signed in lines if name == key.name and signed[:_ID_BYTES] == key.id]
    if not ours:
        raise BadParameter(f"the note is not signed by {key}")
    for signed in ours:
        try:
            Ed25519PublicKey.from_public_bytes(key.public).verify(signed[_ID_BYTES:], text.encode())
        except InvalidSignature:
            raise BadParameter(f"the signature of {key.name} does not fit the note") from None


def _parts(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    text, gap, signed = note.rpartition("\n\n")
    lines = signed.split("\n")
    if not gap or lines.pop() or not 1 <= len(lines) <= _MAX_SIGNATURES:
        raise BadParameter("not a signed note")
    found = []
    for line in lines:
        told = _LINE.fullmatch(line)
        try:
            signature = base64.b64decode(told["signature"] if told else "-", validate=True)
        except binascii.Error:
            signature = b""
        if told is None or len(signature) <= _ID_BYTES:
            raise BadParameter("not a signed note: a line of a signature is malformed")
        found.append((told["name"], signature))
    return text + "\n", found
