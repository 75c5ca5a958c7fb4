"""The gateway's X25519 key, which decrypts relayed requests but opens no report.

The operator of the shuffler makes it. Only the public half leaves the folder, for bundles.
"""

from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.bundles.encoding import from_text, to_text
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.keys.operator import read
from hubbub.oblivious.key_config import key_config, read_config
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.programs.text_files import read_list

GATEWAY_KEY: Final = "gateway.key"
"""The file of the private key, which the shuffler reads: in base64, a line a key."""

_PUBLIC: Final = "gateway.pub"


def make_gateway_key(folder: Path) -> int:
    """Adds a new first key; returns how many there are. Raises KeysUnusable if it cannot write."""
    path = folder / GATEWAY_KEY
    try:
        before = read_list(path) if path.exists() else []
        ids = {_config(line)[0] for line in before}
        key = X25519PrivateKey.generate()
        while _config(to_text(key.private_bytes_raw()))[0] in ids:
            key = X25519PrivateKey.generate()
    except ValueError as error:
        raise KeysUnusable(f"{path}: not a file of keys; restore it, or move it away") from error
    lines = [to_text(key.private_bytes_raw()), *before]
    with refuse_unwritable(path, KeysUnusable):
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, "".join(f"{line}\n" for line in lines).encode(), mode=0o600)
        replace_file(folder / _PUBLIC, to_text(_config(lines[0])).encode() + b"\n")
    return len(lines)


def read_gateway(folder: Path) -> bytes:
    """The key configuration (RFC 9458) of the newest key, for bundles; empty if there is no key.

    Raises KeysUnusable if the file cannot be read, or holds no key.
    """
    path = folder / _PUBLIC
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
