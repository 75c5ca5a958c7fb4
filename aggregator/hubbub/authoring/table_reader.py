"""Reads a table of metrics.toml by the declarations of its fields, with all problems at once."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from hubbub.catalog.values.value_kind import Complain
from hubbub.errors import BadParameter
from hubbub.errors.message_words import similar
from hubbub.fields.field import fields_of

# An error lists at most this many names; the reference lists all.
_FEW: Final = 8
_REST: Final = "docs/reference/catalog.md has every field"


def read_fields(section: type, table: Mapping[str, Any], complain: Complain) -> dict[str, Any]:
    """Valid values of a dataclass's fields in a table; complains of the others.

    Fields with alternative keys are left out: the caller reads them.
    """
    values = {}
    for field in fields_of(section):
        if not field.entry.written or field.entry.others:
            continue
        if field.required or field.name in table:
            if problem := field.problem_in(table):
                complain(field.name, problem)
            else:
                values[field.name] = field.entry.kind.read(table[field.name])
    return values


def refuse_unknown(
    table: Mapping[str, Any],
    names: Collection[str],
    whose: str,
    complain: Complain,
    owners: Callable[[str], Sequence[str]] = lambda _: (),
) -> None:
    """Complains of unknown fields, with a similar name or a list of all.

    `whose` ends the sentence "is not known", as "for any mechanism" or "in [caps]";
    `owners` names the mechanisms that a field is for.
    """
    for name in [name for name in table if name not in names]:
        if others := owners(name):
            complain(name, f"is not known {whose}, only for {', '.join(others)}; remove it")
            continue
        meant = f'did you mean "{suggestion}"? ' if (suggestion := similar(name, names)) else ""
        all_names = f"there are {', '.join(names)}" if len(names) <= _FEW else ""
        complain(name, f"is not known {whose}; {meant}{all_names or _REST}")


def read_section(name: str, section: type, table: Any, complain: Complain, /, **others: Any) -> Any:
    """The object of a [table] at the top of the file; None after a complaint.

    `others` are attributes of the object that are not in the table.
    """
    names = [field.name for field in fields_of(section) if field.entry.written]
    if not isinstance(table, dict):
        complain(name, f"must be a table of {', '.join(names)}; write [{name}] and them below")
        return None
    complaints: list[str] = []

    def noted(field: str, problem: str) -> None:
        complaints.append(field)
        complain(field, problem)

    refuse_unknown(table, names, f"in [{name}]", noted)
    fields = read_fields(section, table, noted)
    if complaints:
        return None
    try:
        return section(**fields, **others)
    except BadParameter as error:
        complain(name, str(error))
        return None
