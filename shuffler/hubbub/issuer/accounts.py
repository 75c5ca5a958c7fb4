"""Accounts: who gets tokens, told by keys whose hashes stand in a file.

A line a key: a name, the SHA-256 of the key, and perhaps the word `backend`. Such a key is of the
app's own server, which vouches for the account that it names; any other is an account itself.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hubbub.errors import AccessRefused, BadParameter, KeysUnusable
from hubbub.programs.text_files import lines_of, read_text
from hubbub.programs.unwritable import refuse_unwritable, replace_file

_NAME: Final = re.compile(r"[!-.0-~]{1,100}")  # "/" parts a backend from whom it names
_LONGEST_ACCOUNT: Final = 256
_BACKEND: Final = "backend"


@dataclass(frozen=True, slots=True)
class _Known:
    name: str
    vouches: bool


class Accounts:
    """The keys of a file, as it was when this was made; without a file there are none."""

    def __init__(self, path: Path | None) -> None:
        self._known: Mapping[str, _Known] = _read(path) if path else {}

    def account(self, key: str, named: str) -> tuple[str, bool]:
        """The account that a key is of, or may name, and whether it names it.

        Raises:
            AccessRefused: it is neither.
        """
        entry = self._known.get(hashlib.sha256(key.encode()).hexdigest())
        if entry is None:
            raise AccessRefused("not the key of an account; send it as Authorization: Bearer KEY")
        if not entry.vouches:
            return entry.name, False
        if not 0 < len(named) <= _LONGEST_ACCOUNT or "/" in named:
            raise AccessRefused(
                "a backend names the account, in the header Hubbub-Account: up to "
                f"{_LONGEST_ACCOUNT} letters without /"
            )
        return f"{entry.name}/{named}", True


def add_account(path: Path, name: str, *, vouches: bool) -> str:
    """A new key under a name, which the file then has the hash of.

    Raises:
        BadParameter: the name is none, or is taken.
        KeysUnusable: the file cannot be read or written.
    """
    if not _NAME.fullmatch(name):
        raise BadParameter(
            f"--name {name!a} is not a name; write up to 100 letters without spaces and /"
        )
    accounts = _read(path) if path.exists() else {}
    if any(account.name == name for account in accounts.values()):
        raise BadParameter(f"--name {name!a} has a key already; delete its line in {path} first")
    key = secrets.token_urlsafe(32)
    line = f"{name} {hashlib.sha256(key.encode()).hexdigest()}{' ' + _BACKEND if vouches else ''}\n"
    with refuse_unwritable(path, KeysUnusable):
        before = read_text(path) if path.exists() else ""
        replace_file(path, (before + line).encode())
    return key


def _read(path: Path) -> Mapping[str, _Known]:
    try:
        lines = [line.split() for line in lines_of(path) if line.strip()]
        accounts = {
            digest: _Known(name, bool(rest) and rest[0] == _BACKEND)
            for name, digest, *rest in lines
        }
    except ValueError as error:
        raise KeysUnusable(
            f"{path}: no accounts ({error}); make one with: hubbub keys account FILE --name NAME"
        ) from error
    if not all(_NAME.fullmatch(account.name) for account in accounts.values()):
        raise KeysUnusable(f"{path}: an account's name has a /, or is too long; write another")
    return accounts
