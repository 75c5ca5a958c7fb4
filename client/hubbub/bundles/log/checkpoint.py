"""Checkpoints: size and root of a log, signed by the log (C2SP tlog-checkpoint)."""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles.log.merkle import HASH_BYTES
from hubbub.bundles.log.notes import NoteKey, note_text, refuse_unsigned, sign_note
from hubbub.errors import BadParameter

SIZE: Final = re.compile("0|[1-9][0-9]{0,15}")
"""A size, as a checkpoint and a proof write it."""
_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A log's signed statement: its name, size in entries, root (32 bytes), and the note."""

    origin: str
    size: int
    root: bytes
    note: str

    @classmethod
    def sign(cls, origin: str, size: int, root: bytes, key: Ed25519PrivateKey) -> Self:
        """Signs a checkpoint with the log's key."""
        text = f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"
        return cls(origin, size, root, sign_note(text, origin, key))

    @classmethod
    def open(cls, note: str, key: NoteKey) -> Self:
        """Reads a checkpoint from a note, and checks this log's signature.

        Raises:
            BadParameter: malformed, another log's, or altered.
        """
        refuse_unsigned(note, key)
        return cls._read(note, key)

    @classmethod
    def _read(cls, note: str, key: NoteKey) -> Self:
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
