"""A token: a random nonce, and a mark that only the holder of an issued output can compute.

    token = nonce (16 bytes) || first 16 bytes of HMAC-SHA-256(output, sealed report)

The output is the issuer's function of the nonce for one stream and epoch. So a token is valid for
that stream and epoch and for one report alone: whoever sees it cannot reuse it.
"""

import hmac
import secrets
from dataclasses import field
from typing import Final

from hubbub.fields.frozen import frozen

NONCE_BYTES: Final = 16
TOKEN_BYTES: Final = 32
"""What a token adds to a report."""

_MARK_BYTES: Final = TOKEN_BYTES - NONCE_BYTES


@frozen()
class Minted:
    """A token that a device keeps until it sends a report: its nonce, and the issuer's output."""

    nonce: bytes = field(repr=False)
    output: bytes = field(repr=False)

    def token(self, sealed: bytes) -> bytes:
        """The token's bytes for one sealed report."""
        return self.nonce + mark_of(self.output, sealed)


def new_nonce() -> bytes:
    """Draws a random nonce of 16 bytes."""
    return secrets.token_bytes(NONCE_BYTES)


def token_info(stream: str, epoch: int) -> bytes:
    """The public info of the issuer's function: stream and epoch that a token is for."""
    return f"hubbub/1 token|{stream}|{epoch}".encode()


def nonce_of(token: bytes) -> bytes:
    """The nonce in a token, by which the shuffler recognises a spent one."""
    return token[:NONCE_BYTES]


def mark_of(output: bytes, sealed: bytes) -> bytes:
    """The mark that ties a token to one sealed report."""
    return hmac.digest(output, sealed, "sha256")[:_MARK_BYTES]
