"""Paths of state folders, and this user's own folder among temporary files.

The latter holds what must be stored while a state folder cannot be used.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Final

NOWHERE: Final = Path(os.devnull) / "hubbub"
"""A folder that no system can make: what would be in it is kept in memory."""


def settled(folder: Path) -> Path:
    """Returns the absolute folder, with links resolved, independent of the working directory."""
    with contextlib.suppress(OSError):  # of a working directory that is gone
        return Path(os.path.realpath(folder))
    return folder


def elsewhere() -> Path:
    """Returns this user's own folder among temporary files; an impossible path without any."""
    import tempfile  # noqa: PLC0415 loads what unpacks archives; few need it

    try:
        return Path(tempfile.gettempdir()) / f"hubbub-{_user()}"
    except OSError:
        return NOWHERE


def is_own(folder: Path) -> bool:
    """Returns whether a folder exists in which only this user can have written.

    PRIVACY: anyone may have made it before us; then it is not used.
    """
    try:
        folder_stat = folder.lstat()
    except (OSError, ValueError):
        return False
    if not hasattr(os, "getuid"):
        return True
    return (
        stat.S_ISDIR(folder_stat.st_mode)
        and folder_stat.st_uid == _user()
        and not folder_stat.st_mode & 0o022
    )


def refuse_other_than_file(path: Path) -> None:
    """Raises OSError for a path that is not a file: opening it might block forever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "is no file")


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
