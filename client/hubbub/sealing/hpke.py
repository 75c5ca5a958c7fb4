"""Sealing: a payload becomes a report that only the aggregator can open (HPKE, RFC 9180).

Base mode, HKDF-SHA256, AES-128-GCM, single shot. The info binds stream and epoch, so a report
moved to another metric or day does not open. There are two key types: DHKEM(X25519, HKDF-SHA256),
and X-Wing, which adds ML-KEM-768.

A recorded X25519 report can be opened by a future quantum computer. X-Wing
(draft-connolly-cfrg-xwing-kem; MLKEM768-X25519 of draft-ietf-hpke-pq, KEM 0x647a) stays closed
unless both halves are broken. Its private key is a seed of 32 bytes, its public key that of
ML-KEM-768 followed by that of X25519.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, Union

from hubbub.errors import BadParameter, BadPayload

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.hpke import (
        MLKEM768X25519PrivateKey,
        MLKEM768X25519PublicKey,
        Suite,
    )

PrivateKey = Union["X25519PrivateKey", "MLKEM768X25519PrivateKey"]
PublicKey = Union["X25519PublicKey", "MLKEM768X25519PublicKey"]
Kem = Literal["x25519", "x-wing"]
"""How a stream's reports are sealed."""
X25519: Final = "x25519"
X_WING: Final = "x-wing"
KEMS: Final[tuple[Kem, ...]] = (X25519, X_WING)

# ML-KEM-768: FIPS 203, table 3.
_ML_KEM_PUBLIC_BYTES: Final = 1184
_ML_KEM_ENC_BYTES: Final = 1088
_ML_KEM_SEED_BYTES: Final = 64
_X25519_BYTES: Final = 32
_AEAD_TAG_BYTES: Final = 16

SEED_BYTES: Final = 32
"""An X-Wing private key is so many random bytes."""

SEAL_BYTES: Final[dict[Kem, int]] = {
    X25519: _X25519_BYTES + _AEAD_TAG_BYTES,
    X_WING: _ML_KEM_ENC_BYTES + _X25519_BYTES + _AEAD_TAG_BYTES,
}
"""What sealing adds to a payload: the encapsulated key in front, the authentication tag behind."""


def x_wing_private(seed: bytes) -> "MLKEM768X25519PrivateKey":
    """Derives the key from 32 bytes (draft-connolly-cfrg-xwing-kem, 5.2). Raises BadParameter."""
    ml_kem, x25519 = _private_halves(seed)
    from cryptography.hazmat.primitives.hpke import MLKEM768X25519PrivateKey  # noqa: PLC0415

    return MLKEM768X25519PrivateKey(ml_kem, x25519)


def x_wing_public_bytes(seed: bytes) -> bytes:
    """The 1,216 bytes of a seed's public key. Raises BadParameter like `x_wing_private`."""
    ml_kem, x25519 = _private_halves(seed)
    return ml_kem.public_key().public_bytes_raw() + x25519.public_key().public_bytes_raw()


def x_wing_public(public: bytes) -> "MLKEM768X25519PublicKey":
    """The public key in these 1,216 bytes. Raises BadParameter if not, or without ML-KEM here."""
    # PRIVACY: a shuffler without dummies does not even load code that opens or seals.
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.hpke import MLKEM768X25519PublicKey  # noqa: PLC0415

    size = _ML_KEM_PUBLIC_BYTES + _X25519_BYTES
    if not (isinstance(public, bytes) and len(public) == size):
        raise BadParameter(f"an X-Wing opening key is not {size} bytes")
    try:
        ml_kem = MLKEM768PublicKey.from_public_bytes(public[:_ML_KEM_PUBLIC_BYTES])
    except ValueError:
        raise BadParameter("the ML-KEM half of an X-Wing opening key is invalid") from None
    except UnsupportedAlgorithm:
        raise _too_old() from None
    x25519 = X25519PublicKey.from_public_bytes(public[_ML_KEM_PUBLIC_BYTES:])
    return MLKEM768X25519PublicKey(ml_kem, x25519)


def _private_halves(seed: bytes) -> "tuple[MLKEM768PrivateKey, X25519PrivateKey]":
    import hashlib  # noqa: PLC0415 a device that starts loads no OpenSSL

    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: PLC0415

    if not (isinstance(seed, bytes) and len(seed) == SEED_BYTES):
        raise BadParameter(f"an X-Wing private key is not {SEED_BYTES} bytes")
    expanded = hashlib.shake_256(seed).digest(_ML_KEM_SEED_BYTES + _X25519_BYTES)
    try:
        ml_kem = MLKEM768PrivateKey.from_seed_bytes(expanded[:_ML_KEM_SEED_BYTES])
    except UnsupportedAlgorithm:
        raise _too_old() from None
    return ml_kem, X25519PrivateKey.from_private_bytes(expanded[_ML_KEM_SEED_BYTES:])


def _too_old() -> BadParameter:
    return BadParameter(
        f'kem = "{X_WING}" needs ML-KEM, which the cryptography library here lacks: install one '
        "of its own wheels"
    )


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
