"""Authoring: reads and checks the catalogs that operators write, before they are signed."""

from hubbub.authoring.crowds.accountant import Accountant
from hubbub.authoring.metrics_toml.catalog_file import Catalog, read_catalog, read_with_promises
from hubbub.authoring.person_exposure import crowds_within, exposure

__all__ = [
    "Accountant",
    "Catalog",
    "crowds_within",
    "exposure",
    "read_catalog",
    "read_with_promises",
]
