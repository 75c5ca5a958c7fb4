"""Stores trust: one file beside the states, replaced atomically, under a lock."""

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from hubbub.bundles.encoding import MALFORMED
from hubbub.client.files import elsewhere, is_own, locked_file, read_file, replace_file
from hubbub.client.lazy_log import warn
from hubbub.client.reentry_and_forks import check_stack
from hubbub.client.trust.accepted_bundles import Trust, is_newer
from hubbub.errors import StateUnusable
from hubbub.sealing.digests import checksum, sha256

_NAME: Final = "trust.json"
# No file can have this path. HOME may be of any length.
_NO_FILE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
_LOCK_SECONDS: Final = 10.0  # a suspended start must not block this one


def possible_paths(home: Path, state_dir: Path | None) -> list[Path]:
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
def lock_store(path: Path, *others: Path) -> Iterator["TrustFile"]:
    """Yields the file, locked against other starts; `others` are its earlier places.

    If it is not writable, changes go into a file among temporary files, as those of a witness do;
    its content stays valid.
    """
    check_stack()
    temporary = _temporary_path(path)
    with contextlib.ExitStack() as stack:
        place = _locked_place(path, temporary, stack)
        yield TrustFile(path, [*others, *([temporary] if is_own(temporary.parent) else [])], place)


class TrustFile:
    """The content of the file of trust, merged with its copies; `place` is the one that is written.

    Attributes:
        is_behind: another copy had entries that this one lacked.
    """

    def __init__(self, path: Path, others: Sequence[Path], place: Path | None) -> None:
        self._path = path
        self._others = others
        self._place = place
        self.is_behind = False

    def read(self) -> Trust:
        """Returns all trust. Renames a damaged file; folders replace it. Raises StateUnusable."""
        trust = self._read(self._path)
        data = trust.data()
        for other in self._others:
            trust.absorb(self._read(other))
        self.is_behind = self._place == self._path and trust.data() != data
        return trust

    def write(self, trust: Trust) -> None:
        """Replaces the file atomically. Raises StateUnusable if that fails."""
        if self._place is None:
            raise StateUnusable(f"{self._path}: cannot be written; give a writable state_dir")
        try:
            data = trust.data()
            replace_file(self._place, json.dumps({**data, "sum": checksum(data)}).encode())
        except OSError as error:
            raise StateUnusable(
                f"{self._place}: {error.strerror}; free space there, or give a new state_dir"
            ) from error
        for other in self._others if self._place == self._path else ():
            with contextlib.suppress(OSError):
                other.unlink(missing_ok=True)

    def _read(self, path: Path) -> Trust:
        try:
            return read_trust(path)
        except StateUnusable:
            self._place = None  # an unread file must not be overwritten
            raise
        except MALFORMED:
            damaged_path = path.with_name(f"damaged.{path.name}")
            warn(
                "%s is damaged, and set aside; the state folders identify the trusted operator",
                path,
            )
            with contextlib.suppress(OSError):
                path.replace(damaged_path)
            return Trust()


def read_trust(path: Path) -> Trust:
    """Reads one file of trust; one that does not exist is empty.

    Raises StateUnusable if it cannot be read, or is of a newer version; one of MALFORMED if it is
    damaged.
    """
    try:
        raw = read_file(path)
    except OSError as error:
        if error.errno in _NO_FILE:
            return Trust()
        raise StateUnusable(f"{path}: {error.strerror}; let this user read it") from error
    document = json.loads(raw)
    # Earlier versions of hubbub wrote no checksum.
    if "sum" in document and document.pop("sum") != checksum(document):
        raise ValueError("the checksum does not match")
    if is_newer(document):
        raise StateUnusable(f"{path} was written by a newer hubbub; upgrade")
    return Trust.load(document)


def read_places(places: Iterable[Path]) -> Trust:
    """Returns the merged content of all places, without changing any; empty if there is none."""
    trust = Trust()
    for path in places:
        with contextlib.suppress(StateUnusable, *MALFORMED):
            trust.absorb(read_trust(path))
    return trust


def _locked_place(path: Path, temporary: Path, stack: contextlib.ExitStack) -> Path | None:
    """Locks and returns the place that this start may write; None if it may write neither."""
    deadline = time.monotonic() + _LOCK_SECONDS
    for trust_path in (path, temporary):
        with contextlib.suppress(OSError):
            trust_path.parent.mkdir(parents=trust_path is path, exist_ok=True, mode=0o700)
            folder = trust_path.parent
            if os.access(folder, os.W_OK | os.X_OK) if trust_path is path else is_own(folder):
                stack.enter_context(
                    locked_file(trust_path.with_name(f"{trust_path.name}.lock"), deadline)
                )
                return trust_path
    return None


def _temporary_path(path: Path) -> Path:
    name = sha256(os.fsencode(path)).hex()[:16]
    return elsewhere() / f"{name}.trust"
