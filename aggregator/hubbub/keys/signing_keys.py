"""Files of Ed25519 signing keys: the operator's, and a transparency log's."""

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hubbub.errors import KeysUnusable
from hubbub.keys.files import read_secret


def read_signing_key(path: Path) -> Ed25519PrivateKey:
    """Reads a key from a file that only its owner can read.

    Raises:
        KeysUnusable: it cannot be read, others can read it, or it holds no Ed25519 key.
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
