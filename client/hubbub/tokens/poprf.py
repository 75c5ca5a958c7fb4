"""The verifiable, partly oblivious pseudorandom function of RFC 9497: mode 2, ristretto255-SHA512.

A client learns f(key, input, info) and a proof that it was made with the public key; the server
learns info and nothing of the input: what it sees is a uniformly random point, whatever the input.
All arithmetic on secrets is libsodium's, by rbcl, in constant time; this module alone knows rbcl.

Names are the RFC's. Elements are 32 bytes, scalars 32, proofs 64, outputs 64.
"""

import contextlib
import hmac
import sys
from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from hashlib import sha512
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter, MissingDependency
from hubbub.fields.frozen import frozen

try:
    import rbcl
except OSError as error:  # for example if /tmp is mounted noexec
    raise MissingDependency(
        "tokens need libsodium, which rbcl loads from the folder of temporary files, and cannot "
        "from there; set TMPDIR to a folder that libraries may be loaded from"
    ) from error

ELEMENT_BYTES: Final = 32
SCALAR_BYTES: Final = 32
PROOF_BYTES: Final = 64

_CONTEXT: Final = b"OPRFV1-\x02-ristretto255-SHA512"
_BLOCK_BYTES: Final = 128  # block size of SHA-512
_WIDE_BYTES: Final = 64
_GENERATOR: Final[bytes] = rbcl.crypto_scalarmult_ristretto255_base((1).to_bytes(32, "little"))
_IDENTITY: Final = bytes(ELEMENT_BYTES)
_HIGHEST_BIT: Final = 0x80

# rbcl writes libsodium into a temporary file, loads it, and leaves it there, once per process. A
# loaded library needs no name, so the file is deleted, unless the system forbids it.
with contextlib.suppress(OSError):
    Path(sys.modules["rbcl._sodium"].lib_path).unlink()


@frozen()
class Blinded:
    """An input as sent to the server: the blinded `element`, and the `blind` that undoes it."""

    blind: bytes = field(repr=False)
    element: bytes


def new_key() -> tuple[bytes, bytes]:
    """Draws a private key; returns it and its public key."""
    key: bytes = rbcl.crypto_core_ristretto255_scalar_random()
    return key, public_of(key)


def public_of(key: bytes) -> bytes:
    """The public key of a private key. Raises BadParameter if `key` is not a valid scalar."""
    return _product(key, _GENERATOR)


def check_elements(elements: Sequence[bytes]) -> None:
    """Raises BadParameter unless each is a valid element of the group."""
    for element in elements:
        _check_element(element, "no element of the group")


def new_blind() -> bytes:
    """Draws a random scalar to blind one input with."""
    scalar_bytes: bytes = rbcl.crypto_core_ristretto255_scalar_random()
    return scalar_bytes


def blind(value: bytes, blinding: bytes) -> Blinded:
    """Blinds an input with a scalar that was drawn for it alone."""
    return Blinded(blinding, _product(blinding, hash_to_group(value)))


def blind_evaluate(
    key: bytes, elements: Sequence[bytes], info: bytes, fixed_scalar: bytes | None = None
) -> tuple[list[bytes], bytes]:
    """Evaluates blinded inputs; returns the evaluated elements and one proof for all of them.

    `fixed_scalar` replaces the proof's random scalar, for the test vectors of the RFC. Raises
    BadParameter if there are no elements, or one is invalid.
    """
    tweaked = _tweaked_key(key, info)
    inverse = rbcl.crypto_core_ristretto255_scalar_invert(tweaked)
    evaluated = [_product(inverse, element) for element in elements]
    return evaluated, _prove(tweaked, evaluated, elements, fixed_scalar)


def finalize(
    inputs: Sequence[tuple[bytes, Blinded]],
    evaluated: Sequence[bytes],
    proof: bytes,
    public: bytes,
    info: bytes,
) -> list[bytes]:
    """Checks the proof; returns the output of each input and blinded. Raises BadParameter."""
    _check_element(public, "no public key of an issuer of tokens")
    tweaked = _plus(_product(_info_scalar(info), _GENERATOR), public)
    if tweaked == _IDENTITY or len(evaluated) != len(inputs):
        raise BadParameter("the issuer's answer does not fit the request")
    check_elements(evaluated)
    if not _is_proof(proof, tweaked, evaluated, [blinded.element for _, blinded in inputs]):
        raise BadParameter("the issuer's proof does not fit its key in the bundle")
    return [
        _output(
            value,
            info,
            _product(rbcl.crypto_core_ristretto255_scalar_invert(blinded.blind), element),
        )
        for (value, blinded), element in zip(inputs, evaluated, strict=True)
    ]


def evaluate(key: bytes, value: bytes, info: bytes) -> bytes:
    """The output for an input in the clear, with which a verifier compares."""
    return _output(value, info, _product(_inverse_of(key, info), hash_to_group(value)))


