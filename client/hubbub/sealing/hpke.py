"""Sealing: a payload becomes a report that only the aggregator can open (HPKE, RFC 9180).

Base mode, HKDF-SHA256, AES-128-GCM, single shot; DHKEM(X25519, HKDF-SHA256) or X-Wing, as the key
is. The info binds stream and epoch, so a report moved to another metric or day does not open.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from hubbub.errors import BadPayload
from hubbub.sealing.kems import PrivateKey, PublicKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.hpke import Suite

TAG_BYTES: Final = 16
"""A report's tag is so many first bytes of its encapsulated key: random, used once."""


def seal_info(stream: str, epoch: int) -> bytes:
    """HPKE info of a report: it binds the report to its stream and epoch."""
    return f"hubbub/1 report|{stream}|{epoch}".encode()


def filler_info(stream: str, epoch: int) -> bytes:
    """HPKE info of a filler, a sealed text of a report's length without a report in it.

    PRIVACY: nobody without the opening key can tell a filler from a report.
    """
    return f"hubbub/1 filler|{stream}|{epoch}".encode()


def seal(payload: bytes, key: PublicKey, info: bytes) -> bytes:
    """The sealed payload, longer than `payload` by the SEAL_BYTES of the key's KEM."""
    key_type: type = type(key)
    return _suite(key_type).encrypt(payload, key, info)


def open_sealed(sealed: bytes, key: PrivateKey, info: bytes) -> bytes:
    """Decrypts a sealed report. Raises BadPayload for another key or info, or altered bytes."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 as in _suite

    key_type: type = type(key)
    suite = _suite(key_type)
    try:
        return suite.decrypt(sealed, key, info)
    except (InvalidTag, ValueError):
        raise BadPayload("a report that does not open") from None


@lru_cache(maxsize=4)
def _suite(key_type: type) -> "Suite":
    # PRIVACY: a shuffler without dummies does not even load code that opens or seals.
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite  # noqa: PLC0415

    is_x25519 = issubclass(key_type, X25519PublicKey | X25519PrivateKey)
    kem = KEM.X25519 if is_x25519 else KEM.MLKEM768_X25519
    return Suite(kem, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
