"""Builds the TOML text of a catalog from the fields that matter to a test."""

from datetime import date
from json import dumps
from pathlib import Path
from typing import Any

from hubbub.authoring import Catalog, read_catalog, read_with_promises

METRIC: dict[str, Any] = {
    "description": "A metric of a test",
    "owner": "you@example.org",
    "expires": date(2099, 12, 31),
    "epoch": "day",
}
LIMITS = {"reports_per_epoch": 1, "lifetime_epsilon": 50.0, "lifetime_central_epsilon": None}


def catalog_toml(*tables: str, **settings: Any) -> str:
    """A catalog of `tables`, which `metric_toml` returns or which are TOML text.

    Args:
        settings: fields before the first table. Nothing listens at the default shuffler.
    """
    return _lines({"shuffler": "127.0.0.1:1", **settings}) + "".join(tables)


def catalog_of(text: str) -> Catalog:
    """The catalog of a file of this text, which is not written; no metric has a crowd."""
    return read_catalog(Path("metrics.toml"), text=text)


def promised_catalog_of(text: str) -> Catalog:
    """The catalog of a file of this text, which is not written, with the promises of crowds."""
    return read_with_promises(Path("metrics.toml"), text)


def metric_toml(name: str, more: str = "", /, **fields: Any) -> str:
    """The table of a metric; one with a crowd needs no min_batch.

    Args:
        more: TOML lines that end the table.
        fields: fields and limits in place of the defaults. None leaves a default out.
    """
    limits = {limit: fields.pop(limit, default) for limit, default in LIMITS.items()}
    fields.setdefault("min_batch", None if "crowd" in fields else 100)
    return f"\n[metrics.{name}]\n{_lines({**METRIC, **fields, 'limits': limits})}{more}\n"


def model_toml(name: str, more: str = "", /, **fields: Any) -> str:
    """The tables of a model of two features, with `fields` as of `metric_toml`, before `more`."""
    fixed = {"owner": "growth@example.org", "begins": date(2024, 10, 14)}
    own = _lines({**METRIC, "epoch": "hour", "kind": "logistic", **fixed, **fields})
    features = _lines({"hours": [0, 40], "plan": ["free", "paid"]})
    return f"\n[models.{name}]\n{own}{more}\n[models.{name}.features]\n{features}"


def _lines(table: dict[str, Any]) -> str:
    return "".join(f"{key} = {_toml(item)}\n" for key, item in table.items() if item is not None)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{key} = {_toml(item)}" for key, item in value.items() if item is not None)
        return f"{{ {', '.join(pairs)} }}"
    return value.isoformat() if isinstance(value, date) else dumps(value)
