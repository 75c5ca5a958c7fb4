"""Files of opening keys: the aggregator's private ones, and the public ones for bundles."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.bundles.encoding import MALFORMED, from_text, to_text
from hubbub.bundles.opening_keys import OpeningKey, OpeningKeyPublic
from hubbub.bundles.weak_keys import KEY_BYTES
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.keys.operator import OPERATOR, write_operator_key
from hubbub.keys.secret_files import read, read_secret
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.sealing.kems import x_wing_public_bytes

OPENING: Final = "opening.keys.json"
_OPENING_PUBLIC: Final = "opening.pub.json"


def write_new_keys(
    folder: Path,
    *,
    start: int,
    period_seconds: int,
    periods: int,
    since: int | None = None,
    first_id: int = 1,
) -> None:
    """Makes an operator's signing key and `periods` consecutive opening keys, from `start`.

    `since` extends the first key's period back to that moment. Raises KeysUnusable if the folder
    holds keys already, or cannot be written.
    """
    conflicts = [name for name in (OPERATOR, OPENING) if (folder / name).exists()]
    if conflicts:
        raise KeysUnusable(
            f"{folder / conflicts[0]} exists, and keys are never overwritten: choose another "
            f"folder, or add new keys to it: hubbub keys rotate {folder}"
        )
    private, public = new_periods(first_id, start, period_seconds, periods, since)
    with refuse_unwritable(folder, KeysUnusable):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_operator_key(folder, Ed25519PrivateKey.generate())
        write_opening_keys(folder / OPENING, private)
        write_public_keys(folder, public)


def new_periods(
    first_id: int, start: int, period_seconds: int, periods: int, since: int | None = None
) -> tuple[list[OpeningKey], list[OpeningKeyPublic]]:
    """Keys for consecutive periods, with ascending ids; `since` may extend the first's back."""
    private, public = [], []
    for number in range(periods):
        key = X25519PrivateKey.generate()
        begins = start + number * period_seconds
        ends = begins + period_seconds
        if not number and since is not None:
            begins = min(begins, since)
        raw = key.public_key().public_bytes_raw()
        opening_key = OpeningKey(first_id + number, key.private_bytes_raw()).with_x_wing()
        private.append(opening_key)
        x_wing = x_wing_public_bytes(opening_key.x_wing)
        public.append(
            OpeningKeyPublic(id=opening_key.id, start=begins, end=ends, public=raw, x_wing=x_wing)
        )
    return private, public


def write_opening_keys(path: Path, keys: Sequence[OpeningKey]) -> None:
    """Writes private keys to a file atomically. Raises KeysUnusable if it cannot be written."""
    entries = [
        {"id": key.id, "private": to_text(key.private)}
        | ({"x_wing": to_text(key.x_wing)} if key.x_wing else {})
        for key in keys
    ]
    with refuse_unwritable(path, KeysUnusable):
        replace_file(path, json.dumps(entries, indent=1).encode(), mode=0o600)


def write_public_keys(folder: Path, keys: Sequence[OpeningKeyPublic]) -> None:
    """Writes public keys to a folder atomically. Raises KeysUnusable if it cannot be written."""
    entries = [key.words() for key in keys]
    with refuse_unwritable(folder, KeysUnusable):
        replace_file(folder / _OPENING_PUBLIC, json.dumps(entries, indent=1).encode())


def read_public_keys(folder: Path) -> tuple[OpeningKeyPublic, ...]:
    """The public opening keys, in order of their periods."""
    path = folder / _OPENING_PUBLIC
    try:
        return tuple(map(OpeningKeyPublic.load, json.loads(read(path))))
    except (*MALFORMED, BadParameter) as error:
        raise KeysUnusable(f"{path}: not a list of public opening keys") from error


def read_opening_keys(path: Path) -> tuple[OpeningKey, ...]:
    """Reads private keys. Raises KeysUnusable if they are missing, malformed, or open to others."""
    raw = read_secret(path)
    try:
        return tuple(
            OpeningKey(
                int(k["id"]),
                _key_bytes(k["private"]),
                _key_bytes(k["x_wing"]) if "x_wing" in k else b"",
            )
            for k in json.loads(raw)
        )
    except MALFORMED:
        # The error of the parser would quote the secret.
        raise KeysUnusable(f"{path}: not a list of private opening keys") from None


def _key_bytes(text: str) -> bytes:
    raw = from_text(text)
    if len(raw) != KEY_BYTES:
        raise ValueError(f"a key is {KEY_BYTES} bytes")
    return raw
