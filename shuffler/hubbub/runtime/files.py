"""A file that others read is replaced whole: they see what was there, or what is."""

import os
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write it beside its place, and move it there. Raises OSError; then the old one stands.

    mode: of a new file, less the process' umask.
    """
    part = path.with_name(path.name + ".part")
    part.touch(mode=mode)
    part.write_bytes(content)
    if path.exists():  # whoever may read it may go on reading it, also if root writes
        with suppress(PermissionError):
            os.chown(part, path.stat().st_uid, path.stat().st_gid)
    part.replace(path)
