"""A witness's signature that a log's checkpoint grew, and when (C2SP tlog-cosignature).

This is the Ed25519 form, cosignature/v1: eight bytes of time, and a signature of time and text.
"""

from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles.log.notes import (
    COSIGNATURE,
    NoteKey,
    merge_notes,
    note_text,
    refuse_unfit,
    signatures,
    signed_note,
)
from hubbub.errors import BadParameter

_TIME_BYTES: Final = 8
_SIGNATURE_BYTES: Final = 64
_LAST_SECOND: Final = (1 << 63) - 1


def witness_key(name: str, key: Ed25519PrivateKey) -> NoteKey:
    """The verification key of a witness."""
    return NoteKey(name, key.public_key().public_bytes_raw(), COSIGNATURE)


def cosign(note: str, name: str, key: Ed25519PrivateKey, at: int) -> str:
    """Adds a witness's line to a checkpoint's note, in place of an earlier one.

    `at` is in seconds since 1970, in [0, 2^63 - 1]. The caller must have checked that the log grew.

    Raises:
        BadParameter: no note, or one with too many lines.
    """
    text = note_text(note)
    signature = at.to_bytes(_TIME_BYTES, "big") + key.sign(_message(text, at).encode())
    return merge_notes(note, signed_note(text, witness_key(name, key), signature))


def cosigned_at(note: str, witness: NoteKey) -> int:
    """When a witness last cosigned a checkpoint's note, in seconds since 1970.

    Raises:
        BadParameter: no note, the witness did not sign it, or a line of it does not fit.
    """
    text = note_text(note)
    return max(_time(signed, text, witness) for signed in signatures(note, witness))


def _time(signed: bytes, text: str, witness: NoteKey) -> int:
    at = int.from_bytes(signed[:_TIME_BYTES], "big")
    if len(signed) != _TIME_BYTES + _SIGNATURE_BYTES or at > _LAST_SECOND:
        raise BadParameter(f"the signature of {witness.name} is not of type cosignature/v1")
    refuse_unfit(signed[_TIME_BYTES:], _message(text, at), witness)
    return at


def _message(text: str, at: int) -> str:
    return f"cosignature/v1\ntime {at}\n{text}"
