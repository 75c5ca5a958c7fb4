"""Reading a table of metrics.toml by what is said of its fields, all problems at once."""

from collections.abc import Callable, Mapping
from typing import Any

from hubbub.catalog.fields.field import fields_of
from hubbub.errors import BadParameter

Complain = Callable[[str, str], None]
"""Takes a field's name and what is wrong with it, with the remedy."""


def read_fields(section: type, table: Mapping[str, Any], wrong: Complain) -> dict[str, Any]:
    """What the fields of a dataclass hold, as far as a table says it and says it right.

    Fields that can be said in several ways are left out: who knows them asks.
    """
    found = {}
    for field in fields_of(section):
        if not field.entry.written or field.entry.others:
            continue
        if field.required or field.name in table:
            given = table.get(field.name)
            if problem := field.problem(given):
                wrong(field.name, problem)
            else:
                found[field.name] = field.entry.kind.read(given)
    return found


def read_section(name: str, section: type, given: Any, wrong: Complain) -> Any:
    """The object that a [table] at the top of the file says, or None after a complaint."""
    names = [field.name for field in fields_of(section) if field.entry.written]
    if not isinstance(given, dict):
        wrong(name, f"must be a table of {', '.join(names)}; write [{name}] and them below")
        return None
    unknown = given.keys() - set(names)
    for field in unknown:
        wrong(field, f"is not known in [{name}]; there are {', '.join(names)}")
    complaints: list[str] = []

    def noted(field: str, problem: str) -> None:
        complaints.append(field)
        wrong(field, problem)

    found = read_fields(section, given, noted)
    if complaints or unknown:
        return None
    try:
        return section(**found)
    except BadParameter as error:
        wrong(name, str(error))
        return None
