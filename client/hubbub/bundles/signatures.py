"""Ed25519 signatures of bundles, notices, states of models, handovers and logs, checked here."""


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
