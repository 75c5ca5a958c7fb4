"""The witness: a second record of what a state must not lose, as versions that merge.

If a state is deleted, damaged, or replaced by an older copy, answers could be drawn twice, and an
opt-out lost. The witness is written before anything leaves and at every decision of the person, so
it always covers everything that left.
"""

import contextlib
import json
import math
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from hubbub.client.files import (
    elsewhere,
    is_own,
    locked_file,
    read_file,
    replace_file,
    resolved_folder,
    seconds_left,
)
from hubbub.client.ledger import FOREIGN, Account, load_accounts, merge
from hubbub.client.state.consent import Consent, agreed
from hubbub.errors import StateBusy, StateUnusable
from hubbub.sealing.digests import checksum, sha256

_MAX_MERGED: Final = 8
_MAX_COMMITS: Final = 1 << 62
_LONGEST_NAME: Final = 64


class StateMoment(NamedTuple):
    """A version of a state, without values and without the secret.

    Args:
        state: name of its history.
        commits: number of changes so far.
        head: random name of this version, since two copies may have the same number of changes.
        consent: None in a witness of version 0.1.
        merged: heads of other copies that were merged into this one.
    """

    state: str
    commits: int
    head: str
    accounts: Mapping[str, Account]
    consent: Consent | None
    merged: tuple[str, ...] = ()

    def document(self) -> bytes:
        """Returns the bytes of all but the responses, with a checksum."""
        consent = self.consent or Consent()
        body = {
            "state": self.state,
            "commits": self.commits,
            "head": self.head,
            "accounts": {
                name: replace(account, responses={}).data()
                for name, account in self.accounts.items()
            },
            "generation": consent.generation,
            "preference": None if math.isinf(consent.preference) else consent.preference,
            "since": consent.since,
            # Left out, as in former versions, if it equals the preference.
            **({"max_local": consent.local} if consent.local != consent.preference else {}),
            "heard": list(self.merged),
        }
        return json.dumps({**body, "sum": checksum(body)}).encode()

    @classmethod
    def load(cls, document: bytes) -> Self:
        """Reads what `document()` or version 0.1 wrote. Raises what `FOREIGN` lists for others."""
        body = json.loads(document)
        if body.keys() == {"state", "commits", "accounts"}:
            accounts = load_accounts(body["accounts"])
            return cls(
                state=_name(body["state"]),
                commits=_commits(body["commits"]),
                head="",
                accounts=accounts,
                consent=None,
            )
        if body.pop("sum") != checksum(body):
            raise ValueError("the checksum does not match")
        preference = math.inf if body["preference"] is None else body["preference"]
        return cls(
            state=_name(body["state"]),
            commits=_commits(body["commits"]),
            head=_name(body["head"]),
            accounts=load_accounts(body["accounts"]),
            consent=Consent(body["generation"], preference, body["since"], body.get("max_local")),
            merged=tuple(_name(head) for head in body["heard"]),
        )


def is_continued(moment: StateMoment, by: StateMoment, witnessed: str) -> bool:
    """Returns whether the state `by`, whose witness has `witnessed`, continues `moment`."""
    if moment.state != by.state:
        return False
    if not moment.head:  # written by version 0.1, which had no heads
        return moment.commits <= by.commits
    return moment.head in (by.head, witnessed)


def agree(moment: StateMoment, other: StateMoment) -> StateMoment:
    """Returns the combination of two versions, which allows no more than either."""
    if moment.head == other.head and moment.head:
        return moment
    ordered = moment.state == other.state and moment.commits != other.commits
    earlier, later = sorted((moment, other), key=lambda item: item.commits)
    consent = moment.consent or other.consent
    if earlier.consent and later.consent and other.head not in moment.merged:
        consent = agreed(earlier.consent, later.consent, ordered=ordered)
    return moment._replace(
        commits=later.commits,
        accounts=merged(moment.accounts, other.accounts),
        consent=consent,
        merged=tuple(dict.fromkeys([*moment.merged, *([other.head] if other.head else [])]))[
            -_MAX_MERGED:
        ],
    )


def merged(accounts: Mapping[str, Account], other: Mapping[str, Account]) -> dict[str, Account]:
    """Returns accounts that allow no more than either's, with the responses of the first."""
    return {
        name: merge(accounts.get(name, Account()), other.get(name, Account()))
        for name in accounts.keys() | other.keys()
    }


def _name(value: Any) -> str:
    if not (isinstance(value, str) and value.isprintable() and len(value) <= _LONGEST_NAME):
        raise ValueError("not a name")
    return value


def _commits(value: Any) -> int:
    if not (type(value) is int and -1 <= value < _MAX_COMMITS):
        raise ValueError("not a count")
    return value


LOCK_NAME: Final = "lock"
"""A file of the state folder; not empty once a state was there."""

_MAX_BYTES: Final = 16 << 20


