"""Two signed lines of JSON, the signer and the content: bundles, notices and states of models.

The Ed25519 signature is over the kind of document and the exact bytes of the second line, so that
nothing has to be canonicalised.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hubbub.bundles.encoding import from_text, read_json, to_text
from hubbub.bundles.signatures import check_signature
from hubbub.bundles.weak_keys import refuse_weak_signing_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def as_line(thing: Mapping[str, Any]) -> bytes:
    """JSON in one line."""
    return json.dumps(thing, separators=(",", ":")).encode()


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