@lru_cache(4096)
def _inverse_of(key: bytes, info: bytes) -> bytes:
    """The inverse of the tweaked key, cached: all tokens of a stream and epoch share it."""
    inverse: bytes = rbcl.crypto_core_ristretto255_scalar_invert(_tweaked_key(key, info))
    return inverse


def _output(value: bytes, info: bytes, element: bytes) -> bytes:
    return sha512(_framed(value) + _framed(info) + _framed(element) + b"Finalize").digest()


def _tweaked_key(key: bytes, info: bytes) -> bytes:
    tweaked: bytes = rbcl.crypto_core_ristretto255_scalar_add(key, _info_scalar(info))
    return tweaked


def _info_scalar(info: bytes) -> bytes:
    return _hash_to_scalar(b"Info" + _framed(info))


def _prove(key: bytes, c: Sequence[bytes], d: Sequence[bytes], fixed_scalar: bytes | None) -> bytes:
    """GenerateProof: that d = key * c, and key * G the public key, by one scalar."""
    public = public_of(key)
    m = _composite(public, c, d)[0]
    z = _product(key, m)
    scalar = fixed_scalar or rbcl.crypto_core_ristretto255_scalar_random()
    challenge = _challenge(public, m, z, _product(scalar, _GENERATOR), _product(scalar, m))
    product = rbcl.crypto_core_ristretto255_scalar_mul(challenge, key)
    answer: bytes = rbcl.crypto_core_ristretto255_scalar_sub(scalar, product)
    return challenge + answer


def _is_proof(proof: bytes, public: bytes, c: Sequence[bytes], d: Sequence[bytes]) -> bool:
    """VerifyProof of RFC 9497: whether the proof fits."""
    if len(proof) != PROOF_BYTES:
        return False
    challenge, answer = proof[:SCALAR_BYTES], proof[SCALAR_BYTES:]
    m, z = _composite(public, c, d)
    t2 = _plus(_product(answer, _GENERATOR), _product(challenge, public))
    t3 = _plus(_product(answer, m), _product(challenge, z))
    return hmac.compare_digest(challenge, _challenge(public, m, z, t2, t3))


def _composite(public: bytes, c: Sequence[bytes], d: Sequence[bytes]) -> tuple[bytes, bytes]:
    """ComputeComposites: a random combination of each list, so that one proof covers all."""
    seed = sha512(_framed(public) + _framed(b"Seed-" + _CONTEXT)).digest()
    m = z = _IDENTITY
    for place, (first, other) in enumerate(zip(c, d, strict=True)):
        transcript = (
            _framed(seed) + place.to_bytes(2) + _framed(first) + _framed(other) + b"Composite"
        )
        scalar = _hash_to_scalar(transcript)
        m, z = _plus(_product(scalar, first), m), _plus(_product(scalar, other), z)
    return m, z


def _challenge(public: bytes, *elements: bytes) -> bytes:
    return _hash_to_scalar(b"".join(map(_framed, (public, *elements))) + b"Challenge")


def _framed(value: bytes) -> bytes:
    return len(value).to_bytes(2) + value


def hash_to_group(value: bytes) -> bytes:
    """HashToGroup of RFC 9497: the group element of an input."""
    uniform = _expand_message(value, b"HashToGroup-" + _CONTEXT)
    element: bytes = rbcl.crypto_core_ristretto255_from_hash(uniform)
    return element


def _hash_to_scalar(value: bytes) -> bytes:
    uniform = _expand_message(value, b"HashToScalar-" + _CONTEXT)
    scalar: bytes = rbcl.crypto_core_ristretto255_scalar_reduce(uniform)
    return scalar


def _expand_message(value: bytes, tag: bytes) -> bytes:
    """expand_message_xmd of RFC 9380 with SHA-512, to 64 bytes: one block."""
    suffix = tag + bytes([len(tag)])
    first_digest = sha512(
        bytes(_BLOCK_BYTES) + value + _WIDE_BYTES.to_bytes(2) + b"\0" + suffix
    ).digest()
    return sha512(first_digest + b"\1" + suffix).digest()


def _check_element(element: bytes, message: str) -> None:
    # libsodium ignores the highest bit, which makes a second spelling of every element (RFC 9496).
    spelt = len(element) == ELEMENT_BYTES and element[-1] < _HIGHEST_BIT and element != _IDENTITY
    if not (spelt and rbcl.crypto_core_ristretto255_is_valid_point(element)):
        raise BadParameter(message)


def _product(scalar: bytes, element: bytes) -> bytes:
    """The product. Raises BadParameter for an invalid scalar or element, or a product of 0."""
    try:
        product: bytes = rbcl.crypto_scalarmult_ristretto255(scalar, element)
    except (RuntimeError, TypeError, ValueError):
        raise BadParameter("no element of the group, or no scalar") from None
    return product


def _plus(first: bytes, other: bytes) -> bytes:
    total: bytes = rbcl.crypto_core_ristretto255_add(first, other)
    return total
