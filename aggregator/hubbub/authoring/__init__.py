"""Floor 2. Authoring: what operators write of a catalog, read and checked before it is signed."""

from hubbub.authoring.crowds.accountant import Accountant
from hubbub.authoring.exposure import crowds_within, exposure, unchanged_exposure
from hubbub.authoring.metrics_toml.source import Catalog, read_catalog

__all__ = [
    "Accountant",
    "Catalog",
    "crowds_within",
    "exposure",
    "read_catalog",
    "unchanged_exposure",
]
