"""A metric's domain as its table gives it: listed values, a file of them, strings or numbers."""

from pathlib import Path
from typing import Any

from hubbub.catalog.choice import AUTO
from hubbub.catalog.encoding import read_text
from hubbub.catalog.fields import CatalogField
from hubbub.catalog.metric import DOMAINS
from hubbub.catalog.reading import Complain
from hubbub.mechanisms import REGISTRY

__all__ = ["read_values"]


def read_values(
    field: CatalogField, mechanism: str, table: dict[str, Any], folder: Path, wrong: Complain
) -> tuple[str, ...] | None:
    """The listed values; None for a domain, or once something was complained about."""
    given = [name for name in (field.name, *field.entry.others) if name in table]
    if mechanism == AUTO:
        kind: str = "numbers" if "domain" in given else "categories"
    else:
        kind = REGISTRY[mechanism].VALUES
    if kind in DOMAINS:
        if given != ["domain"] or table["domain"] != DOMAINS[kind]:
            wrong(
                "domain",
                f'{mechanism} is over {kind}; write domain = "{DOMAINS[kind]}" and no values',
            )
        return None
    if len(given) != 1 or "domain" in given:
        wrong("values", f"{mechanism} needs its values; write values = [...] or values_file = ...")
        return None
    [name] = given
    listed = table[name]
    if name != field.name:
        if problem := field.entry.others[name].kind.problem(listed):
            wrong(name, problem)
            return None
        try:
            listed = read_text(folder / listed).splitlines()
        except ValueError as error:
            wrong(name, f"{error}; mend the file")
            return None
    if problem := field.problem(listed):
        wrong(name, problem)
        return None
    read: tuple[str, ...] = field.entry.kind.read(listed)
    return read
