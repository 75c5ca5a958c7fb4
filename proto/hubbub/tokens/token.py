"""A token: a random nonce, and what nobody without the issuer's word for it could write beside it.

    token = nonce (16 bytes) || first 16 bytes of HMAC-SHA-256(output, sealed report)

The output is the issuer's function of the nonce for one stream and epoch. So a token is of that
stream and epoch alone, and of one report: whoever sees it cannot send another with it.
"""

import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final

NONCE_BYTES: Final = 16
TOKEN_BYTES: Final = 32
"""What a token adds to a report."""

_MARK_BYTES: Final = TOKEN_BYTES - NONCE_BYTES


@dataclass(frozen=True, slots=True)
class Minted:
    """What a device keeps of a token until a report goes with it: its nonce, and the output."""

    nonce: bytes = field(repr=False)
    output: bytes = field(repr=False)

    def token(self, sealed: bytes) -> bytes:
        """It, for this report."""
        return self.nonce + mark_of(self.output, sealed)


def new_nonce() -> bytes:
    """A nonce that nobody else draws."""
    return secrets.token_bytes(NONCE_BYTES)


def token_info(stream: str, epoch: int) -> bytes:
    """What device, issuer and shuffler agree on in the clear: which reports a token is for."""
    return f"hubbub/1 token|{stream}|{epoch}".encode()


def is_token(token: bytes) -> bool:
    """Whether it has the length of one."""
    return len(token) == TOKEN_BYTES


def nonce_of(token: bytes) -> bytes:
    """By which a token is known once it is spent."""
    return token[:NONCE_BYTES]


def mark_of(output: bytes, sealed: bytes) -> bytes:
    """Which report a token goes with, as only who knows the output can write it."""
    return hmac.digest(output, sealed, "sha256")[:_MARK_BYTES]
