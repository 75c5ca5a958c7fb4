"""The catalog that a plan is of, and which of its metrics."""

from collections.abc import Collection
from pathlib import Path
from typing import Final

from hubbub.catalog import Catalog, Metric
from hubbub.cli.terminal.catalog_reading import chosen_metrics, read_aloud
from hubbub.errors import BadParameter

CATALOG: Final = Path("metrics.toml")
"""Where a catalog usually is."""


def is_missing(path: Path) -> bool:
    """Whether no catalog was named, and there is none where one usually is."""
    return path == CATALOG and not CATALOG.exists()


def read_metrics(path: Path, names: Collection[str]) -> tuple[Catalog, list[Metric]]:
    """A catalog, and its metrics of these names, or all of them.

    Raises:
        BadParameter: there is no catalog.
        UnknownMetric: the catalog has no metric of such a name.
    """
    if is_missing(path):
        raise BadParameter(
            f"there is no {path} here: name a catalog, as in: hubbub plan attack "
            "path/to/metrics.toml; hubbub init makes one"
        )
    catalog = read_aloud(path)
    return catalog, chosen_metrics(catalog, path, names)
