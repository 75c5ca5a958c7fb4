"""The issuer's private key in a file, as one line of base64.

Only the holder of the private key can verify a token, so both the issuer and the shuffler have it;
decision 0206 says what that lets each of them do.
"""

import binascii
from pathlib import Path
from typing import Final

from hubbub.errors import KeysUnusable

TOKEN_KEY: Final = "tokens.key"  # noqa: S105 the name of a file
"""The file of the private key, in the folder of keys."""

KEY_BYTES: Final = 32


def read_token_key(path: Path) -> bytes:
    """Reads the private key. Raises KeysUnusable if the file does not hold one."""
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
