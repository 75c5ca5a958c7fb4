"""Opening keys in files, private and public, and their rotation.

An epoch keeps its one key: reports sealed to it can be opened until the epoch closes.
"""

import fcntl
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hubbub.bundles.encoding import MALFORMED, from_text, to_text
from hubbub.bundles.opening_keys import OpeningKey, OpeningKeyPublic
from hubbub.bundles.signatures import KEY_BYTES
from hubbub.catalog.epochs_and_periods import EPOCH_SECONDS, closing_time, epoch_at
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.keys.operator_key import OPERATOR, read, read_secret, write_operator_key
from hubbub.programs.atomic_write import refuse_unwritable, replace_file
from hubbub.sealing.hpke import x_wing_public_bytes

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


def still_needed(key: OpeningKeyPublic, now: float, longest: str) -> bool:
    """Whether an epoch of the key, of length `longest` at most, may still be counted."""
    return now < closing_time(epoch_at(key.end - 1, longest), longest)


def rotate_keys(
    folder: Path,
    *,
    now: float,
    period_seconds: int,
    periods: int,
    anew_from: int | None = None,
    sure: bool = False,
    longest: str = "month",
) -> tuple[list[OpeningKeyPublic], list[OpeningKeyPublic]]:
    """Adds `periods` keys after the last one, and deletes unneeded ones; returns (added, deleted).

    `anew_from` replaces all keys of epochs that start then or later, in seconds since 1970, since
    one of them leaked; reports sealed to them cannot be opened any more. `longest` is the longest
    length of epochs that use the keys. `sure` means that `now` is confirmed by more than one clock;
    otherwise no key is deleted for its age. Raises BadParameter if the keys ended before a today
    that is not sure, and KeysUnusable if the folder's keys cannot be read or written.
    """
    with _lock_folder(folder):
        private, public = read_opening_keys(folder / OPENING), read_public_keys(folder)
        needed = [key for key in public if not sure or still_needed(key, now, longest)]
        deleted = [key for key in public if key not in needed]
        next_id = max((key.id for key in public), default=0) + 1
        if anew_from is not None:
            deleted += [key for key in needed if key.start >= anew_from]
            needed = [
                replace(key, end=min(key.end, anew_from)) for key in needed if key.start < anew_from
            ]
        today = int(now) // EPOCH_SECONDS["day"] * EPOCH_SECONDS["day"]
        start = anew_from or max([today, *(key.end for key in needed)])
        if not sure and needed and start > max(key.end for key in needed):
            raise BadParameter(
                f"{folder}: the last key ended before today on this machine's clock; "
                "confirm the date: --today YYYY-MM-DD"
            )
        new_keys, added = new_periods(next_id, start, period_seconds, periods)
        ids = {key.id for key in needed}
        # The private ones first: nobody is to seal to a key that nobody holds.
        write_opening_keys(
            folder / OPENING, [*(key for key in private if key.id in ids), *new_keys]
        )
        write_public_keys(folder, [*needed, *added])
        return added, deleted


def add_x_wing(folder: Path) -> list[OpeningKeyPublic]:
    """Adds an X-Wing half to every key without one, as in earlier versions; returns those.

    Raises KeysUnusable if the folder's keys cannot be read or written.
    """
    with _lock_folder(folder):
        public = read_public_keys(folder)
        lacking = {key.id for key in public if not key.x_wing}
        # An interrupted run left seeds whose public halves are not written yet: they are taken.
        private = [
            key.with_x_wing() if key.id in lacking else key
            for key in read_opening_keys(folder / OPENING)
        ]
        halves = {key.id: x_wing_public_bytes(key.x_wing) for key in private if key.id in lacking}
        keys = [replace(key, x_wing=halves.get(key.id, key.x_wing)) for key in public]
        write_opening_keys(folder / OPENING, private)
        write_public_keys(folder, keys)
        return [key for key in keys if key.id in halves]


def forget_keys(path: Path, ids: Collection[int]) -> None:
    """Deletes private keys from the file. Raises KeysUnusable if it cannot be read or written."""
    with _lock_folder(path.parent):
        private = read_opening_keys(path)
        live_keys = [key for key in private if key.id not in ids]
        if len(live_keys) < len(private):
            write_opening_keys(path, live_keys)


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Locks the folder's keys against changes by others during the block."""
    try:
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise KeysUnusable(
            f"{folder}: cannot be written: {error.strerror}; give a folder made by: hubbub keys new"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
