"""A metric's domain as its table gives it: listed values, a file of them, strings or numbers."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hubbub.catalog.choice import AUTO
from hubbub.mechanisms import REGISTRY

__all__ = ["values"]

_DOMAINS: Final = {"strings": "string", "numbers": "number"}
_MAX_VALUE_BYTES: Final = 1024

Complain = Callable[[str, str], None]


def values(
    mechanism: str, table: dict[str, Any], folder: Path, wrong: Complain
) -> tuple[str, ...] | None:
    """The listed values; None for a domain, or once something was complained about."""
    given = [field for field in ("values", "values_file", "domain") if field in table]
    if mechanism == AUTO:
        kind: str = "numbers" if "domain" in given else "categories"
    else:
        kind = REGISTRY[mechanism].VALUES
    if kind in _DOMAINS:
        if given != ["domain"] or table["domain"] != _DOMAINS[kind]:
            wrong(
                "domain",
                f'{mechanism} is over {kind}; write domain = "{_DOMAINS[kind]}" and no values',
            )
        return None
    if len(given) != 1 or "domain" in given:
        wrong("values", f"{mechanism} needs its values; write values = [...] or values_file = ...")
        return None
    field = given[0]
    values = table[field] if field == "values" else _lines(folder, table[field], wrong)
    if values is None:
        return None
    if not (isinstance(values, list) and all(isinstance(v, str) and v for v in values)):
        wrong(field, "must be a list of texts, none empty")
    elif any(len(v.encode()) > _MAX_VALUE_BYTES for v in values):
        wrong(field, f"a value is longer than {_MAX_VALUE_BYTES} bytes; shorten it")
    elif len(set(values)) != len(values):
        wrong(field, "holds a value twice; remove one")
    else:
        return tuple(values)
    return None


def _lines(folder: Path, name: Any, wrong: Complain) -> list[str] | None:  # noqa: ANN401 parsed TOML
    """The lines of a values file (plain or .gz), relative to the catalog's folder."""
    if not (isinstance(name, str) and name):
        wrong("values_file", "must be the path of a text file, one value a line")
        return None
    try:
        raw = (folder / name).read_bytes()
        return (gzip.decompress(raw) if name.endswith(".gz") else raw).decode().splitlines()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        wrong("values_file", f"{folder / name} cannot be read as text: {error}; mend the file")
        return None
