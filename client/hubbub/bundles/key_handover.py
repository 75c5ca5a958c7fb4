"""Handovers: an operator's signing key announces its successor.

A bundle carries the last ones, oldest first. A device that trusts any key of the chain can follow
it to the bundle's signer, by one signature after the other, and needs no other authority.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final, Self

from hubbub.bundles.encoding import from_text, to_text
from hubbub.bundles.signatures import SignatureMismatch, check_signature, refuse_weak_signing_key
from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAX_HANDOVERS: Final = 16
"""How many a bundle carries at most; the oldest are left out first."""

# No bundle begins so: a signature of one kind is never one of the other.
_SIGNED: Final = b"hubbub/1 handover\n"


@frozen()
class Handover:
    """A key announces its successor: Ed25519 over both public keys. Raises BadParameter."""

    old: bytes
    new: bytes
    signature: bytes = field(repr=False)

    def __post_init__(self) -> None:
        for key in (self.old, self.new):
            refuse_weak_signing_key(key)
        if self.old == self.new:
            raise BadParameter("a handover leads from a key to itself")
        try:
            check_signature(self.old, self.signature, _SIGNED + self.old + self.new)
        except (SignatureMismatch, TypeError, ValueError):
            raise BadParameter("the key that hands over did not sign the handover") from None

    def words(self) -> dict[str, str]:
        """The JSON form, for bundles, notices and the operator's folder."""
        return {
            "old": to_text(self.old),
            "new": to_text(self.new),
            "signature": to_text(self.signature),
        }

    @classmethod
    def load(cls, words: Mapping[str, str]) -> Self:
        """Reads what `words()` returned. Raises one of MALFORMED for another shape."""
        return cls(*(from_text(words[name]) for name in ("old", "new", "signature")))


def hand_over(old: "Ed25519PrivateKey", new: bytes) -> Handover:
    """Signs the new key with the old one."""
    public = old.public_key().public_bytes_raw()
    return Handover(public, new, old.sign(_SIGNED + public + new))


def line_of(handovers: Sequence[Handover], signer: bytes) -> tuple[bytes, ...]:
    """The signing keys that the handovers lead through, oldest first, `signer` last.

    Raises BadParameter if they do not lead to `signer` one by one, repeat a key, or are too many.
    """
    if len(handovers) > MAX_HANDOVERS:
        raise BadParameter(f"{len(handovers)} handovers are too many; {MAX_HANDOVERS} are allowed")
    line = (*(handover.old for handover in handovers), signer)
    if any(handover.new != after for handover, after in zip(handovers, line[1:], strict=True)):
        raise BadParameter("the handovers do not lead step by step to the key that signed")
    if len(set(line)) != len(line):
        raise BadParameter("the handovers return to a key that has already handed over")
    return line
