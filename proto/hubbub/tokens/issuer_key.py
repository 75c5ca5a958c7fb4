"""The issuer's key as a file, one line of base64: the issuer evaluates, the shuffler checks by it.

The function is verifiable by whoever has the private key alone: there is no public half that could
tell a token. So both have it; see decision 0206 for what that gives each of them.
"""

import binascii
from pathlib import Path
from typing import Final

from hubbub.errors import KeysUnusable

TOKEN_KEY: Final = "tokens.key"  # noqa: S105 the name of a file
"""The file of the private key, in the folder of keys."""

KEY_BYTES: Final = 32


def read_token_key(path: Path) -> bytes:
    """The private key. Raises KeysUnusable for a file that has none."""
    try:
        key = binascii.a2b_base64(path.read_bytes().strip(), strict_mode=True)
    except OSError as error:
        raise KeysUnusable(
            f"{path}: cannot be read: {error.strerror}; make it with: hubbub keys issuer"
        ) from error
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise KeysUnusable(f"{path}: not an issuer's key; make one with: hubbub keys issuer")
    return key
