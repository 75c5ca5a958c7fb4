"""The bundle's file as the HTTP server hands it out: signed bytes, not read by the shuffler."""

import errno
import logging
import stat
from pathlib import Path
from typing import Final

from hubbub.errors import BadParameter
from hubbub.shuffler.public_bytes import PublicBytes

_log: Final = logging.getLogger("hubbub.shuffler")


class BundleFile:
    """A file that is read again when it changes. Raises BadParameter if it cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file_stamp: tuple[int, int, int] | None = None
        self._served = PublicBytes(b"")
        try:
            self._look()
        except OSError as error:
            raise BadParameter(
                f"--http-bundle {path}: {error.strerror}; make it with: hubbub catalog build"
            ) from error

    def served(self) -> PublicBytes:
        """The file's current content; if it cannot be read now, the last one."""
        try:
            self._look()
        except OSError:
            _log.warning("%s cannot be read: the former bundle is served on", self._path)
        return self._served

    def _look(self) -> None:
        file_stat = self._path.stat()
        if not stat.S_ISREG(file_stat.st_mode):  # opening a pipe may block the service forever
            raise OSError(errno.EINVAL, "is no file")
        stamp = (file_stat.st_mtime_ns, file_stat.st_size, file_stat.st_ino)
        if stamp != self._file_stamp:
            self._served, self._file_stamp = PublicBytes(self._path.read_bytes()), stamp
