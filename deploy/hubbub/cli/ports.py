"""Free ports of this machine, given to one of our processes at a time."""

import os
import secrets
import socket
import tempfile
import time
from pathlib import Path
from typing import Final

__all__ = ["free_port"]

# Below those that the system hands out to outgoing connections (32768 on Linux, 49152 elsewhere):
# one of them may take such a port between our looking and our listening.
_FIRST: Final = 12_000
_LAST: Final = 32_000
# Who was given a port listens there by then, or never.
_CLAIMED_SECONDS: Final = 60.0


def free_port(beside: int = 0) -> int:
    """A port of 127.0.0.1 that nothing listens on, and that nobody else is given for a minute.

    beside: this many above it is another such port.
    """
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST - beside)
        if all(_is_free(one) and _claim(one) for one in {port, port + beside}):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _claim(port: int) -> bool:
    """Whether no process of ours was given it within the last minute; if so, it is claimed."""
    folder = Path(tempfile.gettempdir()) / f"hubbub-ports-{os.getuid()}"
    claim = folder / str(port)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if claim.exists() and time.time() - claim.stat().st_mtime > _CLAIMED_SECONDS:
            claim.unlink(missing_ok=True)
        claim.touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        return True  # nowhere to write it down: it is free, at least
    return True
