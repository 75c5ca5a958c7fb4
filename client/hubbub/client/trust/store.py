"""Stores trust: one file beside the states, replaced atomically, under a lock."""

import contextlib
import errno
import hashlib
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from hubbub.bundles.encoding import MALFORMED
from hubbub.client.paths import elsewhere, is_own
from hubbub.client.trust.bundles import Trust, is_newer
from hubbub.errors import StateUnusable

if sys.platform != "win32":
    import fcntl

_log: Final = logging.getLogger("hubbub.client")
_NAME: Final = "trust.json"
_OWNER_ONLY: Final = 0o600
# Another start of the app holds the lock briefly; a suspended one must not block this one.
_LOCK_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.01


def beside(home: Path, state_dir: Path | None) -> list[Path]:
    """Returns the possible places of the file, its own place first.

    The file is among this user's states, or next to a folder that the app chose. If that folder's
    parent is not writable it is inside the folder, and then lost together with the state.
    """
    if state_dir is None:
        return [home / _NAME]
    with contextlib.suppress(OSError):
        state_dir.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    places = [state_dir.with_name(f"{state_dir.name}.{_NAME}"), state_dir / _NAME]
    return places if os.access(state_dir.parent, os.W_OK | os.X_OK) else places[::-1]


@contextlib.contextmanager
def held(path: Path, *others: Path) -> Iterator["TrustFile"]:
    """Yields the file, locked against other starts.

    If it is not writable, changes go into a file among temporary files, as those of a witness do;
    its content stays valid.

    others: earlier places of the file, used while its own place was not writable.
    """
    own = _elsewhere(path)
    place, lock = _first_lock(path, own)
    try:
        yield TrustFile(path, [*others, *([own] if is_own(own.parent) else [])], place)
    finally:
        if lock is not None:
            _unlock(lock)


class TrustFile:
    """The content of the file of trust, merged with its copies in other places.

    Args:
        place: the copy that is written, if any.

    Attributes:
        is_behind: another copy had entries that this one lacked.
    """

    def __init__(self, path: Path, others: Sequence[Path], place: Path | None) -> None:
        self._path = path
        self._others = others
        self._place = place
        self.is_behind = False

    def read(self) -> Trust:
        """Returns all trust. A damaged file is renamed; then the folders replace it.

        Raises:
            StateUnusable: a file exists that cannot be read.
        """
        trust = self._read(self._path)
        own = trust.data()
        for other in self._others:
            trust.absorb(self._read(other))
        self.is_behind = self._place == self._path and trust.data() != own
        return trust

    def write(self, trust: Trust) -> None:
        """Replaces the file atomically. Raises StateUnusable if that fails."""
        if self._place is None:
            raise StateUnusable(f"{self._path}: cannot be written; give a writable state_dir")
        draft = self._place.with_name(f"{self._place.name}.{os.getpid()}.draft")
        try:
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
            with os.fdopen(file, "wb") as stream:
                stream.write(json.dumps(trust.data()).encode())
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self._place)
        except OSError as error:
            raise StateUnusable(
                f"{self._place}: {error.strerror}; free space there, or give a new state_dir"
            ) from error
        for other in self._others if self._place == self._path else ():
            with contextlib.suppress(OSError):
                other.unlink(missing_ok=True)

    def _read(self, path: Path) -> Trust:
        try:
            raw = _content(path)
        except (FileNotFoundError, NotADirectoryError):
            return Trust()
        except OSError as error:
            self._place = None  # an unread file must not be overwritten
            raise StateUnusable(f"{path}: {error.strerror}; let this user read it") from error
        try:
            document = json.loads(raw)
            if is_newer(document):
                self._place = None
                raise StateUnusable(f"{path} was written by a newer hubbub; upgrade")
            return Trust.load(document)
        except MALFORMED:
            aside = path.with_name(f"damaged.{path.name}")
            _log.warning(
                "%s is damaged, and set aside; the state folders identify the trusted operator",
                path,
            )
            with contextlib.suppress(OSError):
                path.replace(aside)
            return Trust()


def look(places: Iterable[Path]) -> Trust:
    """Returns the merged content of all places, without changing any; empty if there is none."""
    trust = Trust()
    for path in places:
        with contextlib.suppress(OSError, *MALFORMED):
            trust.absorb(Trust.load(json.loads(_content(path))))
    return trust


def _first_lock(path: Path, own: Path) -> tuple[Path | None, int | None]:
    """Returns the file that this start may write, and its lock; None for both without any.

    own: the one among temporary files.
    """
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.access(path.parent, os.W_OK | os.X_OK):
            return path, _lock(path)
    with contextlib.suppress(OSError):
        own.parent.mkdir(mode=0o700, exist_ok=True)
        if is_own(own.parent):
            return own, _lock(own)
    return None, None


def _lock(path: Path) -> int:
    """Returns a locked file beside `path`. Raises OSError if another start has it."""
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, _OWNER_ONLY)
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while sys.platform != "win32":
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_SECONDS)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _unlock(lock: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(lock, fcntl.LOCK_UN)  # a fork may have copied the descriptor
    os.close(lock)


def _elsewhere(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    return elsewhere() / f"{name}.trust"


def _content(path: Path) -> bytes:
    """Returns a file's bytes. Raises OSError for anything else, which could block the read."""
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(errno.EINVAL, "is no file")
        return opened.read()
