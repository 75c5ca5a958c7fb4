"""A gateway's path, media types and key configuration (RFC 9458, section 3; RFC 9540)."""

import struct
from typing import Final

from hubbub.errors import BadParameter

GATEWAY_PATH: Final = "/.well-known/ohttp-gateway"  # RFC 9540, section 4
REQUEST_TYPE: Final = "message/ohttp-req"
RESPONSE_TYPE: Final = "message/ohttp-res"
KEYS_TYPE: Final = "application/ohttp-keys"

SUITE: Final = (0x0020, 0x0001, 0x0001)
"""DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, by their numbers of RFC 9180."""

_CONFIG: Final = struct.Struct(">BH32sH")  # key, KEM, its public half, bytes of what follows
_PAIR: Final = struct.Struct(">HH")


def key_config(public: bytes) -> bytes:
    """The key configuration that clients fetch, for the 32 bytes of an X25519 public key."""
    kem, *pair = SUITE
    return _CONFIG.pack(key_id(public), kem, public, _PAIR.size) + _PAIR.pack(*pair)


def key_id(public: bytes) -> int:
    """A key's number in [0, 256). It follows from the key alone, so it cannot mark a client."""
    import hashlib  # noqa: PLC0415 as in hubbub.sealing.hpke

    return hashlib.sha256(public).digest()[0]


def read_config(config: bytes) -> tuple[int, bytes]:
    """Number and public key in a configuration that offers SUITE. Raises BadParameter."""
    try:
        number, kem, public, size = _CONFIG.unpack_from(config)
        places = range(_CONFIG.size, _CONFIG.size + size, _PAIR.size)
        suites = [(kem, *_PAIR.unpack_from(config, position)) for position in places]
    except struct.error:
        number, public, size, suites = 0, b"", 0, []
    if SUITE not in suites or len(config) != _CONFIG.size + size:
        raise BadParameter("the gateway's key is of an unknown kind; upgrade hubbub")
    return number, public
