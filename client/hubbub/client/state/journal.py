"""The journal: payloads in memory that outlives the process.

A file of fixed size is mapped into memory. Noting a payload there is a copy from memory to memory,
no call of the system; the system keeps the pages when the process is killed. The next process of
the app that finds a journal without its owner enters what it holds.

A record: length, number, checksum, body. Numbers grow by one. After a rewind new records overwrite
old ones, and the first number that does not follow ends the journal.
"""

import contextlib
import mmap
import os
import secrets
import stat
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hubbub.client.state.contract import PendingPayload

if sys.platform != "win32":
    import fcntl

_SIZE: Final = 1 << 20
_POPULATE: Final = getattr(mmap, "MAP_POPULATE", 0)
_RECORD: Final = struct.Struct("<IQI")
_BODY: Final = struct.Struct("<dIIBB")
# What a record holds besides its payload: both heads, and stream and tag at their longest.
_MAX_MORE_BYTES: Final = _RECORD.size + _BODY.size + 2 * 255
_MAX_SECONDS: Final = 2.5e11  # the year 9892: what datetime still knows
_SUFFIX: Final = ".journal"


class Journal:
    """One process's journal in a state folder; gone once it is closed empty. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        self.name = f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
        self._path = folder / self.name
        draft = self._path.with_suffix(".draft")
        self._file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # Written now and in full: a full disk is an error here and not a fault in report(),
            # which finds every page in memory.
            with os.fdopen(os.dup(self._file), "wb") as file:
                file.write(bytes(_SIZE))
            self._memory = mmap.mmap(self._file, _SIZE, mmap.MAP_SHARED | _POPULATE)
            _lock(self._file)
            draft.replace(self._path)  # only now, locked, can others see it
        except OSError:
            os.close(self._file)
            draft.unlink(missing_ok=True)
            raise
        self._end = 0
        self._number = 0

    def has_room(self, size_bytes: int) -> bool:
        """Whether a payload of this size fits."""
        return self._end + _MAX_MORE_BYTES + size_bytes <= _SIZE

    def append(self, drawn: PendingPayload) -> int:
        """Note a payload that has room: its number. Not safe between threads."""
        body = _encode(drawn)
        start = self._end + _RECORD.size
        self._number += 1
        self._memory[start : start + len(body)] = body
        head = _RECORD.pack(len(body), self._number, _checksum(self._number, body))
        self._memory[self._end : start] = head
        self._end = start + len(body)
        return self._number

    def rewind(self, done: int) -> None:
        """Start over if everything up to the last number is done."""
        if done == self._number:
            self._end = 0

    def wipe(self) -> None:
        """Overwrite everything: what was noted is to be forgotten."""
        self._memory[:] = bytes(_SIZE)
        self._end = 0

    def close(self) -> None:
        """Let go; what is in it waits for the next process."""
        self._memory.close()
        if not self._end:
            with contextlib.suppress(OSError):  # of a folder that is gone
                self._path.unlink()
        os.close(self._file)

    def after_fork_in_child(self) -> None:
        """Let go in a forked child: the journal is its parent's."""
        self._memory.close()
        os.close(self._file)


def orphans(folder: Path) -> Iterator[tuple[Path, list[tuple[int, PendingPayload]]]]:
    """Each journal whose process has ended, with what it holds; locked until the next is asked."""
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        try:
            file = os.open(path, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))
        except OSError:
            continue
        try:
            # Another process may have emptied and removed it while we waited for the lock.
            if stat.S_ISREG(os.fstat(file).st_mode) and _lock(file) and os.fstat(file).st_nlink:
                yield path, list(_records(os.pread(file, _SIZE, 0)))
        finally:
            os.close(file)


def _lock(file: int) -> bool:
    """Take the file if its owner has ended. The lock ends with the process, however it ends."""
    if sys.platform == "win32":
        return False
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _records(memory: bytes) -> Iterator[tuple[int, PendingPayload]]:
    place, last = 0, None
    while place + _RECORD.size <= len(memory):
        length, number, checksum = _RECORD.unpack_from(memory, place)
        place += _RECORD.size
        body = memory[place : place + length]
        if not length or (last is not None and number != last + 1):
            return
        if checksum != _checksum(number, body):
            return
        with contextlib.suppress(ValueError, struct.error):
            yield number, _decode(body)
        place, last = place + length, number


def _checksum(number: int, body: bytes) -> int:
    return zlib.crc32(body, number & 0xFFFFFFFF)


def _encode(drawn: PendingPayload) -> bytes:
    stream, tag = drawn.stream.encode(), drawn.tag.encode()
    head = _BODY.pack(drawn.made, drawn.epoch, drawn.generation, len(stream), len(tag))
    return head + stream + tag + drawn.payload


def _decode(body: bytes) -> PendingPayload:
    made, epoch, generation, stream, tag = _BODY.unpack_from(body)
    if not 0 <= made < _MAX_SECONDS:
        raise ValueError("made at no time")
    first, second = _BODY.size + stream, _BODY.size + stream + tag
    return PendingPayload(
        stream=body[_BODY.size : first].decode(),
        epoch=epoch,
        tag=body[first:second].decode(),
        payload=body[second:],
        generation=generation,
        made=made,
    )
