"""Secret files, readable by nobody else; the operator's signing key, and handovers to it."""

import json
import os
import stat
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.bundles.encoding import MALFORMED, read_json, to_text
from hubbub.bundles.key_handover import MAX_HANDOVERS, Handover, hand_over
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.programs.atomic_write import refuse_unwritable, replace_file


def read(path: Path) -> bytes:
    """Reads a file. Raises KeysUnusable if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise KeysUnusable(
            f"{path}: cannot be read: {error.strerror}; restore it from a backup, since new keys "
            "open no waiting report; for a new installation: hubbub keys new FOLDER"
        ) from error


def read_secret(path: Path) -> bytes:
    """Reads a file. Raises KeysUnusable if it cannot be read, or others can read it."""
    raw = read(path)
    file_stat = path.stat()
    # An orchestrator mounts secrets as its own, readable to the group that the service runs in.
    handed = file_stat.st_uid != os.geteuid() and not file_stat.st_mode & (
        stat.S_IWGRP | stat.S_IXGRP
    )
    if file_stat.st_mode & (stat.S_IRWXO if handed else stat.S_IRWXG | stat.S_IRWXO):
        raise KeysUnusable(f"{path} is readable by others; run: chmod 600 {path}")
    return raw


def read_signing_key(path: Path) -> Ed25519PrivateKey:
    """Reads a key from a file that only its owner can read.

    Raises KeysUnusable if it cannot be read, others can read it, or it holds no Ed25519 key.
    """
    raw = read_secret(path)
    try:
        key = serialization.load_pem_private_key(raw, None)
    except ValueError as error:
        raise KeysUnusable(f"{path}: not a PEM private key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeysUnusable(f"{path}: not an Ed25519 key")
    return key


def signing_pem(key: Ed25519PrivateKey) -> bytes:
    """The content of a key's file, in PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


OPERATOR: Final = "operator.key"
_PUBLIC: Final = "operator.pub"
_HANDOVERS: Final = "handovers.json"


def write_operator_key(folder: Path, key: Ed25519PrivateKey) -> None:
    """Writes a signing key and its public half into a folder. Raises OSError."""
    replace_file(folder / OPERATOR, signing_pem(key), mode=0o600)
    replace_file(folder / _PUBLIC, to_text(_public(key)).encode())


def read_operator_key(folder: Path) -> Ed25519PrivateKey:
    """Reads the operator's signing key from a folder made by `hubbub keys new`."""
    return read_signing_key(folder / OPERATOR)


def read_handovers(folder: Path) -> tuple[Handover, ...]:
    """The handovers from the folder's first signing key to the current one, oldest first.

    Raises KeysUnusable if a file is missing or malformed, or a signature in it does not fit.
    """
    path = folder / _HANDOVERS
    if not path.exists():
        return ()
    try:
        words = [Handover.load(word) for word in read_json(read(path))]
    except (*MALFORMED, BadParameter) as error:
        raise KeysUnusable(f"{path}: not a list of handovers") from error
    # A word for a key that was never put in place: whoever gave it was cut off.
    signer = _public(read_operator_key(folder))
    while words and words[-1].new != signer:
        words.pop()
    return tuple(words[-MAX_HANDOVERS:])


def hand_over_to_new(folder: Path) -> tuple[Path, bytes]:
    """Makes a signing key that the old one announces; returns the old key's file, the public key.

    Raises KeysUnusable if the folder's keys cannot be read or written.
    """
    old, before = read_operator_key(folder), read_handovers(folder)
    new = Ed25519PrivateKey.generate()
    entries = [word.words() for word in (*before, hand_over(old, _public(new)))]
    number = 1
    while (old_key_path := folder / f"operator.{number}.key").exists():
        number += 1
    with refuse_unwritable(folder, KeysUnusable):
        os.link(folder / OPERATOR, old_key_path)
        # The word first: a key that nobody vouched for would sign what no device takes.
        replace_file(folder / _HANDOVERS, json.dumps(entries, indent=1).encode())
        write_operator_key(folder, new)
    return old_key_path, _public(new)


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()
