"""Reads a catalog for whoever typed a command: what takes long is said while it takes long."""

import sys
from pathlib import Path
from threading import Timer
from typing import Final

from hubbub.catalog import Catalog
from hubbub.privacy.central_catalog import read_with_promises

_SOON_SECONDS: Final = 2.0


def read_aloud(path: Path) -> Catalog:
    """As `read_with_promises`; after two seconds it says on standard error what it waits for."""
    timer = Timer(_SOON_SECONDS, _say, (path,))
    timer.daemon = True
    timer.start()
    try:
        return read_with_promises(path)
    finally:
        timer.cancel()


def _say(path: Path) -> None:
    print(  # noqa: T201 beside the answer
        f"{path}: working out what its crowds hide, which may take half a minute (large ones with "
        'dummies = "auto" take longest)',
        file=sys.stderr,
        flush=True,
    )
