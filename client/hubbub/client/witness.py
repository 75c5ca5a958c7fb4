"""The witness: a second place that knows what was spent, beside the state it watches over.

A state that was deleted, damaged, or put back from an older copy would let a person's answers be
drawn twice. The witness is written after the state and before anything leaves, so it never knows
less than what left. It holds counts, no value and no secret.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from hubbub.client.ledger import Account
from hubbub.errors import StateUnusable

__all__ = ["Witness"]

_OWNER_ONLY: Final = 0o600


class Witness:
    """What a file says about one state. Unreadable is as good as absent.

    state: the name of the state that it saw; commits: how often that had been changed.
    accounts: per metric what had been spent, without the responses.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.state = ""
        self.commits = -1
        self.accounts: dict[str, Account] = {}
        try:
            document = json.loads(path.read_bytes())
            self.state, self.commits = str(document["state"]), int(document["commits"])
            self.accounts = {
                name: Account.load(account) for name, account in document["accounts"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass

    @classmethod
    def beside(cls, folder: Path) -> Self:
        """The witness of a state folder: a file next to it, which deleting the folder spares.

        Where the parent cannot be written, a file in it: that spares the loss of the state alone.
        """
        folder = folder.absolute()
        outside = cls(folder.with_name(folder.name + ".witness"))
        return outside if outside._is_writable() else cls(folder / "witness")

    @classmethod
    def elsewhere(cls, folder: Path) -> Self:
        """Where a state folder that cannot be used has its witness: among temporary files."""
        name = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
        return cls(Path(tempfile.gettempdir()) / f"hubbub-{_user()}" / f"{name}.witness")

    def usable(self) -> bool:
        """Whether it can be written; makes its folder if need be."""
        folder = self._path.parent
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            found = folder.lstat()
            # Anyone may have made it before us: a folder that is not ours alone is not used.
            if _user() and (found.st_uid != _user() or found.st_mode & 0o022):
                return False
        except OSError:
            return False
        return self._is_writable()

    def write(self, state: str, commits: int, accounts: Mapping[str, Account]) -> None:
        """Replace the file, whole or not at all. Raises StateUnusable if that cannot be."""
        told = {name: replace(account, responses={}) for name, account in accounts.items()}
        document = {
            "state": state,
            "commits": commits,
            "accounts": {name: account.data() for name, account in told.items()},
        }
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}.draft")
        try:
            with os.fdopen(
                os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY), "wb"
            ) as file:
                file.write(json.dumps(document).encode())
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self._path)
        except OSError as error:
            raise StateUnusable(
                f"{self._path}: {error.strerror}; free space there, or give a new state_dir"
            ) from error
        self.state, self.commits, self.accounts = state, commits, told

    def _is_writable(self) -> bool:
        # Only asked: to write what was read a moment ago could undo what another process wrote.
        return os.access(self._path.parent, os.W_OK | os.X_OK)

    def remove(self) -> None:
        """Delete the file, as the person asked."""
        self._path.unlink(missing_ok=True)
        self.state, self.commits, self.accounts = "", -1, {}


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
