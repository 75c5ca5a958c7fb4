"""Which metrics of a catalog have expired, said after it is checked or built."""

from datetime import UTC, datetime

from hubbub.catalog import Catalog
from hubbub.cli.terminal.output import explain


def say_expired(catalog: Catalog) -> None:
    """Name the metrics that no device reports any more: they stay for what is held of them."""
    today = datetime.now(UTC).date()
    for metric in catalog.metrics.values():
        if metric.expires < today:
            explain(f"{metric.name}: expired on {metric.expires}, so devices do not report it")
