"""The list of a backup's parts with their checksums, by which every part is checked."""

import hashlib
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from hubbub.errors import BackupUnusable

FILES: Final = ("shuffler.rdb", "aggregator.rdb", "installation.age")
_NAME: Final = "manifest.json"
_FORMAT: Final = 1


def write_manifest(folder: Path) -> None:
    """Writes the list of parts, last of all: a backup without it is incomplete."""
    created_at = datetime.fromtimestamp(int(time.time()), UTC).isoformat()
    parts = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": _digest(folder / name)}
        for name in FILES
    }
    body = {"format": _FORMAT, "hubbub": version("hubbub"), "made": created_at, "files": parts}
    text = json.dumps(body | {"sha256": _row_text(body)}, indent=2)
    (folder / _NAME).write_text(text + "\n", encoding="utf-8")


def read_checked(folder: Path) -> dict[str, Any]:
    """Reads a backup's manifest, and checks that all its parts are unchanged.

    It has the version of `hubbub`, and when it was `made`, in ISO 8601 and UTC. Raises
    BackupUnusable if a part is missing, damaged, or of a format that is not known.
    """
    path = folder / _NAME
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BackupUnusable(
            f"{path}: {error.strerror}; an unfinished backup lacks it: make the backup again"
            if folder.is_dir()
            else f"{folder}: is not a folder; give that of a backup"
        ) from error
    except ValueError:
        raise _broken(path, "is damaged") from None
    if not isinstance(body, dict):
        raise _broken(path, "is damaged")
    if body.get("format") != _FORMAT:
        raise BackupUnusable(
            f"{folder}: its format is newer than this version; use the version of hubbub "
            "that made it, or newer"
        )
    digest = body.pop("sha256", None)
    if digest != _row_text(body):
        raise _broken(path, "is damaged")
    files: Mapping[str, Mapping[str, Any]] = body["files"]
    for name in FILES:
        path = folder / name
        if not path.is_file():
            raise _broken(path, "is missing")
        size = path.stat().st_size
        if size != files[name]["bytes"]:
            written = files[name]["bytes"]
            raise _broken(path, f"has {size:,} bytes, but {written:,} were written")
        if _digest(path) != files[name]["sha256"]:
            raise _broken(path, "is damaged")
    return body


def _broken(path: Path, problem: str) -> BackupUnusable:
    return BackupUnusable(f"{path}: {problem}; use another copy of this backup")


def _row_text(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
