"""Encapsulates a request for a gateway, and opens the gateway's answer (RFC 9458, section 4).

The HPKE library here is pyhpke, on both sides: OHTTP needs HPKE's exporter, and that of
cryptography has none.
"""

import secrets
import struct
from collections.abc import Callable, Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pyhpke import (
    AEADId,
    CipherSuite,
    ContextInterface,
    KDFId,
    KEMId,
    KEMKey,
    KEMKeyPair,
    PyHPKEError,
)

from hubbub.errors import BadParameter, BadPayload
from hubbub.oblivious.key_config import SUITE, key_config, key_id, read_config

_SUITE: Final = CipherSuite.new(
    KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM
)
_HEAD: Final = struct.Struct(">BHHH")  # key, KEM, KDF, AEAD
_KEY_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_ENC_BYTES: Final = 32
_SECRET_BYTES: Final = max(_KEY_BYTES, _NONCE_BYTES)
_FOR_REQUEST: Final = b"message/bhttp request"
_FOR_RESPONSE: Final = b"message/bhttp response"

Answer = Callable[[bytes], bytes]


def encapsulate(
    config: bytes, request: bytes, ephemeral: KEMKeyPair | None = None
) -> tuple[bytes, Answer]:
    """Encrypts a request for a gateway. Raises BadParameter for an invalid `config`.

    `config` is a key configuration as `key_config` makes it, `request` binary HTTP; `ephemeral` is
    for test vectors alone. Returns the encrypted request, and a function that decrypts its answer
    and raises BadPayload for anything else.
    """
    number, public = read_config(config)
    head = _HEAD.pack(number, *SUITE)
    try:
        key = KEMKey.from_pyca_cryptography_key(X25519PublicKey.from_public_bytes(public))
        enc, context = _SUITE.create_sender_context(key, _info(head), eks=ephemeral)
    except (PyHPKEError, ValueError) as error:
        raise BadParameter("the gateway's key is too weak to encrypt to") from error

    def open_response(response: bytes) -> bytes:
        nonce, sealed = response[:_SECRET_BYTES], response[_SECRET_BYTES:]
        key, iv = _response_keys(context, enc, nonce)
        try:
            return AESGCM(key).decrypt(iv, sealed, b"")
        except (InvalidTag, ValueError) as error:
            raise BadPayload("not the gateway's answer to this request") from error

    return head + enc + context.seal(request), open_response


class Gateway:
    """Decrypts requests that were encapsulated for one of its keys, and encrypts the answers."""

    def __init__(self, keys: Sequence[X25519PrivateKey]) -> None:
        self._keys = {key_id(key.public_key().public_bytes_raw()): key for key in keys}
        if not keys or len(self._keys) != len(keys):
            raise BadParameter("a gateway needs keys with different numbers; make another key")

    @property
    def configs(self) -> bytes:
        """The configurations of all its keys, in the media type KEYS_TYPE."""
        entries = [key_config(key.public_key().public_bytes_raw()) for key in self._keys.values()]
        return b"".join(len(entry).to_bytes(2) + entry for entry in entries)

    def open(self, message: bytes) -> tuple[bytes, Answer]:
        """Decrypts a request; returns it with a function that encrypts the answer to it.

        Raises BadParameter for a key that this gateway lacks, BadPayload for any other message.
        """
        head, enc = message[: _HEAD.size], message[_HEAD.size : _HEAD.size + _ENC_BYTES]
        if len(enc) != _ENC_BYTES:
            raise BadPayload("not an encapsulated request")
        number, *suite = _HEAD.unpack(head)
        if number not in self._keys or tuple(suite) != SUITE:
            raise BadParameter("the request is sealed to a key that is not this gateway's")
        try:
            key = KEMKey.from_pyca_cryptography_key(self._keys[number])
            context = _SUITE.create_recipient_context(enc, key, _info(head))
            request = context.open(message[_HEAD.size + _ENC_BYTES :])
        except (PyHPKEError, ValueError) as error:
            raise BadPayload("not an encapsulated request, or altered") from error

        def sealed(response: bytes) -> bytes:
            nonce = secrets.token_bytes(_SECRET_BYTES)
            key, iv = _response_keys(context, enc, nonce)
            return nonce + AESGCM(key).encrypt(iv, response, b"")

        return request, sealed


def _response_keys(context: ContextInterface, enc: bytes, nonce: bytes) -> tuple[bytes, bytes]:
    secret = context.export(_FOR_RESPONSE, _SECRET_BYTES)
    prk = _SUITE.kdf.extract(enc + nonce, secret)
    expand = _SUITE.kdf.expand
    return expand(prk, b"key", _KEY_BYTES), expand(prk, b"nonce", _NONCE_BYTES)


def _info(head: bytes) -> bytes:
    return _FOR_REQUEST + b"\0" + head