class Witness:
    """One witness file. An unreadable file counts as absent, and is reported.

    A `shared` one is in a folder that others may write to, and used if only this user can.
    """

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self.path = path
        self._shared = shared
        self._file_stamp: tuple[int, ...] | None = None
        self._last_moment: StateMoment | None = None
        self.is_damaged = False

    def read(self) -> StateMoment | None:
        """Returns the recorded version; None if there is none, or `is_damaged`."""
        try:
            file_stat = os.lstat(self.path) if self._is_ours() else None
        except (OSError, ValueError):
            file_stat = None
        if file_stat is None:
            self._file_stamp, self._last_moment, self.is_damaged = None, None, False
            return None
        times = file_stat.st_mtime_ns, file_stat.st_ctime_ns
        stamp = (file_stat.st_ino, file_stat.st_size, *times)
        if stamp != self._file_stamp:
            self._last_moment = self._load() if stat.S_ISREG(file_stat.st_mode) else None
            self.is_damaged = self._last_moment is None
            self._file_stamp = stamp
        return self._last_moment

    def usable(self) -> bool:
        """Returns whether it can be written, by one process at a time; creates its folder."""
        folder = self.path.parent
        if sys.platform == "win32" and self._shared:
            return False  # without a lock two processes could both spend the same rest
        if self._shared:
            with contextlib.suppress(OSError):
                folder.mkdir(mode=0o700, exist_ok=True)
        return self._is_writable()

    def write(self, moment: StateMoment) -> None:
        """Replaces the file atomically. Raises StateUnusable if that fails."""
        with self._errors():
            damaged_path = self._damaged_path() if self.is_damaged else None
            replace_file(self.path, moment.document(), aside=damaged_path)

    def remove(self) -> None:
        """Deletes the file and its damaged copies. Raises OSError."""
        self.path.unlink(missing_ok=True)
        self.forget_damaged()

    def forget_damaged(self) -> None:
        """Deletes damaged copies. Raises OSError."""
        self._damaged_path().unlink(missing_ok=True)

    @contextlib.contextmanager
    def alone(self, *, always: bool = True) -> Iterator[None]:
        """Excludes other writers; `always=False`: if a lock file exists. Raises StateUnusable."""
        path = self.path.with_suffix(".lock")
        if sys.platform == "win32" or not (always or (self._is_writable() and path.exists())):
            yield
            return
        deadline = time.monotonic() + seconds_left()
        with contextlib.ExitStack() as stack:
            # A queue: otherwise the process that releases the lock would often retake it.
            with self._errors(), locked_file(self.path.with_suffix(".turn"), deadline):
                stack.enter_context(locked_file(path, deadline))
            yield

    def _load(self) -> StateMoment | None:
        try:
            return StateMoment.load(read_file(self.path, _MAX_BYTES))
        except (OSError, *FOREIGN):
            return None

    def _damaged_path(self) -> Path:
        return self.path.with_name(f"damaged.{self.path.name}")

    def _is_writable(self) -> bool:
        # Only the permissions: a trial write could undo the write of another process.
        return self._is_ours() and os.access(self.path.parent, os.W_OK | os.X_OK)

    def _is_ours(self) -> bool:
        if self._shared:
            return is_own(self.path.parent)
        try:
            self.path.parent.lstat()
        except (OSError, ValueError):
            return False
        return True

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Lets a block write, and turns its errors into StateUnusable."""
        try:
            if not self.usable():
                raise PermissionError(0, "its folder is missing, or other users may write to it")
            yield
        except BlockingIOError as error:
            raise StateBusy(
                f"{self.path}: other processes are writing all the time; try again"
            ) from error
        except OSError as error:
            raise StateUnusable(
                f"{self.path}: {error.strerror}; free space there, or give a new state_dir"
            ) from error


class Witnesses:
    """The places of a folder's witness.

    Attributes:
        beside: next to the folder, so that it survives the folder; and inside, if the parent folder
            is not writable.
        elsewhere: among temporary files, while the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder = resolved_folder(folder)
        self.beside = (
            Witness(folder.with_name(folder.name + ".witness")),
            Witness(folder / "witness"),
        )
        name = sha256(os.fsencode(folder)).hex()[:16]
        self.elsewhere = Witness(elsewhere() / f"{name}.witness", shared=True)

    @property
    def writable(self) -> Witness:
        """Returns the witness beside the folder that can be written."""
        outer, inner = self.beside
        return outer if outer.usable() else inner

    def read_all(self) -> list[StateMoment]:
        """Returns the versions in all of them, the newest last."""
        moments = [witness.read() for witness in (*self.beside, self.elsewhere)]
        return sorted(filter(None, moments), key=lambda moment: moment.commits)

    def damaged(self) -> int:
        """Returns the number of unreadable ones at the last read."""
        return sum(witness.is_damaged for witness in (*self.beside, self.elsewhere))

    def traces(self) -> bool:
        """Returns whether the folder ever had a state, or nobody can know."""
        try:
            with os.scandir(self.folder) as entries:
                return any(
                    entry.name.startswith("damaged.")
                    or (entry.name == LOCK_NAME and entry.stat().st_size > 0)
                    for entry in entries
                )
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
