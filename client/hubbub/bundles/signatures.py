"""Ed25519 signatures: of two lines of JSON, the signer and the content; and weak public keys.

Bundles, notices and states of models are signed so. The signature is over the kind of document and
the exact bytes of the second line, so that nothing has to be canonicalised.

Weak keys are points of small order, with which everybody knows all shared secrets: anybody can open
a report sealed to one, and forge its signatures. Both lists are libsodium's
(ge25519_has_small_order, x25519's blacklist), without the bit that is ignored.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hubbub.bundles.encoding import from_text, read_json, to_text
from hubbub.errors import BadParameter

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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


class SignatureMismatch(Exception):
    """The key did not sign the message."""


def check_signature(public: bytes, signature: bytes, message: bytes) -> None:
    """Raises SignatureMismatch unless the key signed it; ValueError or TypeError for no key."""
    # The library takes 7 MB: importing the client does not load it, the first signature does.
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 as above
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 as above

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature as error:
        raise SignatureMismatch from error


def as_line(document: Mapping[str, Any]) -> bytes:
    """JSON in one line."""
    return json.dumps(document, separators=(",", ":")).encode()


def sign_lines(kind: str, body: bytes, operator: "Ed25519PrivateKey") -> bytes:
    """Makes both lines; `kind`, such as "bundle", separates signatures of different documents."""
    head = {
        f"hubbub {kind}": 1,
        "operator": to_text(operator.public_key().public_bytes_raw()),
        "signature": to_text(operator.sign(_signed_body(kind, body))),
    }
    return as_line(head) + b"\n" + body + b"\n"


def check_lines(kind: str, head: bytes, body: bytes) -> tuple[Any, bytes]:
    """Checks the signature; returns the version in the first line, if any, and the signer.

    Raises SignatureMismatch if they were altered, MALFORMED or BadParameter for other lines.
    """
    seal = read_json(head)
    signer, signature = from_text(seal["operator"]), from_text(seal["signature"])
    refuse_weak_signing_key(signer)
    check_signature(signer, signature, _signed_body(kind, body))
    return seal.get(f"hubbub {kind}"), signer


def other_operator_error(signer: bytes, operator: bytes) -> str:
    """The error message for a document by another operator than the bundle's."""
    return (
        f"signed by {to_text(signer)}, but {to_text(operator)}, which signed the bundle, "
        "never handed over to that key; make it with that operator's key"
    )


def _signed_body(kind: str, body: bytes) -> bytes:
    return f"hubbub/1 {kind}\n".encode() + body
