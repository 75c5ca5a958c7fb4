"""The catalog that a plan is of, and which of its metrics."""

from pathlib import Path
from typing import Final

from hubbub.authoring import Catalog
from hubbub.catalog import Metric
from hubbub.cli.terminal.catalog_reading import chosen_metrics, read_aloud
from hubbub.errors import BadParameter
from hubbub.programs.options import argument, option, options

CATALOG: Final = Path("metrics.toml")
"""Where a catalog usually is."""


@options
class MetricsOptions:
    """Options of plans about a catalog."""

    catalog: Path = argument("the catalog (%(default)s)", default=CATALOG)
    metrics: tuple[str, ...] = option(
        "metric of the catalog (repeat; without it all metrics)",
        name="--metric",
        metavar="METRIC",
        default=(),
    )

    @property
    def is_missing(self) -> bool:
        """Whether no catalog was named, and there is none where one usually is."""
        return self.catalog == CATALOG and not CATALOG.exists()

    def read(self) -> tuple[Catalog, list[Metric]]:
        """The catalog, and its metrics that were named, or all of them.

        Raises:
            BadParameter: there is no catalog.
            UnknownMetric: the catalog has no metric of such a name.
        """
        if self.is_missing:
            raise BadParameter(
                f"there is no {CATALOG} here: name a catalog, as in: hubbub plan attack "
                "path/to/metrics.toml; hubbub init makes one"
            )
        catalog = read_aloud(self.catalog)
        return catalog, chosen_metrics(catalog, self.catalog, self.metrics)
