"""Sealing: a payload becomes a report that only the aggregator can open (HPKE, RFC 9180).

Base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, single shot. The info binds stream
and epoch, so a report moved to another metric or day does not open.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from hubbub.errors import BadPayload

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.hpke import Suite

__all__ = ["SEAL_BYTES", "TAG_BYTES", "open_sealed", "seal", "seal_info"]

SEAL_BYTES: Final = 32 + 16
"""What sealing adds to a payload: the encapsulated key in front, the authentication tag behind."""

TAG_BYTES: Final = 16
"""A report's tag is so many first bytes of its encapsulated key: random, used once."""


def seal_info(stream: str, epoch: int) -> bytes:
    """What a report is bound to."""
    return f"hubbub/1 report|{stream}|{epoch}".encode()


def seal(payload: bytes, key: X25519PublicKey, info: bytes) -> bytes:
    """The sealed payload, SEAL_BYTES longer than `payload`."""
    return _suite().encrypt(payload, key, info)


def open_sealed(sealed: bytes, key: X25519PrivateKey, info: bytes) -> bytes:
    """The payload of a sealed report.

    Raises:
        BadPayload: sealed to another key, bound elsewhere, or altered.
    """
    try:
        return _suite().decrypt(sealed, key, info)
    except (InvalidTag, ValueError):
        raise BadPayload("a report that does not open") from None


@lru_cache(maxsize=1)
def _suite() -> "Suite":
    # PRIVACY: a shuffler that adds no dummies does not even load what opens and seals.
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite  # noqa: PLC0415

    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
