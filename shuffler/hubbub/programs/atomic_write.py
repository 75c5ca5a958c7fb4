"""Writes files atomically, and reports the unwritable ones in the same words everywhere."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter, HubbubError

if sys.platform != "win32":
    import fcntl

_NEW: Final = ".new"
_NO_ROOM: Final = "make room on that disk, and repeat the command"
_NO_FOLDER: Final = "check the path; the folder of a file must exist"
_NO_RIGHT: Final = "name a place where this user may write"
_REMEDIES: Final = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _NO_ROOM),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), _NO_FOLDER),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _NO_RIGHT),
    errno.EISDIR: "it is a folder: name a file",
    errno.EEXIST: "something else is there: name another place",
}


def refusal_with_remedy(error: OSError) -> str:
    """Why the system refused a file, and what to do."""
    why = error.strerror or type(error).__name__
    return f"{why}; {_REMEDIES.get(error.errno or 0, 'check the path and who may use it')}"


@contextmanager
def refuse_unwritable(place: str | Path, refused: type[HubbubError]) -> Iterator[None]:
    """Turns an OSError of the block into a `refused` error that names `place` and the reason.

    If `place` is a folder, it names the file in it that could not be written.
    """
    try:
        yield
    except OSError as error:
        if isinstance(place, Path) and place.is_dir():
            place = str(error.filename or place).removesuffix(_NEW)
        raise refused(f"{place}: cannot be written: {refusal_with_remedy(error)}") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Locks a file to read and replace it: of two commands at once, the second waits.

    It locks the file's folder, since the file itself is replaced, and may not exist yet. Raises
    OSError if there is no such folder. Windows and some network file systems have no such lock.
    """
    if sys.platform == "win32":
        yield
        return
    folder = os.open(path.resolve().parent, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def read_output(name: str, path: Path) -> Path:
    """Returns the path of a file to write, before the work whose result it gets.

    Raises BadParameter if it cannot be written, as far as that is known without writing.
    """
    reason = 0
    if path.is_dir():
        reason = errno.EISDIR
    elif not path.parent.is_dir():
        reason = errno.ENOTDIR if path.parent.exists() else errno.ENOENT
    else:
        places = [path] if path.exists() else [path.parent]
        if path.is_file():  # it is replaced, which its folder must allow
            places.append(path.resolve().parent)
        if not all(os.access(place, os.W_OK) for place in places):
            reason = errno.EACCES
    if reason:
        with refuse_unwritable(f"{name} {path}", BadParameter):
            raise OSError(reason, os.strerror(reason))
    return path


def write_output(name: str, path: Path, content: str | bytes) -> None:
    """Writes the file of an option `name` as replace_file does, a text in UTF-8.

    Raises BadParameter if it cannot be written.
    """
    with refuse_unwritable(f"{name} {path}", BadParameter):
        replace_file(path, content.encode() if isinstance(content, str) else content)


def replace_file(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Writes a file atomically: a reader sees the old file or the new one, even if a disk is full.

    A device or pipe, such as /dev/null or /dev/stdout, is written to directly. `mode` applies to a
    new file, less the umask. An existing file keeps its owner, and gets no rights that it lacks.
    Raises OSError; the old file is then unchanged.
    """
    if path.exists() and not path.is_file():  # before resolve(): a pipe behind a link has no path
        path.write_bytes(content)
        return
    path = path.resolve()
    new_path = path.with_name(path.name + _NEW)
    new_path.unlink(missing_ok=True)
    new_path.touch(mode=mode)
    try:
        new_path.write_bytes(content)
    except OSError:
        new_path.unlink()  # a part would take the room that is missing
        raise
    if path.exists():  # its readers can still read it, even if root writes it
        former = path.stat()
        new_path.chmod(former.st_mode & mode)
        with suppress(PermissionError):
            os.chown(new_path, former.st_uid, former.st_gid)
    new_path.replace(path)
