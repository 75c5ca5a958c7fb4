"""Files written whole; and those that cannot be, refused in the same words everywhere."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hubbub.errors import HubbubError


@contextmanager
def refuse_unwritable(place: str | Path, refused: type[HubbubError]) -> Iterator[None]:
    """Raise `refused` with the place and the reason where the block cannot write it."""
    try:
        yield
    except OSError as error:
        raise refused(f"{place}: cannot be written: {error.strerror}") from error


def replace_file(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file all at once: a reader sees the old file or the new, also where a disk is full.

    A device, such as /dev/null, is written to. mode: of a new file, less the process' umask.
    Raises OSError; then the old file stands.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    beside.touch(mode=mode)
    beside.write_bytes(content)
    if path.exists():  # whoever may read it may go on reading it, also if root writes
        with suppress(PermissionError):
            os.chown(beside, path.stat().st_uid, path.stat().st_gid)
    beside.replace(path)
