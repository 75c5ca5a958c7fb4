"""Floor 1. Tokens against fakes: what an issuer gives an account, blinded, and a shuffler takes.

`poprf` is not among these: it alone needs rbcl, which a device without tokens has not.
"""

from hubbub.tokens.issuer_key import TOKEN_KEY, read_token_key
from hubbub.tokens.token import (
    TOKEN_BYTES,
    Minted,
    is_token,
    mark_of,
    new_nonce,
    nonce_of,
    token_info,
)

__all__ = [
    "TOKEN_BYTES",
    "TOKEN_KEY",
    "Minted",
    "is_token",
    "mark_of",
    "new_nonce",
    "nonce_of",
    "read_token_key",
    "token_info",
]
