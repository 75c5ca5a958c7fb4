"""SHA-256 by the library that seals, which devices load; `hashlib` loads an OpenSSL more (4 MB)."""

import json
from collections.abc import Mapping
from typing import Any


def sha256(content: bytes) -> bytes:
    """The 32 bytes of the hash."""
    # Importing the client does not load the library (7 MB).
    from cryptography.hazmat.primitives.hashes import SHA256, Hash  # noqa: PLC0415 as above

    digest = Hash(SHA256())
    digest.update(content)
    return digest.finalize()


def checksum(body: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of a JSON object, whatever the order of its names, as hexadecimal."""
    return sha256(json.dumps(body, sort_keys=True).encode()).hex()
