"""The state's single SQLite file: opens, creates, renames if damaged, leaves alone after a fork."""

import contextlib
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final

from hubbub.client.files import locked_file, refuse_other_than_file, seconds_left
from hubbub.client.ledger import FOREIGN
from hubbub.client.reentry_and_forks import NoReentryLock, check_stack
from hubbub.client.state.consent import Consent
from hubbub.client.state.state_witness import LOCK_NAME
from hubbub.errors import StateBusy, StateUnusable

FILE_NAME: Final = "hubbub.sqlite3"

_VERSION: Final = 1
_FORK_SECONDS: Final = 1.0
# These errors mean that the file cannot be used now. All other errors of SQLite mean damage, since
# our statements never change.
_AWAY: Final = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}
_BUSY: Final = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ledger (metric TEXT PRIMARY KEY, account TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, number INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS journals (name TEXT PRIMARY KEY, done INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reports (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    stream TEXT, epoch INTEGER, key_id INTEGER, payload BLOB, sealed BLOB,
    late REAL, made REAL, claimed REAL, claimer TEXT, fate TEXT
);
CREATE INDEX IF NOT EXISTS waiting ON reports (id) WHERE fate IS NULL;
"""

# Added after version 1 of the file; former versions of hubbub can still read the file.
_ADDED: Final = (
    """
CREATE TABLE IF NOT EXISTS events (
    metric TEXT, epoch INTEGER, event TEXT, number INTEGER, PRIMARY KEY (metric, epoch, event)
) WITHOUT ROWID
""",
    """
CREATE TABLE IF NOT EXISTS persons (report INTEGER PRIMARY KEY, person BLOB, generation INTEGER)
""",
)

AS_TEXT: Final = partial(str, encoding="utf-8", errors="replace")
"""Text of the file; a bad letter takes the fact that it is in, not all that was asked."""

# Connections that must not be closed. In a forked child the parent's: closing one could release the
# parent's locks. Also those whose descriptors are other files' now, which SQLite would close.
_kept: Final[list[sqlite3.Connection]] = []

FileId = tuple[int, int]
"""Device and inode of a file."""


class Damaged(StateUnusable):
    """The file was damaged and is renamed; `consent` is the person's, as far as it was readable."""

    def __init__(self, message: str, consent: Consent | None = None) -> None:
        super().__init__(message)
        self.consent = consent


class Database:
    """One process's access to the file. Raises StateUnusable if the file cannot be used.

    `alone` keeps other processes out for a transaction, even if the file is replaced. `damaged` is
    the number of renamed damaged files; the reader resets it.
    """

    def __init__(self, path: Path, alone: Callable[[], AbstractContextManager[None]]) -> None:
        self._path = path
        self._apart = alone
        self.lock = NoReentryLock(_FORK_SECONDS)
        self._connection: sqlite3.Connection | None = None
        self._parents: sqlite3.Connection | None = None
        self._descriptors: dict[int, FileId] = {}
        self._inode = self._index_bytes = 0
        self._closed = False
        self.damaged_files = 0

    @contextlib.contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """A transaction that excludes others; `durable` survives a power cut. Raises StateBusy."""
        with self._lock_in_time(), self._errors(), self._apart():
            before = self._connection
            connection = self._open_connection()
            is_durable = durable or connection is not before
            connection.execute(f"PRAGMA synchronous = {'FULL' if is_durable else 'NORMAL'}")
            connection.execute(f"PRAGMA busy_timeout = {seconds_left() * 1000:.0f}")
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
                self._restore_index()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def scrub(self) -> None:
        """Overwrites deleted data in SQLite's write-ahead log too."""
        with self._lock_in_time(), self._errors():
            self._open_connection().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Closes the file for good: now, or as soon as the call that uses it is done."""
        self._closed = True
        with contextlib.suppress(StateBusy), self._lock_in_time():
            pass

    def after_fork_in_child(self) -> None:
        """Resets a forked child."""
        self.lock.after_fork_in_child()
        if self._connection:
            _kept.append(self._connection)
            self._parents = self._connection
        self._connection = None

    @contextlib.contextmanager
    def _lock_in_time(self) -> Iterator[None]:
        try:
            if not self._closed:  # to close takes few calls, and nobody closes twice
                check_stack()
        except RecursionError as error:
            raise StateBusy(
                f"{self._path}: the app's call stack is full; return, then try again"
            ) from error
        with self.lock.hold(seconds_left()) as is_entered:
            if not is_entered:
                raise StateBusy(f"{self._path}: another thread uses it all the time; try again")
            try:
                yield
            finally:
                if self._closed:
                    with contextlib.suppress(OSError):  # the folder is gone
                        self._let_go()

    def _restore_index(self) -> None:
        """Fills a cut index of the log, which raises SIGBUS, with zeros; SQLite rebuilds it."""
        path = self._path.with_name(f"{self._path.name}-shm")
        with contextlib.suppress(OSError):  # SQLite reports the problem
            size = path.stat().st_size
            if size < self._index_bytes and sys.platform != "win32":
                os.truncate(path, self._index_bytes)
            self._index_bytes = max(size, self._index_bytes)

    def _let_go(self) -> None:
        if self._connection and not self._is_closable():
            _kept.append(self._connection)
        elif self._connection:
            self._restore_index()
            self._connection.close()
            self._descriptors = {}
        self._connection = None

    def _is_ours(self) -> bool:
        """Returns whether the file is that of the connection, and still open."""
        numbers = self._descriptors
        try:
            if numbers and os.fstat(next(iter(numbers))).st_ino != self._inode:
                return False  # one is enough: whoever closes descriptors closes all
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def _lost_descriptors(self) -> set[FileId | None]:
        """Returns what the descriptors that the app closed are now: other files, or None."""
        # An app closes all; if one is left, SQLite closed the others, of another client here.
        now = {number: _file_id(number) for number in self._descriptors}
        is_one_left = any(now[number] == before for number, before in self._descriptors.items())
        return set() if is_one_left else set(now.values())

    def _is_closable(self) -> bool:
        """Returns whether SQLite would close no file of the app; the journal reopens itself."""
        lost = self._lost_descriptors() - {None}
        return not lost or lost.issubset(map(_file_id, self._path.parent.iterdir()))

    def _follow_descriptors(self) -> None:
        """Lets SQLite open new descriptors, which a process shares, if a daemon closed them."""
        if not self._is_closable():
            raise StateUnusable(
                f"{self._path}: the app closed this file and opened others in its place; start "
                "the client after the app closes files"
            )
        if self._parents and self._lost_descriptors():
            self._parents.close()
            self._parents, self._descriptors = None, {}

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection and self._is_ours():
            self._restore_index()
            return self._connection
        if self._closed:
            raise StateUnusable(f"{self._path}: the client is closed; start another")
        self._follow_descriptors()
        self._let_go()
        with self._exclude_processes():
            try:
                self._connection = self._connect()
            except (sqlite3.Error, *FOREIGN) as error:
                if not _is_damage(error):
                    raise
                self._set_aside()
                self._connection = self._connect()
        self._inode = self._path.stat().st_ino
        self._descriptors = _descriptors_of(self._path)
        self._index_bytes = 0
        self._restore_index()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        # PRIVACY: readable by its owner alone; SQLite gives its other files the same mode. A file
        # that is there is not opened: to close it would undo the locks of this process on it.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        refuse_other_than_file(self._path)
        connection = sqlite3.connect(
            self._path, timeout=seconds_left(), isolation_level=None, check_same_thread=False
        )
        connection.text_factory = AS_TEXT
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
            self._bring_up(connection)
            for table in ("meta", "ledger", "counts", "journals", "reports", "events"):
                connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()  # noqa: S608 our own
        except BaseException:
            connection.close()
            raise
        return connection

    def _bring_up(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise StateUnusable(
                f"{self._path} was written by a newer hubbub; upgrade, or give a new state_dir"
            )
        if version < _VERSION:
            connection.executescript(f"{_SCHEMA} PRAGMA user_version = {_VERSION};")
        for table in _ADDED:
            connection.execute(table)

    def _start_over(self) -> None:
        """Lets the next transaction start with a new file, unless another process has made one."""
        try:
            with self._exclude_processes():
                if self._is_ours():
                    self._set_aside()
            self._let_go()
        except OSError as error:
            raise self._unusable_error(f"cannot be set aside: {error.strerror}") from error

    def _set_aside(self) -> None:
        """Renames the damaged file, so that it can be examined."""
        self.damaged_files += 1
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                path = self._path.with_name(self._path.name + suffix)
                path.replace(path.with_name(f"damaged.{self._path.name}{suffix}"))

    def _exclude_processes(self) -> AbstractContextManager[None]:
        """Excludes other processes, which might rename this process's new file."""
        return locked_file(self._path.with_name(LOCK_NAME), time.monotonic() + seconds_left())

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Makes the folder, which may have been deleted; raises StateUnusable for every error."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            yield
        except Damaged:
            self._start_over()
            raise
        except BlockingIOError as error:
            raise self._busy_error() from error
        except OSError as error:
            raise self._unusable_error(str(error.strerror)) from error
        except (sqlite3.Error, *FOREIGN) as error:
            if _code_of(error) in _BUSY:
                raise self._busy_error() from error
            if not _is_damage(error):
                raise self._unusable_error(str(error)) from error
            self._start_over()
            raise Damaged(f"{self._path} is damaged, and set aside; try again") from error

    def _busy_error(self) -> StateBusy:
        return StateBusy(f"{self._path}: another process holds it all the time; try again")

    def _unusable_error(self, why: str) -> StateUnusable:
        return StateUnusable(f"{self._path}: {why}; free space there, or give a writable state_dir")


def _file_id(file: int | Path) -> FileId | None:
    try:
        file_stat = os.stat(file)  # noqa: PTH116 of a descriptor, too
    except OSError:
        return None
    return file_stat.st_dev, file_stat.st_ino


def _descriptors_of(path: Path) -> dict[int, FileId]:
    """Returns the descriptors of a database and its other files, if the system lists them."""
    try:
        numbers = [int(entry.name) for entry in Path("/dev/fd").iterdir()]
    except OSError:
        return {}
    open_files = {number: _file_id(number) for number in numbers}
    paths = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
    return {
        number: file
        for database_file in filter(None, map(_file_id, paths))
        for number, file in open_files.items()
        if file == database_file
    }


def _code_of(error: Exception) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)  # None for an error of the Python module itself
    return None if code is None else code & 0xFF


def _is_damage(error: Exception) -> bool:
    code = _code_of(error)
    return not isinstance(error, sqlite3.Error) or (code is not None and code not in _AWAY)
