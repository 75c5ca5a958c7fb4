"""Public files, the same for everybody: the bundle, and what the operator signed for all devices.

The shuffler can make none of them. Of a notice and the state of models it checks only size and
first line, so that a wrong file is refused here and not by every device; the bundle is not read.
"""

import errno
import hashlib
import json
import logging
import stat
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter

_log: Final = logging.getLogger("hubbub.shuffler")

# The same bytes for everybody, so that any cache may store them and they identify nobody.
_CACHE: Final = (b"cache-control", b"public, max-age=300")


@dataclass(frozen=True, slots=True)
class PublicBytes:
    """Bytes to hand out, which the shuffler does not read; `kind` is their media type."""

    content: bytes
    kind: bytes = b"application/octet-stream"
    tag: bytes = field(init=False)

    def __post_init__(self) -> None:
        tag = b'"' + hashlib.sha256(self.content).hexdigest()[:32].encode() + b'"'
        object.__setattr__(self, "tag", tag)

    def answer(self, etags: bytes) -> tuple[HTTPStatus, tuple[tuple[bytes, bytes], ...], bytes]:
        """Status, headers and body for a request with these tags in If-None-Match."""
        headers = ((b"etag", self.tag), _CACHE)
        tags = [tag.strip().removeprefix(b"W/") for tag in etags.split(b",")]
        if self.tag in tags or tags == [b"*"]:
            return HTTPStatus.NOT_MODIFIED, headers, b""
        return HTTPStatus.OK, (*headers, (b"content-type", self.kind)), self.content


class BundleFile:
    """A file that is read again when it changes. Raises BadParameter if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file_stamp: tuple[int, int, int] | None = None
        self._served = PublicBytes(b"")
        try:
            self._reload_if_changed()
        except OSError as error:
            raise BadParameter(
                f"--http-bundle {path}: {error.strerror}; make it with: hubbub catalog build"
            ) from error

    def served(self) -> PublicBytes:
        """The file's current content; if it cannot be read now, the last one."""
        try:
            self._reload_if_changed()
        except OSError:
            _log.warning("%s cannot be read; still serving the former bundle", self._path)
        return self._served

    def _reload_if_changed(self) -> None:
        file_stat = self._path.stat()
        if not stat.S_ISREG(file_stat.st_mode):  # opening a pipe may block the service forever
            raise OSError(errno.EINVAL, "is no file")
        stamp = (file_stat.st_mtime_ns, file_stat.st_size, file_stat.st_ino)
        if stamp != self._file_stamp:
            self._served, self._file_stamp = PublicBytes(self._path.read_bytes()), stamp


@dataclass(frozen=True, slots=True)
class SignedFiles:
    """Both files as served; empty for none."""

    notice: bytes = b""
    models: bytes = b""


# Devices refuse longer ones.
_LARGEST_BYTES: Final = {"notice": 16 << 10, "models": 512 << 10}
_REMEDY: Final = {"notice": "hubbub notice make", "models": "hubbub model publish"}


def read_signed(notice: Path | None, models: Path | None) -> SignedFiles:
    """Reads the files; a missing file is empty, so that it may be added later.

    Raises BadParameter if a file cannot be read, or is not of its kind.
    """
    return SignedFiles(_read("notice", notice), _read("models", models))


def _read(what: str, path: Path | None) -> bytes:
    if path is None:
        return b""
    try:
        with path.open("rb") as file:
            signed = file.read(_LARGEST_BYTES[what] + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise BadParameter(f"--{what} {path}: {error.strerror}; let this user read it") from error
    if len(signed) > _LARGEST_BYTES[what] or not _has_head(signed, f"hubbub {what}"):
        raise BadParameter(
            f"--{what} {path}: is not a file of this kind; make it with: {_REMEDY[what]}"
        )
    return signed


def _has_head(signed: bytes, kind: str) -> bool:
    try:
        head = json.loads(signed.partition(b"\n")[0])
    except ValueError:
        return False
    return isinstance(head, dict) and kind in head
