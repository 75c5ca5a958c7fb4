"""The keys of the issuer of tokens and of the gateway, whose public halves are in bundles.

The issuer's operator makes the issuer's. The private half also goes to the shuffler, which checks
tokens by it; the public half goes to whoever builds bundles. The operator of the shuffler makes the
gateway's, an X25519 key, which decrypts relayed requests but opens no report; only its public half
leaves the folder.
"""

import importlib
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.bundles.encoding import from_text, to_text
from hubbub.errors import BadParameter, KeysUnusable, MissingDependency
from hubbub.errors.message_words import needs
from hubbub.keys.operator_key import read
from hubbub.oblivious.key_config import key_config, read_config
from hubbub.programs.atomic_write import locked, refuse_unwritable, replace_file
from hubbub.programs.issuer_key_file import KEY_BYTES, TOKEN_KEY
from hubbub.programs.text_files import read_list

_PUBLIC: Final = "tokens.pub"


def make_token_key(folder: Path) -> None:
    """Makes a key in a folder that has none.

    Raises KeysUnusable if there is one or it cannot be written, MissingDependency without rbcl.
    """
    path = folder / TOKEN_KEY
    if path.exists():
        raise KeysUnusable(
            f"{path}: a key exists already; to replace it, move it away and build the bundle "
            "again, or tokens of the new key are refused"
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
        raise KeysUnusable(f"{path}: not an issuer's public key; give {_PUBLIC}")
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
    with needs("keys of tokens need rbcl", "tokens"):
        return importlib.import_module("hubbub.tokens.poprf")


GATEWAY_KEY: Final = "gateway.key"
"""The file of the private key, which the shuffler reads: in base64, a line a key."""

_GATEWAY_PUBLIC: Final = "gateway.pub"


def make_gateway_key(folder: Path) -> int:
    """Adds a new first key; returns how many there are. Raises KeysUnusable if it cannot write."""
    path = folder / GATEWAY_KEY
    with refuse_unwritable(path, KeysUnusable):
        folder.mkdir(parents=True, exist_ok=True)
    with refuse_unwritable(path, KeysUnusable), locked(path):
        try:
            before = read_list(path) if path.exists() else []
            ids = {_config(line)[0] for line in before}
            key = X25519PrivateKey.generate()
            while _config(to_text(key.private_bytes_raw()))[0] in ids:
                key = X25519PrivateKey.generate()
        except ValueError as error:
            raise KeysUnusable(
                f"{path}: not a file of keys; restore it, or move it away"
            ) from error
        lines = [to_text(key.private_bytes_raw()), *before]
        replace_file(path, "".join(f"{line}\n" for line in lines).encode(), mode=0o600)
        replace_file(folder / _GATEWAY_PUBLIC, to_text(_config(lines[0])).encode() + b"\n")
    return len(lines)


def read_gateway(folder: Path) -> bytes:
    """The key configuration (RFC 9458) of the newest key, for bundles; empty if there is no key.

    Raises KeysUnusable if the file cannot be read, or holds no key.
    """
    path = folder / _GATEWAY_PUBLIC
    if not path.exists():
        return b""
    try:
        config = from_text(read(path).decode("ascii").strip())
        read_config(config)
    except (ValueError, BadParameter) as error:
        raise KeysUnusable(f"{path}: not a gateway's key; make one: hubbub keys gateway") from error
    return config


def _config(line: str) -> bytes:
    key = X25519PrivateKey.from_private_bytes(from_text(line))
    return key_config(key.public_key().public_bytes_raw())
