"""Where trust is written down: one file beside the states, whole or not at all, under a lock."""

import contextlib
import hashlib
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hubbub.catalog.text import MALFORMED
from hubbub.client.trust import Trust, is_newer
from hubbub.errors import StateUnusable

if sys.platform != "win32":
    import fcntl

__all__ = ["TrustFile", "beside", "held", "look"]

_log: Final = logging.getLogger("hubbub.client")
_NAME: Final = "trust.json"
_OWNER_ONLY: Final = 0o600
# Another start of the app holds the lock for a moment; one that was stopped must not stop us.
_LOCK_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.01


def beside(home: Path, state_dir: Path | None) -> Path:
    """The file: among this user's states; or next to a folder that the app chose for itself.

    Where that folder's parent cannot be written, in it: that spares the loss of the state alone.
    """
    if state_dir is None:
        return home / _NAME
    folder = state_dir.absolute()
    with contextlib.suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    outside = folder.with_name(f"{folder.name}.{_NAME}")
    return outside if os.access(folder.parent, os.W_OK | os.X_OK) else folder / _NAME


@contextlib.contextmanager
def held(path: Path) -> Iterator["TrustFile"]:
    """The file, while no other start changes it.

    Where it cannot be written, what is new goes into a file among temporary ones, as the witness
    of a state that cannot be kept does; what the file itself says still holds.
    """
    own = _elsewhere(path)
    place, lock = _first_lock(path, own)
    try:
        yield TrustFile(path, own, place)
    finally:
        if lock is not None:
            os.close(lock)


class TrustFile:
    """What the file says, and the one elsewhere. place: which of them is written, if any."""

    def __init__(self, path: Path, elsewhere: Path, place: Path | None) -> None:
        self._path = path
        self._elsewhere = elsewhere
        self._place = place

    def read(self) -> Trust:
        """All that is known. A damaged file is set aside: then the folders vouch.

        Raises:
            StateUnusable: there is something that cannot be read.
        """
        found = self._read(self._path)
        if _is_ours(self._elsewhere.parent):
            found.absorb(self._read(self._elsewhere))
        return found

    def write(self, trust: Trust) -> None:
        """Replace the file, whole or not at all. Raises StateUnusable if that cannot be."""
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
        if self._place == self._path and _is_ours(self._elsewhere.parent):
            with contextlib.suppress(OSError):
                self._elsewhere.unlink(missing_ok=True)

    def _read(self, path: Path) -> Trust:
        try:
            raw = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return Trust()
        except OSError as error:
            self._place = None  # nobody writes over what he has not read
            raise StateUnusable(f"{path}: {error.strerror}; let this user read it") from error
        try:
            document = json.loads(raw)
            if is_newer(document):
                self._place = None
                raise StateUnusable(f"{path} was written by a newer hubbub; upgrade")
            return Trust.load(document)
        except MALFORMED:
            aside = path.with_name(f"damaged.{path.name}")
            _log.warning("%s is damaged, and set aside; the state folders say who is trusted", path)
            with contextlib.suppress(OSError):
                path.replace(aside)
            return Trust()


def look(path: Path) -> Trust:
    """What the file says, changing nothing; nothing where it says nothing."""
    try:
        return Trust.load(json.loads(path.read_bytes()))
    except (OSError, *MALFORMED):
        return Trust()


def _first_lock(path: Path, own: Path) -> tuple[Path | None, int | None]:
    """Which file this start may write, and the lock that keeps others from it; None where neither.

    own: the one among temporary files.
    """
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.access(path.parent, os.W_OK | os.X_OK):
            return path, _lock(path)
    with contextlib.suppress(OSError):
        if _is_ours(own.parent, make=True):
            return own, _lock(own)
    return None, None


def _lock(path: Path) -> int:
    """A file beside `path` that this start alone has locked. Raises OSError if that cannot be."""
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


def _elsewhere(path: Path) -> Path:
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:16]
    user = os.getuid() if hasattr(os, "getuid") else 0
    return Path(tempfile.gettempdir()) / f"hubbub-{user}" / f"{name}.trust"


def _is_ours(folder: Path, *, make: bool = False) -> bool:
    """Whether a folder among temporary files is this user's alone: anyone may have made it."""
    try:
        if make:
            folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    user = os.getuid() if hasattr(os, "getuid") else 0
    return not user or (found.st_uid == user and not found.st_mode & 0o022)
