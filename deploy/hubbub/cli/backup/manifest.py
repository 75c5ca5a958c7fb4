"""What a backup consists of, with a checksum of each part, and of the list itself."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BackupUnusable

ROLES: Final = ("shuffler", "aggregator")
FILES: Final = ("shuffler.rdb", "aggregator.rdb", "installation.age")
_NAME: Final = "manifest.json"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """made: when, as ISO 8601 in UTC. version: of the hubbub that made it."""

    made: str
    version: str


def write_manifest(folder: Path, version: str) -> None:
    """Write the list, last of all: a backup without it is not whole."""
    created_at = datetime.fromtimestamp(int(time.time()), UTC).isoformat()
    body: dict[str, Any] = {"format": _FORMAT, "hubbub": version, "made": created_at, "files": {}}
    for name in FILES:
        path = folder / name
        body["files"][name] = {"bytes": path.stat().st_size, "sha256": _digest(path)}
    text = json.dumps(body | {"sha256": _of(body)}, indent=2)
    (folder / _NAME).write_text(text + "\n", encoding="utf-8")


def read_checked(folder: Path) -> Manifest:
    """The list of a backup all of whose parts are as they were written.

    Raises:
        BackupUnusable: a part is missing, damaged, or of a format that is not known.
    """
    body = _read(folder / _NAME)
    if body.get("format") != _FORMAT:
        raise BackupUnusable(
            f"{folder}: of a format that this version does not know; take the version of hubbub "
            "that made it, or a newer one"
        )
    digest = body.pop("sha256", None)
    if digest != _of(body):
        raise BackupUnusable(f"{folder / _NAME}: is damaged; take another copy of this backup")
    files: Mapping[str, Mapping[str, Any]] = body["files"]
    for name in FILES:
        path = folder / name
        if not path.is_file():
            raise BackupUnusable(f"{path}: is missing; take another copy of this backup")
        size = path.stat().st_size
        if size != files[name]["bytes"]:
            raise BackupUnusable(
                f"{path}: has {size:,} bytes where {files[name]['bytes']:,} were written; take "
                "another copy of this backup"
            )
        if _digest(path) != files[name]["sha256"]:
            raise BackupUnusable(f"{path}: is damaged; take another copy of this backup")
    return Manifest(made=body["made"], version=body["hubbub"])


def _read(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BackupUnusable(
            f"{path}: {error.strerror}; a backup that was not finished has none: make it again"
        ) from error
    except ValueError:
        raise BackupUnusable(f"{path}: is damaged; take another copy of this backup") from None
    if not isinstance(body, dict):
        raise BackupUnusable(f"{path}: is damaged; take another copy of this backup")
    return body


def _of(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
