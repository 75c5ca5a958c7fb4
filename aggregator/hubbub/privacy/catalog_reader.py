"""Reads metrics.toml, with the accountant of central promises if it is installed."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from hubbub.authoring import Accountant, Catalog, read_catalog


def read_with_promises(path: Path) -> Catalog:
    """The catalog in a TOML file, with local epsilons that keep its central promises.

    Raises:
        CatalogInvalid: as read_catalog; or a central promise needs an accountant that is not
            installed.
    """
    return read_catalog(path, _accountant())


def _accountant() -> Accountant | None:
    if any(find_spec(name) is None for name in ("numpy", "scipy")):
        return None
    accountant: Accountant = import_module("hubbub.privacy.crowd").ExactAccountant()
    return accountant
