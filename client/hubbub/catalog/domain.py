"""A metric's domain as its table gives it: listed values, a file of them, strings or numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hubbub.catalog.choice import AUTO
from hubbub.catalog.encoding import read_text
from hubbub.catalog.rules import what_is_wrong_with_values
from hubbub.mechanisms import REGISTRY

__all__ = ["values"]

_DOMAINS: Final = {"strings": "string", "numbers": "number"}

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
    if problem := what_is_wrong_with_values(values):
        wrong(field, problem)
        return None
    return tuple(values)


def _lines(folder: Path, name: Any, wrong: Complain) -> list[str] | None:
    """The lines of a values file (plain or .gz), relative to the catalog's folder."""
    if not (isinstance(name, str) and name):
        wrong("values_file", "must be the path of a text file, one value a line")
        return None
    try:
        return read_text(folder / name).splitlines()
    except ValueError as error:
        wrong("values_file", f"{error}; mend the file")
        return None
