"""Signed bundles and pieces of catalogs, made with the client's own packages alone."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hubbub.authoring import Catalog, read_catalog
from hubbub.bundles import Bundle, read_bundle
from hubbub.keys.opening_key_files import read_public_keys, write_new_keys
from hubbub.keys.operator_key import read_operator_key
from hubbub.signing.sign_bundle import sign_bundle
from tests.support.catalogs import metric_toml

DAY = 86_400


@dataclass(frozen=True)
class Signed:
    """A bundle in a file, and the folder of the keys behind it."""

    path: Path
    keys: Path
    bundle: Bundle


def make_signed(
    folder: Path,
    catalog_text: str,
    *,
    start: int,
    reader: Callable[[Path], Catalog] = read_catalog,
) -> Signed:
    """reader: reads the catalog; a catalog with crowds needs `read_with_promises`."""
    source = folder / "metrics.toml"
    source.write_text(catalog_text)
    catalog = reader(source)
    keys = folder / "keys"
    write_new_keys(keys, start=start, period_seconds=28 * DAY, periods=13)
    bundle = Bundle(
        metrics=catalog.metrics,
        keys=read_public_keys(keys),
        shuffler=catalog.shuffler,
        roots=None,
        history={name: metric.digest() for name, metric in catalog.metrics.items()},
        budget=catalog.budget,
        caps=catalog.caps,
        cover=catalog.cover,
    )
    path = folder / "app.hubbub"
    path.write_bytes(sign_bundle(bundle, read_operator_key(keys), whole=True))
    return Signed(path, keys, read_bundle(path))


def metric_text(name: str, description: str = "Colours", more: str = "") -> str:
    """A metric of three colours, as metrics.toml has it."""
    fields = {"mechanism": "grr", "epsilon": 4.0, "values": ["light", "dark", "system"]}
    return metric_toml(name, more, description=description, **fields)


def crowd_text(crowd: int, more: str = "", limits: str = "") -> str:
    """The metric theme, of four values in a crowd at central epsilon 1, as metrics.toml has it.

    more: lines of further fields. limits: further ones, from a comma on.
    """
    return f"""
[metrics.theme]
description = "What theme"
owner = "owner@example.org"
expires = 2099-01-01
epoch = "day"
mechanism = "auto"
values = ["light", "dark", "system", "contrast"]
central_epsilon = 1.0
{more}crowd = {crowd}
limits = {{ reports_per_epoch = 1, lifetime_epsilon = 500{limits} }}
"""
