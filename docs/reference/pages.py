"""Which pages of the reference are made from what they describe."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.reference import (
    catalog,
    command_line,
    decisions,
    http,
    prometheus,
    review,
    settings,
    wire,
)

DOCS: Final = Path(__file__).parents[1]
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/catalog.md": catalog.page,
    "../deploy/hubbub/cli/metrics.schema.json": catalog.schema,
    "reference/command-line.md": command_line.page,
    "reference/settings.md": settings.page,
    "reference/http.md": http.page,
    "reference/wire.md": wire.page,
    "reference/prometheus.md": prometheus.page,
    "decisions/README.md": decisions.page,
    "review.md": review.page,
}
"""By their place from docs/, what each must say; the schema is shipped with the commands."""
