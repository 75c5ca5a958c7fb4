"""Keys: the operator signs bundles, the aggregator opens reports. Who holds which, and when.

Every epoch has one opening key for everybody: the one whose period holds the epoch's start. Its id
travels with a report, and one that differs from the schedule is refused, so it marks nobody.
"""

import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from hubbub.catalog.text import MALFORMED, from_text, to_text
from hubbub.errors import KeysUnusable

__all__ = [
    "OPENING",
    "OpeningKey",
    "OpeningKeyPublic",
    "key_at",
    "new_periods",
    "read_opening_keys",
    "read_operator_key",
    "read_public_keys",
    "write_new_keys",
    "write_opening_keys",
    "write_public_keys",
]

_KEY_BYTES: Final = 32  # of X25519
_OPERATOR: Final = "operator.key"
_OPERATOR_PUBLIC: Final = "operator.pub"
OPENING: Final = "opening.keys.json"
_OPENING_PUBLIC: Final = "opening.pub.json"


@dataclass(frozen=True, slots=True)
class OpeningKeyPublic:
    """A public key that reports are sealed to, for epochs that start in [start, end) seconds."""

    id: int
    start: int
    end: int
    public: bytes
    key: X25519PublicKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", X25519PublicKey.from_public_bytes(self.public))


@dataclass(frozen=True, slots=True)
class OpeningKey:
    """The private half: only the aggregator has it."""

    id: int
    private: bytes

    def load(self) -> X25519PrivateKey:
        """The key itself."""
        return X25519PrivateKey.from_private_bytes(self.private)

    def __repr__(self) -> str:
        return f"OpeningKey(id={self.id})"


def key_at(keys: Sequence[OpeningKeyPublic], start: int) -> OpeningKeyPublic | None:
    """The key of an epoch that starts at this second, if there is one yet."""
    return next((key for key in keys if key.start <= start < key.end), None)


def write_new_keys(folder: Path, *, start: int, period_seconds: int, periods: int) -> None:
    """Make an operator's signing key and `periods` opening keys, one after the other from `start`.

    Raises:
        KeysUnusable: the folder holds keys already, or cannot be written.
    """
    taken = [name for name in (_OPERATOR, OPENING) if (folder / name).exists()]
    if taken:
        raise KeysUnusable(
            f"{folder / taken[0]} exists; keys are never overwritten: choose another"
        )
    operator = Ed25519PrivateKey.generate()
    private, public = new_periods(1, start, period_seconds, periods)
    pem = operator.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_secret(folder / _OPERATOR, pem)
        (folder / _OPERATOR_PUBLIC).write_text(to_text(operator.public_key().public_bytes_raw()))
        write_opening_keys(folder / OPENING, private)
        write_public_keys(folder, public)
    except OSError as error:
        raise KeysUnusable(f"{folder}: cannot be written: {error.strerror}") from error


def new_periods(
    first_id: int, start: int, period_seconds: int, periods: int
) -> tuple[list[OpeningKey], list[OpeningKeyPublic]]:
    """Fresh opening keys for periods one after the other, with ids that go up."""
    private, public = [], []
    for number in range(periods):
        key = X25519PrivateKey.generate()
        begins = start + number * period_seconds
        raw = key.public_key().public_bytes_raw()
        private.append(OpeningKey(first_id + number, key.private_bytes_raw()))
        public.append(OpeningKeyPublic(first_id + number, begins, begins + period_seconds, raw))
    return private, public


def write_opening_keys(path: Path, keys: Sequence[OpeningKey]) -> None:
    """Put these private keys into the file, all at once: a reader sees the old ones or the new."""
    entries = [{"id": key.id, "private": to_text(key.private)} for key in keys]
    beside = path.with_name(path.name + ".new")
    beside.unlink(missing_ok=True)
    _write_secret(beside, json.dumps(entries, indent=1).encode())
    beside.replace(path)


def write_public_keys(folder: Path, keys: Sequence[OpeningKeyPublic]) -> None:
    """Put these public keys into the folder, all at once."""
    entries = [
        {"id": key.id, "start": key.start, "end": key.end, "public": to_text(key.public)}
        for key in keys
    ]
    beside = folder / (_OPENING_PUBLIC + ".new")
    beside.write_text(json.dumps(entries, indent=1))
    beside.replace(folder / _OPENING_PUBLIC)


def read_operator_key(folder: Path) -> Ed25519PrivateKey:
    """The operator's signing key in a folder made by `hubbub keys new`."""
    raw = _read_secret(folder / _OPERATOR)
    try:
        key = serialization.load_pem_private_key(raw, None)
    except ValueError as error:
        raise KeysUnusable(f"{folder / _OPERATOR}: not a PEM private key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeysUnusable(f"{folder / _OPERATOR}: not an Ed25519 key")
    return key


def read_public_keys(folder: Path) -> tuple[OpeningKeyPublic, ...]:
    """The public opening keys, in order of their periods."""
    path = folder / _OPENING_PUBLIC
    try:
        return tuple(
            OpeningKeyPublic(
                int(key["id"]), int(key["start"]), int(key["end"]), _key_bytes(key["public"])
            )
            for key in json.loads(_read(path))
        )
    except MALFORMED as error:
        raise KeysUnusable(f"{path}: not a list of public opening keys") from error


def read_opening_keys(path: Path) -> tuple[OpeningKey, ...]:
    """The aggregator's private opening keys, from the file itself.

    Raises:
        KeysUnusable: missing, malformed, or readable by others.
    """
    raw = _read_secret(path)
    try:
        return tuple(OpeningKey(int(k["id"]), _key_bytes(k["private"])) for k in json.loads(raw))
    except MALFORMED:
        # The error of the parser would quote the secret.
        raise KeysUnusable(f"{path}: not a list of private opening keys") from None


def _write_secret(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        remedy = "make keys with: hubbub keys new FOLDER"
        raise KeysUnusable(f"{path}: cannot be read: {error.strerror}; {remedy}") from error


def _read_secret(path: Path) -> bytes:
    raw = _read(path)
    found = path.stat()
    # An orchestrator mounts secrets as its own, readable to the group that the service runs in.
    handed = found.st_uid != os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IXGRP)
    if found.st_mode & (stat.S_IRWXO if handed else stat.S_IRWXG | stat.S_IRWXO):
        raise KeysUnusable(f"{path} is readable by others; run: chmod 600 {path}")
    return raw


def _key_bytes(text: str) -> bytes:
    raw = from_text(text)
    if len(raw) != _KEY_BYTES:
        raise ValueError(f"a key is {_KEY_BYTES} bytes")
    return raw
