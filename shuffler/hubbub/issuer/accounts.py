"""Accounts that may get tokens, identified by API keys whose hashes are in a file.

Each line has a name, the SHA-256 of the key, and optionally the word `backend`. A backend's key
belongs to the app's server, which names the account in each request; any other key is an account.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hubbub.errors import AccessRefused, BadParameter, KeysUnusable
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.programs.text_files import lines_of, read_text

_NAME: Final = re.compile(r"[!-.0-~]{1,100}")  # "/" separates a backend from its users
_LONGEST_ACCOUNT: Final = 256
_BACKEND: Final = "backend"


class Accounts:
    """The accounts in a file, as it was when read; without a file there are none."""

    def __init__(self, path: Path | None) -> None:
        self._accounts = _read(path) if path else {}

    def account(self, key: str, named: str) -> tuple[str, bool]:
        """The account that `key` identifies, and whether a backend named it.

        Raises AccessRefused if the key is unknown, or a backend named no valid account.
        """
        digest = hashlib.sha256(key.encode()).hexdigest()
        if digest not in self._accounts:
            raise AccessRefused("not the key of an account; send one as Authorization: Bearer KEY")
        name, vouches = self._accounts[digest]
        if not vouches:
            return name, False
        if not 0 < len(named) <= _LONGEST_ACCOUNT or "/" in named:
            raise AccessRefused(
                "the header Hubbub-Account does not name an account; write up to "
                f"{_LONGEST_ACCOUNT} letters without /"
            )
        return f"{name}/{named}", True


def add_account(path: Path, name: str, *, vouches: bool) -> str:
    """Creates a key for an account, adds its hash to the file, and returns the key.

    Raises:
        BadParameter: the name is invalid or taken.
        KeysUnusable: the file cannot be read or written.
    """
    if not _NAME.fullmatch(name):
        raise BadParameter(
            f"--name {name!a} is not a name; write up to 100 letters without spaces and /"
        )
    accounts = _read(path) if path.exists() else {}
    if any(account == name for account, _ in accounts.values()):
        raise BadParameter(f"--name {name!a} has a key already; delete its line in {path} first")
    key = secrets.token_urlsafe(32)
    line = f"{name} {hashlib.sha256(key.encode()).hexdigest()}{' ' + _BACKEND if vouches else ''}\n"
    with refuse_unwritable(path, KeysUnusable):
        before = read_text(path) if path.exists() else ""
        replace_file(path, (before + line).encode())
    return key


def _read(path: Path) -> Mapping[str, tuple[str, bool]]:
    """The accounts by the hashes of their keys: each name, and whether it names accounts itself."""
    try:
        lines = [line.split() for line in lines_of(path) if line.strip()]
        accounts = {digest: (name, words[:1] == [_BACKEND]) for name, digest, *words in lines}
    except ValueError as error:
        raise KeysUnusable(
            f"{path}: no accounts ({error}); make one with: hubbub keys account FILE --name NAME"
        ) from error
    if not all(_NAME.fullmatch(name) for name, _ in accounts.values()):
        raise KeysUnusable(f"{path}: an account's name has a /, or is too long; write another")
    return accounts
