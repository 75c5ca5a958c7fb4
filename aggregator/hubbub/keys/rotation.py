"""Rotation of opening keys: adds keys for coming epochs, and deletes those of epochs long closed.

An epoch keeps its one key: reports sealed to it can be opened until the epoch closes.
"""

import fcntl
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hubbub.bundles.opening_keys import OpeningKeyPublic
from hubbub.catalog.epochs import EPOCH_SECONDS, closing_time, epoch_at
from hubbub.errors import BadParameter, KeysUnusable
from hubbub.keys.opening_keys import (
    OPENING,
    new_periods,
    read_opening_keys,
    read_public_keys,
    write_opening_keys,
    write_public_keys,
)
from hubbub.sealing.kems import x_wing_public_bytes


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
    with _alone(folder):
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
    with _alone(folder):
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
    with _alone(path.parent):
        private = read_opening_keys(path)
        live_keys = [key for key in private if key.id not in ids]
        if len(live_keys) < len(private):
            write_opening_keys(path, live_keys)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
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
