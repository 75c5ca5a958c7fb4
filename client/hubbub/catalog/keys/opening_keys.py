"""Opening keys: devices seal to them, the aggregator opens with them. Which, and when.

Every epoch has one opening key for everybody: the one whose period holds the epoch's start. Its id
travels with a report, and one that differs from the schedule is refused, so it marks nobody.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from hubbub.catalog.encoding import MALFORMED, from_text, to_text
from hubbub.catalog.keys.files import read, read_secret, replace
from hubbub.catalog.keys.operator import OPERATOR, write_operator_key
from hubbub.catalog.keys.points import KEY_BYTES, refuse_weak_opening_key
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.errors.unwritable import refuse_unwritable
from hubbub.fields.rules import is_whole
from hubbub.sealing import (
    SEED_BYTES,
    X25519,
    X_WING,
    Kem,
    PrivateKey,
    PublicKey,
    x_wing_private,
    x_wing_public,
    x_wing_public_bytes,
)

_LAST_ID: Final = (1 << 32) - 1  # as the wire has it
DEVELOPMENT_IDS: Final = 1 << 31
"""Keys of development installations have ids from here on; those of production count from 1.

A device sends the id with its report, and a shuffler refuses one that it does not have.
"""
_LAST_SECOND: Final = 1 << 40  # 34,000 years from now
OPENING: Final = "opening.keys.json"
_OPENING_PUBLIC: Final = "opening.pub.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningKeyPublic:
    """A public key that reports are sealed to, for epochs that start in [start, end) seconds.

    public: its X25519 half. x_wing: its half for metrics that are sealed by X-Wing, 1,216 bytes;
        empty of keys that earlier versions made, and in bundles without such metrics.

    Raises:
        BadParameter: a number out of range, or a key that protects nothing.
    """

    id: int
    start: int
    end: int
    public: bytes
    x_wing: bytes = b""
    key: X25519PublicKey = field(init=False, repr=False, compare=False)
    _hybrid: PublicKey | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if not (is_whole(self.id) and 0 <= self.id <= _LAST_ID):
            raise BadParameter(f"an opening key's id is no whole number in [0, {_LAST_ID}]")
        whole = is_whole(self.start) and is_whole(self.end)
        if not (whole and -_LAST_SECOND <= self.start < self.end <= _LAST_SECOND):
            raise BadParameter(f"opening key {self.id} has no period: start < end, in seconds")
        refuse_weak_opening_key(self.public)
        object.__setattr__(self, "key", X25519PublicKey.from_public_bytes(self.public))
        if self.x_wing:
            object.__setattr__(self, "_hybrid", x_wing_public(self.x_wing))
            refuse_weak_opening_key(self.x_wing[-KEY_BYTES:])

    def half(self, kem: Kem) -> PublicKey:
        """The key that a metric of this KEM is sealed to. Raises BadParameter if it has none."""
        if kem == X25519:
            return self.key
        if self._hybrid is None:
            raise BadParameter(f"opening key {self.id} has no X-Wing half")
        return self._hybrid


@dataclass(frozen=True, slots=True)
class OpeningKey:
    """The private half: only the aggregator has it. x_wing: the seed of its X-Wing half, if any."""

    id: int
    private: bytes
    x_wing: bytes = b""

    def load(self) -> X25519PrivateKey:
        """Its X25519 half."""
        return X25519PrivateKey.from_private_bytes(self.private)

    def halves(self) -> dict[Kem, PrivateKey]:
        """What opens reports of each KEM."""
        keys: dict[Kem, PrivateKey] = {X25519: self.load()}
        if self.x_wing:
            keys[X_WING] = x_wing_private(self.x_wing)
        return keys

    def with_x_wing(self) -> "OpeningKey":
        """The same with an X-Wing half; its own, if it has one."""
        return self if self.x_wing else replaced(self, x_wing=secrets.token_bytes(SEED_BYTES))

    def __repr__(self) -> str:
        return f"OpeningKey(id={self.id})"


def key_at(keys: Sequence[OpeningKeyPublic], start: int) -> OpeningKeyPublic | None:
    """The key of an epoch that starts at this second, if there is one yet."""
    return next((key for key in keys if key.start <= start < key.end), None)


def is_development(keys: Sequence[OpeningKeyPublic]) -> bool:
    """Whether these are keys of a development installation."""
    return bool(keys) and all(key.id >= DEVELOPMENT_IDS for key in keys)


def write_new_keys(
    folder: Path,
    *,
    start: int,
    period_seconds: int,
    periods: int,
    since: int | None = None,
    first_id: int = 1,
) -> None:
    """Make an operator's signing key and `periods` opening keys, one after the other from `start`.

    since: the first is of epochs from then on already.

    Raises:
        KeysUnusable: the folder holds keys already, or cannot be written.
    """
    conflicts = [name for name in (OPERATOR, OPENING) if (folder / name).exists()]
    if conflicts:
        raise KeysUnusable(
            f"{folder / conflicts[0]} exists; keys are never overwritten: choose another"
        )
    operator = Ed25519PrivateKey.generate()
    private, public = new_periods(first_id, start, period_seconds, periods, since)
    with refuse_unwritable(folder, KeysUnusable):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_operator_key(folder, operator)
        write_opening_keys(folder / OPENING, private)
        write_public_keys(folder, public)


def new_periods(
    first_id: int, start: int, period_seconds: int, periods: int, since: int | None = None
) -> tuple[list[OpeningKey], list[OpeningKeyPublic]]:
    """Fresh opening keys for periods one after the other, with ids that go up.

    since: when the first begins already, if that is before its start.
    """
    private, public = [], []
    for number in range(periods):
        key = X25519PrivateKey.generate()
        begins = start + number * period_seconds
        ends = begins + period_seconds
        if not number and since is not None:
            begins = min(begins, since)
        raw = key.public_key().public_bytes_raw()
        own = OpeningKey(first_id + number, key.private_bytes_raw()).with_x_wing()
        private.append(own)
        x_wing = x_wing_public_bytes(own.x_wing)
        public.append(
            OpeningKeyPublic(id=own.id, start=begins, end=ends, public=raw, x_wing=x_wing)
        )
    return private, public


def write_opening_keys(path: Path, keys: Sequence[OpeningKey]) -> None:
    """Put these private keys into the file, all at once: a reader sees the old ones or the new."""
    entries = [
        {"id": key.id, "private": to_text(key.private)}
        | ({"x_wing": to_text(key.x_wing)} if key.x_wing else {})
        for key in keys
    ]
    replace(path, json.dumps(entries, indent=1).encode(), secret=True)


def write_public_keys(folder: Path, keys: Sequence[OpeningKeyPublic]) -> None:
    """Put these public keys into the folder, all at once."""
    entries = [
        {"id": key.id, "start": key.start, "end": key.end, "public": to_text(key.public)}
        | ({"x_wing": to_text(key.x_wing)} if key.x_wing else {})
        for key in keys
    ]
    replace(folder / _OPENING_PUBLIC, json.dumps(entries, indent=1).encode())


def read_public_keys(folder: Path) -> tuple[OpeningKeyPublic, ...]:
    """The public opening keys, in order of their periods."""
    path = folder / _OPENING_PUBLIC
    try:
        return tuple(
            OpeningKeyPublic(
                id=int(key["id"]),
                start=int(key["start"]),
                end=int(key["end"]),
                public=_key_bytes(key["public"]),
                x_wing=from_text(key.get("x_wing", "")),
            )
            for key in json.loads(read(path))
        )
    except (*MALFORMED, BadParameter) as error:
        raise KeysUnusable(f"{path}: not a list of public opening keys") from error


def read_opening_keys(path: Path) -> tuple[OpeningKey, ...]:
    """The aggregator's private opening keys, from the file itself.

    Raises:
        KeysUnusable: missing, malformed, or readable by others.
    """
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
