"""Reads a catalog for whoever typed a command."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from hubbub.catalog import Catalog
from hubbub.cli.terminal.long_work import said_if_long
from hubbub.privacy.central_catalog import read_with_promises

_CROWD: Final = b"central_epsilon"


def read_aloud(path: Path) -> Catalog:
    """As `read_with_promises`; where crowds take over two seconds, it says so on standard error."""
    with said_if_long(lambda: _said(path)):
        return read_with_promises(path)


def _said(path: Path) -> str:
    with suppress(OSError):  # which who reads it tells
        if _CROWD in path.read_bytes():
            return (
                "working out what crowds hide, which may take half a minute (large ones with "
                'dummies = "auto" take longest)'
            )
    return ""
