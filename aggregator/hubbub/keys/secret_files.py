"""Secret files, which are read only if nobody else can read them; Ed25519 signing keys in them."""

import os
import stat
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.errors import KeysUnusable


def read(path: Path) -> bytes:
    """Reads a file. Raises KeysUnusable if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        remedy = "make keys with: hubbub keys new FOLDER"
        raise KeysUnusable(f"{path}: cannot be read: {error.strerror}; {remedy}") from error


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
