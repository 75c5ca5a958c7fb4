"""Reads a catalog for whoever typed a command."""

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from hubbub.authoring import Catalog
from hubbub.catalog import Metric
from hubbub.cli.terminal.long_work import said_if_long
from hubbub.errors import UnknownMetric
from hubbub.privacy.central_catalog import read_with_promises

_CROWD: Final = b"central_epsilon"


def read_aloud(path: Path) -> Catalog:
    """As `read_with_promises`; where crowds take over two seconds, it says so on standard error."""
    with said_if_long(lambda: _said(path)):
        return read_with_promises(path)


def chosen_metrics(catalog: Catalog, path: Path, names: Collection[str]) -> list[Metric]:
    """The metrics of these names, or all of the catalog.

    Raises:
        UnknownMetric: the catalog, which is in the file `path`, has no metric of such a name.
    """
    for name in names:
        if name not in catalog.metrics:
            raise UnknownMetric(f'{path}: no metric "{name}"; look at: hubbub catalog check')
    return [m for m in catalog.metrics.values() if not names or m.name in names]


def _said(path: Path) -> str:
    with suppress(OSError):  # which who reads it tells
        if _CROWD in path.read_bytes():
            return (
                "working out what crowds hide, which may take half a minute (large ones with "
                'dummies = "auto" take longest)'
            )
    return ""
