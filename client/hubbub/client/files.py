"""Files of a client: where they are, and how they are read, replaced and locked."""

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

NOWHERE: Final = Path(os.devnull) / "hubbub"
"""A folder that no system can make: what would be in it is kept in memory."""

_OWNER_ONLY: Final = 0o600
_LOOK_SECONDS: Final = 0.002
_USUAL_SECONDS: Final = 5.0
# However little time is left: what other processes write takes milliseconds.
_SHORTEST_SECONDS: Final = 0.25
_deadline: Final[ContextVar[float | None]] = ContextVar("deadline", default=None)


@contextlib.contextmanager
def limited_to(seconds: float) -> Iterator[None]:
    """Limits all waits of this thread for files in a block to about `seconds` together."""
    before = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(before)


def seconds_left(usual: float | None = None) -> float:
    """Returns how long the next wait may take; outside of such a block `usual`, or 5 seconds."""
    deadline = _deadline.get()
    if deadline is not None:
        return max(_SHORTEST_SECONDS, deadline - time.monotonic())
    return _USUAL_SECONDS if usual is None else usual


def resolved_folder(folder: Path) -> Path:
    """Returns the absolute folder, with links resolved, independent of the working directory."""
    with contextlib.suppress(OSError):  # of a working directory that is gone
        return Path(os.path.realpath(folder))
    return folder


def is_too_long(path: Path) -> bool:
    """Returns whether the system permits no path of this length."""
    try:
        path.lstat()
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG
    return False


def elsewhere() -> Path:
    """Returns this user's own folder among temporary files; an impossible path without any."""
    import tempfile  # noqa: PLC0415 loads what unpacks archives; few need it

    try:
        return Path(tempfile.gettempdir()) / f"hubbub-{_user()}"
    except OSError:
        return NOWHERE


def is_own(folder: Path) -> bool:
    """Returns whether only this user can write in a folder. PRIVACY: others may have made it."""
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


def read_file(path: Path, max_bytes: int = -1) -> bytes:
    """Returns a file's bytes. Raises OSError for anything else, which could block the read."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(errno.EINVAL, "is no file")
        return opened.read(max_bytes)


def replace_file(path: Path, content: bytes, *, aside: Path | None = None) -> None:
    """Replaces a file atomically, and renames the former one to `aside`. Raises OSError."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.draft")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    with os.fdopen(file, "wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    if aside:
        path.replace(aside)
    draft.replace(path)


@contextlib.contextmanager
def locked_file(path: Path, deadline: float) -> Iterator[None]:
    """Opens and locks a file, waiting while another process has it, until `deadline` (monotonic).

    An exception from a signal handler meanwhile leaves it unlocked. Raises OSError.
    """
    is_locked = False
    while not is_locked:
        file = os.open(path, os.O_RDWR | os.O_CREAT, _OWNER_ONLY)
        try:
            _lock(file, deadline)
            with contextlib.suppress(FileNotFoundError):  # it may have been deleted as temporary
                is_locked = path.stat().st_ino == os.fstat(file).st_ino
            if is_locked:
                yield
        finally:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_UN)  # a fork may have copied the descriptor
            os.close(file)


def _lock(file: int, deadline: float) -> None:
    while sys.platform != "win32":
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOOK_SECONDS)


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
