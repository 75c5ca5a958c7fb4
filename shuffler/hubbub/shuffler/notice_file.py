"""The operator's notice as every answer carries it: signed bytes, which the shuffler cannot make.

It looks at the outside alone, so that a wrong file is refused here and not by every device.
"""

import json
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter

_LARGEST_BYTES: Final = 16 << 10  # devices take no longer one
_REMEDY: Final = "make it with: hubbub notice make"


def read_notice(path: Path | None) -> bytes:
    """What a file of a notice holds; nothing while there is no file, so that one may come later.

    Raises:
        BadParameter: it cannot be read, or is none.
    """
    if path is None:
        return b""
    try:
        with path.open("rb") as file:
            signed = file.read(_LARGEST_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise BadParameter(f"--notice {path}: {error.strerror}; let this user read it") from error
    if len(signed) > _LARGEST_BYTES or not _has_head(signed):
        raise BadParameter(f"--notice {path}: is none; {_REMEDY}")
    return signed


def _has_head(signed: bytes) -> bool:
    try:
        head = json.loads(signed.partition(b"\n")[0])
    except ValueError:
        return False
    return isinstance(head, dict) and "hubbub notice" in head
