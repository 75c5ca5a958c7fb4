"""The bundle's file as the HTTP door serves it: signed bytes, which the shuffler does not read."""

import hashlib
import logging
from http import HTTPStatus
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter

__all__ = ["BundleFile"]

_log: Final = logging.getLogger("hubbub.shuffler")
# The same bytes for everybody, so that any cache may keep them, and nobody be told apart by them.
_CACHE: Final = (b"cache-control", b"public, max-age=300")


class BundleFile:
    """A file that is read again when it changes. Raises BadParameter if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._bytes, self._tag = b"", b""
        try:
            self._look()
        except OSError as error:
            raise BadParameter(
                f"--http-bundle {path}: {error.strerror}; make it with: hubbub catalog build"
            ) from error

    def answer(self, known: bytes) -> tuple[HTTPStatus, tuple[tuple[bytes, bytes], ...], bytes]:
        """Status, headers and body for who has what these tags (If-None-Match) are of."""
        try:
            self._look()
        except OSError:
            _log.warning("%s cannot be read: the former bundle is served on", self._path)
        headers = ((b"etag", self._tag), _CACHE)
        tags = [tag.strip().removeprefix(b"W/") for tag in known.split(b",")]
        if self._tag in tags:
            return HTTPStatus.NOT_MODIFIED, headers, b""
        kind = (b"content-type", b"application/octet-stream")
        return HTTPStatus.OK, (*headers, kind), self._bytes

    def _look(self) -> None:
        found = self._path.stat()
        seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        if seen != self._seen:
            self._bytes = self._path.read_bytes()
            self._tag = b'"' + hashlib.sha256(self._bytes).hexdigest()[:32].encode() + b'"'
            self._seen = seen
