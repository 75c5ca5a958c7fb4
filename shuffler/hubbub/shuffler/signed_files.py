"""Files signed by the operator for all devices: a notice, and the state of models.

The shuffler can make neither. It checks only their size and first line, so that a wrong file is
refused here and not by every device.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter


@dataclass(frozen=True, slots=True)
class SignedFiles:
    """Both files as served; empty for none."""

    notice: bytes = b""
    models: bytes = b""


# Devices refuse longer ones.
_LARGEST_BYTES: Final = {"notice": 16 << 10, "models": 512 << 10}
_REMEDY: Final = {"notice": "hubbub notice make", "models": "hubbub model publish"}


def read_signed(notice: Path | None, models: Path | None) -> SignedFiles:
    """Reads the files; a missing file is empty, so that it may be added later.

    Raises:
        BadParameter: a file cannot be read, or is not of its kind.
    """
    return SignedFiles(_read("notice", notice), _read("models", models))


def _read(what: str, path: Path | None) -> bytes:
    if path is None:
        return b""
    try:
        with path.open("rb") as file:
            signed = file.read(_LARGEST_BYTES[what] + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise BadParameter(f"--{what} {path}: {error.strerror}; let this user read it") from error
    if len(signed) > _LARGEST_BYTES[what] or not _has_head(signed, f"hubbub {what}"):
        raise BadParameter(f"--{what} {path}: is not such a file; make it with: {_REMEDY[what]}")
    return signed


def _has_head(signed: bytes, kind: str) -> bool:
    try:
        head = json.loads(signed.partition(b"\n")[0])
    except ValueError:
        return False
    return isinstance(head, dict) and kind in head
