"""Weak public keys: points of small order, with which everybody knows all shared secrets.

Anybody can open a report sealed to one, and forge its signatures. Both lists are libsodium's
(ge25519_has_small_order, x25519's blacklist), without the bit that is ignored.
"""

from typing import Final

from hubbub.errors import BadParameter

KEY_BYTES: Final = 32
_ALIKE: Final = ("00" * 32, "01" + "00" * 31)
# p - 1, p and p + 1, of p = 2**255 - 19
_AROUND_P: Final = tuple(f"{first}{'ff' * 30}7f" for first in ("ec", "ed", "ee"))
_OPENING: Final = {
    *_ALIKE,
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    *_AROUND_P,
}
_SIGNING: Final = {
    *_ALIKE,
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    *_AROUND_P,
}


def refuse_weak_opening_key(public: bytes) -> None:
    """Raises BadParameter unless these are the bytes of an X25519 key that is not weak."""
    _refuse(public, _OPENING, "an opening key")


def refuse_weak_signing_key(public: bytes) -> None:
    """Raises BadParameter unless these are the bytes of an Ed25519 key that is not weak."""
    _refuse(public, _SIGNING, "a signing key")


def _refuse(public: bytes, weak: set[str], what: str) -> None:
    if not (isinstance(public, bytes) and len(public) == KEY_BYTES):
        raise BadParameter(f"{what} is not {KEY_BYTES} bytes")
    if (public[:-1] + bytes([public[-1] & 0x7F])).hex() in weak:
        raise BadParameter(f"{what} is a point of small order: it protects nothing; make another")
