"""Floor 1. Tokens against fake reports: an issuer gives them, blinded; a shuffler requires them.

`poprf` is imported separately: it needs rbcl, which a device without tokens lacks.
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
