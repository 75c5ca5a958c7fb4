"""Reads metrics.toml, with the accountant of central promises if it is installed."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from hubbub.authoring import Accountant, Catalog, read_catalog


def read_with_promises(path: Path, text: str | None = None) -> Catalog:
    """The catalog in a TOML file, or in `text`, with local epsilons that keep its central promises.

    Raises CatalogInvalid as read_catalog, or if an accountant is needed that is not installed.
    """
    accountant: Accountant | None = None
    if all(find_spec(name) for name in ("numpy", "scipy")):
        accountant = import_module("hubbub.privacy.exact_accountant").ExactAccountant()
    return read_catalog(path, accountant, text)
