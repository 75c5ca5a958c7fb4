"""Secret files, which are read only if nobody else can read them."""

import os
import stat
from pathlib import Path

from hubbub.errors import KeysUnusable


def write_secret(path: Path, content: bytes) -> None:
    """Writes a file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_bytes(content)


def read(path: Path) -> bytes:
    """Reads a file. Raises KeysUnusable if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        remedy = "make keys with: hubbub keys new FOLDER"
        raise KeysUnusable(f"{path}: cannot be read: {error.strerror}; {remedy}") from error


def read_secret(path: Path) -> bytes:
    """Reads a file. Raises KeysUnusable if it cannot be read, or others can read it."""
    raw = read(path)
    file_stat = path.stat()
    # An orchestrator mounts secrets as its own, readable to the group that the service runs in.
    handed = file_stat.st_uid != os.geteuid() and not file_stat.st_mode & (
        stat.S_IWGRP | stat.S_IXGRP
    )
    if file_stat.st_mode & (stat.S_IRWXO if handed else stat.S_IRWXG | stat.S_IRWXO):
        raise KeysUnusable(f"{path} is readable by others; run: chmod 600 {path}")
    return raw
