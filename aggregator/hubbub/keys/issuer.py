"""The key of the issuer of tokens: it is made here, and its public half is signed into bundles.

The issuer's operator makes it. The private half also goes to the shuffler, which checks tokens by
it; the public half goes to whoever builds bundles.
"""

import importlib
from pathlib import Path
from typing import Any, Final

from hubbub.bundles.encoding import from_text, to_text
from hubbub.errors import BadParameter, KeysUnusable, MissingDependency
from hubbub.errors.installing import install_with
from hubbub.keys.operator import read
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.tokens.issuer_key import KEY_BYTES, TOKEN_KEY

_PUBLIC: Final = "tokens.pub"


def make_token_key(folder: Path) -> None:
    """Makes a key in a folder that has none.

    Raises KeysUnusable if there is one or it cannot be written, MissingDependency without rbcl.
    """
    path = folder / TOKEN_KEY
    if path.exists():
        raise KeysUnusable(
            f"{path}: a key exists already; tokens of a new key would be refused: to "
            "replace it, move it away and build the bundle again"
        )
    key, public = _poprf().new_key()
    with refuse_unwritable(path, KeysUnusable):
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, to_text(key).encode() + b"\n", mode=0o600)
        replace_file(folder / _PUBLIC, to_text(public).encode() + b"\n")


def read_token_public(folder: Path) -> bytes:
    """Reads the public key, for bundles. Raises KeysUnusable if it is missing or invalid."""
    return _public(folder / _PUBLIC)


def take_token_public(folder: Path, source: Path) -> None:
    """Copies an issuer's public key to the folder of bundles. Raises KeysUnusable if invalid."""
    key = _public(source)
    with refuse_unwritable(folder, KeysUnusable):
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / _PUBLIC, to_text(key).encode() + b"\n")


def _public(path: Path) -> bytes:
    """Reads a public key. PRIVACY: never the private half, since everybody can read a bundle."""
    if path.name == TOKEN_KEY:
        raise KeysUnusable(
            f"{path}: this is the private half, which bundles must not contain; give {_PUBLIC}"
        )
    try:
        key = from_text(read(path).decode("ascii").strip())
    except ValueError:
        key = b""
    if not _can_be_public(key):
        raise KeysUnusable(
            f"{path}: no issuer's public key; it is {_PUBLIC} of: hubbub keys issuer"
        )
    return key


def _can_be_public(key: bytes) -> bool:
    try:
        _poprf().check_elements([key])
    except MissingDependency:  # who builds bundles may have no rbcl
        return len(key) == KEY_BYTES
    except BadParameter:
        return False
    return True


def _poprf() -> Any:
    try:
        return importlib.import_module("hubbub.tokens.poprf")
    except ImportError as error:
        raise MissingDependency(
            f"keys of tokens need rbcl, which is not installed here: {install_with('tokens')}"
        ) from error
