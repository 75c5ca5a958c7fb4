"""The journal: payloads in memory that outlives the process.

A file of fixed size, whose pages the system keeps when the process is killed. To note a payload
copies it there, and waits for no disk. It is not mapped: whoever cuts a mapped file ends the
process (docs/decisions/0201). The next process enters what a journal without its owner holds.

A record: length, number, checksum, body. Numbers grow by one. After a rewind new records overwrite
old ones, and the first number that does not follow ends the journal.
"""

import contextlib
import errno
import math
import mmap
import os
import stat
import struct
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hubbub.client.state.contract import PendingPayload

if sys.platform != "win32":
    import fcntl

_SIZE: Final = 1 << 20
_RECORD: Final = struct.Struct("<IQI")
_BODY: Final = struct.Struct("<dIIBB")
# Size of a record without its payload: both heads, and stream and tag at their longest.
_MAX_OVERHEAD_BYTES: Final = _RECORD.size + _BODY.size + 2 * 255
_MAX_SECONDS: Final = 2.5e11  # the year 9892, within the range of datetime
_SUFFIX: Final = ".journal"


class Journal:
    """One process's journal in a state folder; deleted when it is closed empty. Raises OSError.

    `number` is that of the last payload before this journal.
    """

    def __init__(self, folder: Path, number: int = 0) -> None:
        self.name = f"{os.getpid()}-{os.urandom(4).hex()}{_SUFFIX}"
        self.path = folder / self.name
        draft = self.path.with_suffix(".draft")
        self._file = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # Written in full, so that a full disk fails here and never in report().
            os.pwrite(self._file, bytes(_SIZE), 0)
            _lock(self._file)
            self._stat = os.fstat(self._file)
            draft.replace(self.path)  # other processes see it only now that it is locked
        except OSError:
            os.close(self._file)
            draft.unlink(missing_ok=True)
            raise
        self._end = 0
        self._number = number
        self.first_unstored = math.inf
        """Number from which on payloads are in the caller's memory alone: it cannot be written."""

    def has_room(self, size_bytes: int) -> bool:
        """Whether a payload of this size fits."""
        return self._end + _MAX_OVERHEAD_BYTES + size_bytes <= _SIZE

    def append(self, drawn: PendingPayload) -> int:
        """Stores a payload for which there is room; returns its number. Not safe between threads.

        The file has its full size, but a limit of the process (RLIMIT_FSIZE) may refuse or cut a
        write; the payload is then kept in memory, which has no such limit.
        """
        body = _encode(drawn)
        self._number += 1
        record = _RECORD.pack(len(body), self._number, _checksum(self._number, body)) + body
        if self._number < self.first_unstored:
            try:
                self._take_hold()
                try:
                    is_whole = os.pwrite(self._file, record, self._end) == len(record)
                except OSError as error:
                    if error.errno not in {errno.EFBIG, errno.ENOSPC, errno.EDQUOT}:
                        raise
                    is_whole = False
                if not is_whole:
                    with mmap.mmap(self._file, _SIZE) as memory:
                        memory[self._end : self._end + len(record)] = record
            except OSError:
                self.first_unstored = self._number
        self._end += len(record)
        return self._number

    def rewind(self, done: int) -> None:
        """Starts over if everything up to the last number is done."""
        if done == self._number:
            self._end = 0

    def wipe(self) -> None:
        """Overwrites everything that is to be forgotten. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            self._take_hold()
            os.pwrite(self._file, bytes(_SIZE), 0)
        self._end = 0

    def close(self) -> None:
        """Closes the file; its content waits for the next process."""
        if not self._end:
            with contextlib.suppress(OSError):  # of a folder that is gone
                self.path.unlink()
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Closes the file in a forked child: the journal is its parent's."""
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(self._file), self._stat):
                os.close(self._file)

    def _take_hold(self) -> None:
        """Reopens a file that the app closed, as a daemon does; fills a cut one. Raises OSError."""
        try:
            status = os.fstat(self._file)
        except OSError:
            status = None
        if status is None or not os.path.samestat(status, self._stat):
            file = os.open(self.path, os.O_RDWR)
            status = os.fstat(file)
            if not os.path.samestat(status, self._stat) or not _lock(file):
                os.close(file)
                raise FileNotFoundError(errno.ENOENT, "is another process's", str(self.path))
            self._file = file
        if status.st_size < _SIZE:
            os.pwrite(self._file, bytes(_SIZE), 0)
            self._end = 0


class Notes:
    """One process's notes beside a state folder; at most `most` wait if there is no journal.

    Safe between threads; I/O at start and end only.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most
        self._journal: Journal | None = None
        self._last = 0
        self._start()

    @property
    def owner(self) -> str:
        """The name of this process in the state, which no other process shares."""
        return self._owner

    def has_room(self, size_bytes: int) -> bool:
        """Whether another payload of this size can be noted."""
        journal = self._journal
        if journal:
            return journal.has_room(size_bytes)
        return self._last - self._entered < self._most

    def note(self, drawn: PendingPayload) -> int:
        """Stores a payload; returns its number."""
        with self._lock:
            self._last = self._journal.append(drawn) if self._journal else self._last + 1
            return self._last

    def mark_entered(self, upto: int) -> None:
        """Marks payloads up to this number as entered in the state."""
        with self._lock:
            self._entered = upto
            if self._journal:
                self._journal.rewind(upto)
                if upto == self._last >= self._journal.first_unstored:
                    self._open_journal()

    def outlives(self, number: int) -> bool:
        """Whether the next process finds the payload of this number."""
        return self._journal is not None and number < self._journal.first_unstored

    def wipe(self) -> None:
        """Overwrites everything."""
        with self._lock:
            if self._journal:
                self._journal.wipe()

    def close(self) -> None:
        """Closes the journal; its content waits for the next process."""
        with self._lock:
            if self._journal:
                self._journal.close()
            self._journal = None

    def after_fork_in_child(self) -> None:
        """Resets a forked child: the journal is the parent's."""
        if self._journal:
            self._journal.after_fork_in_child()
        self._start()

    def _start(self) -> None:
        # Reentrant: a finalizer may report while this thread is in any of these methods.
        self._lock = threading.RLock()
        self._last = self._entered = 0
        self._journal = None
        self._owner = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._open_journal()

    def _open_journal(self) -> None:
        """Opens a journal if possible, continuing at the last number."""
        if sys.platform != "win32":  # without file locks orphans cannot be recognized
            with contextlib.suppress(OSError):
                self._journal = Journal(self._folder, self._last)
                self._owner = self._journal.name


def orphans(folder: Path) -> Iterator[tuple[Path, list[tuple[int, PendingPayload]]]]:
    """Yields each journal whose process has ended, with its content, locked meanwhile."""
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
    """Locks the file if its owner has ended. The lock ends with the process."""
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
    created_at, epoch, generation, stream, tag = _BODY.unpack_from(body)
    if not 0 <= created_at < _MAX_SECONDS:
        raise ValueError("has no valid time")
    stream_end, tag_end = _BODY.size + stream, _BODY.size + stream + tag
    return PendingPayload(
        stream=body[_BODY.size : stream_end].decode(),
        epoch=epoch,
        tag=body[stream_end:tag_end].decode(),
        payload=body[tag_end:],
        generation=generation,
        made=created_at,
    )
