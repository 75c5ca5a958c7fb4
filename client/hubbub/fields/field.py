"""Fields of a catalog: the one declaration of each, and what follows from it.

A field of metrics.toml is a field of a dataclass, with an `entry` as its metadata:

    min_batch: int = setting(
        whole(10, 1_000_000), "The fewest reports that leave together.", "1000"
    )

From that come the reader of metrics.toml, the check of whatever is built, bundle, overview, privacy
card, JSON schema and reference. Its default is the dataclass' own.

A field may contain a table with the fields of another dataclass (`table_of`).
"""

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, replace
from datetime import date
from functools import lru_cache, partial
from typing import Any, Final, TypeVar, dataclass_transform

from hubbub.errors import BadParameter
from hubbub.fields.frozen import frozen
from hubbub.fields.kinds import Kind, Schema

_KEY: Final = "catalog"
Section = TypeVar("Section")
REQUIRED: Final = MISSING
"""The default of a field that has none."""


@frozen(kw_only=True)
class Entry:
    """The declaration of a field.

    Args:
        meaning: one sentence for authors of a catalog.
        write: remedy, after the problem.
        label: name on pages and the privacy card; "" to leave it out there.
        others: other names of the field in metrics.toml.
        name: in metrics.toml and bundles, if it differs from the attribute's.
        written: whether authors write it; otherwise it is computed.
        in_definition: whether it belongs to the definition, which decides what totals mean.
        always: whether a bundle has it even at its default, as in version 0.1.
        operator: whether only the operator's bundle has it.
    """

    kind: Kind
    meaning: str
    example: str = ""
    write: str = ""
    label: str = ""
    others: Mapping[str, "Entry"] = field(default_factory=dict)
    name: str = ""
    written: bool = True
    in_definition: bool = False
    always: bool = False
    operator: bool = False

    def missing(self, name: str) -> str:
        """The problem with a table that lacks the field of this name, with the remedy."""
        if self.write.startswith(f"write {name} = ") or not self.example:
            return f"is missing; {self.write}"
        return f"is missing; write {name} = {self.example} ({self.kind.words()})"


def entry(kind: Kind, meaning: str, example: str = "", **declaration: Any) -> Mapping[str, Entry]:
    """Metadata that makes a dataclass field a field of a catalog; `declaration` as in Entry."""
    return {_KEY: Entry(kind=kind, meaning=meaning, example=example, **declaration)}


def setting(
    kind: Kind,
    meaning: str,
    example: str = "",
    *,
    default: Any = MISSING,
    default_factory: Any = MISSING,
    **declaration: Any,
) -> Any:
    """A field of a catalog with its own entry; `declaration` as in Entry."""
    metadata = entry(kind, meaning, example, **declaration)
    return field(default=default, default_factory=default_factory, metadata=metadata)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(setting, field))
def settings(section: type[Section]) -> type[Section]:
    """Makes a class with `setting` fields a frozen, keyword-only dataclass."""
    return frozen(kw_only=True)(section)


@frozen(kw_only=True)
class CatalogField:
    """A field with its name and its default, which is REQUIRED if it has none.

    `attribute` is its name in the object, or in the object's own `part`, which may be None.
    """

    name: str
    entry: Entry
    default: Any
    attribute: str = ""
    part: str = ""

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.default is REQUIRED

    def problem(self, value: Any) -> str:
        """Why a value is not permitted, with the remedy; "" if it is."""
        problem = self.entry.kind.problem(value)
        if not (problem and self.entry.write) or "; write " in problem:
            return problem
        return f"{problem}{'' if problem.endswith('?') else ';'} {self.entry.write}"

    def problem_in(self, table: Mapping[str, Any]) -> str:
        """As `problem`, for the value in a table that must have the field."""
        if self.name not in table:
            return self.entry.missing(self.name)
        return self.problem(table[self.name])

    def of(self, instance: Any) -> Any:
        """The field's value in an object."""
        owner = getattr(instance, self.part) if self.part else instance
        return self.default if owner is None else getattr(owner, self.attribute)

    def is_default(self, value: Any) -> bool:
        """Whether a value equals the default; 1 and True differ."""
        return type(value) is type(self.default) and bool(value == self.default)


def part(section: type) -> Any:
    """A field with an object of this dataclass, whose fields are written beside the owner's.

    It is None if none of them is written.
    """
    return field(default=None, metadata={_KEY: section})


@lru_cache
def fields_of(section: type) -> tuple[CatalogField, ...]:
    """The catalog's fields of a dataclass, in order; those of a part in its place."""
    catalog_fields = list[CatalogField]()
    for member in fields(section):
        entry = member.metadata.get(_KEY)
        if isinstance(entry, type):
            catalog_fields += [replace(inner, part=member.name) for inner in fields_of(entry)]
        elif entry:
            default = (
                member.default if member.default_factory is MISSING else member.default_factory()
            )
            catalog_fields.append(
                CatalogField(
                    name=entry.name or member.name,
                    entry=entry,
                    default=default,
                    attribute=member.name,
                )
            )
    return tuple(catalog_fields)


def arguments_of(section: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a dataclass's fields, by name, as its arguments: those of a part in an object."""
    arguments = dict(values)
    for member in fields(section):
        if isinstance(part := member.metadata.get(_KEY), type):
            members = [inner for inner in fields_of(part) if inner.name in values]
            terms = {inner.attribute: arguments.pop(inner.name) for inner in members}
            arguments |= {member.name: part(**terms)} if terms else {}
    return arguments


def check(instance: Any) -> None:
    """Raises BadParameter for an object's first field with a value that is not permitted."""
    section: type = type(instance)
    for member in fields_of(section):
        value = member.of(instance)
        if not member.is_default(value) and (problem := member.problem(value)):
            raise BadParameter(f"{member.name} {problem}")


def dumped(
    instance: Any, *, in_definition: bool | None = None, operator: bool = False
) -> dict[str, Any]:
    """The JSON of an object's fields, without defaults, so that a new field changes no old bundle.

    `in_definition` selects the fields inside or outside the definition, None all; `operator`
    includes those of the operator's bundle.
    """
    table: dict[str, Any] = {}
    section: type = type(instance)
    for member in fields_of(section):
        says, holds = member.entry, member.of(instance)
        if says.operator and not operator:
            continue
        if in_definition in {None, says.in_definition} and (says.always or holds != member.default):
            value = says.kind.dump(holds)
            table |= value if says.kind.flat else {member.name: value}
    return table


def loaded(section: type, table: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a dataclass from the JSON of its fields; unknown ones are ignored.

    Raises KeyError for a missing required field, TypeError or ValueError for another shape.
    """
    values = {}
    for member in fields_of(section):
        kind = member.entry.kind
        if kind.flat:
            values[member.name] = kind.load(table)
        elif member.required or member.entry.always or member.name in table:
            if table[member.name] is None and not (member.required or member.entry.always):
                raise TypeError(f"{member.name}: null is not a value; leave it out")
            values[member.name] = kind.load(table[member.name])
    return arguments_of(section, values)


def table_of(section: type, *, flat: bool = False) -> Kind:
    """The kind of a field with an object of this dataclass, written as a table.

    With `flat`, a bundle has its fields beside those of the owner.
    """
    return Kind(
        words=lambda: f"a table of {_field_list_text(section)}",
        problem=partial(_problem, section),
        schema=partial(object_schema, section),
        read=partial(_read, section),
        dump=dumped,
        load=partial(_load, section, flat=flat),
        flat=flat,
    )


def object_schema(section: type) -> Schema:
    """The JSON schema of a table with a dataclass' fields."""
    fields = _authored_fields(section)
    schema: Schema = {
        "type": "object",
        "properties": {field.name: field_schema(field) for field in fields},
        "additionalProperties": False,
    }
    required = [field.name for field in fields if field.required]
    return schema | ({"required": required} if required else {})


def field_schema(field: CatalogField) -> Schema:
    """The JSON schema of one field, with its description."""
    schema: Schema = {"description": field.entry.meaning, **field.entry.kind.schema()}
    if isinstance(field.default, int | float) or (isinstance(field.default, str) and field.default):
        schema["default"] = field.default
    if field.entry.example:
        import tomllib  # noqa: PLC0415 no device reads TOML

        example = tomllib.loads(f"it = {field.entry.example}")["it"]
        schema["examples"] = [str(example) if isinstance(example, date) else example]
    return schema


def _authored_fields(section: type) -> list[CatalogField]:
    """The fields that people write; others are computed."""
    return [field for field in fields_of(section) if field.entry.written]


def _problem(section: type, table: Any) -> str:
    if isinstance(table, section):
        return ""
    fields = {field.name: field for field in _authored_fields(section)}
    unknown = [name for name in table if name not in fields] if isinstance(table, dict) else []
    if unknown or not isinstance(table, dict):
        problem = f"holds {unknown[0]!a}, which is not known; " if unknown else ""
        return f"{problem}must hold {_field_list_text(section)}"
    if absent := [name for name, field in fields.items() if field.required and name not in table]:
        return f"lacks {' and '.join(absent)}; must hold {_field_list_text(section)}"
    wrong = [
        f"{name} {problem}"
        for name, value in table.items()
        if (problem := fields[name].problem(value))
    ]
    if wrong:
        return "; ".join(wrong)
    try:
        _read(section, table)
    except BadParameter as error:
        return str(error)
    return ""


def _read(section: type, table: Mapping[str, Any]) -> Any:
    fields = [field for field in fields_of(section) if field.name in table]
    return section(**{field.name: field.entry.kind.read(table[field.name]) for field in fields})


def _load(section: type, table: Any, *, flat: bool) -> Any:
    names = {field.name for field in fields_of(section)}
    if not (isinstance(table, dict) and (flat or table.keys() <= names)):
        raise TypeError("a table is expected")
    return section(**loaded(section, table))


def _field_list_text(section: type) -> str:
    """The names of its fields: "a, b and perhaps c", or "any of a, b and c"."""
    fields = _authored_fields(section)
    required = [field.name for field in fields if field.required]
    optional = [field.name for field in fields if not field.required]
    *first, last = [*required, *(f"perhaps {name}" for name in optional)] if required else optional
    return f"{'' if required else 'any of '}{', '.join(first)} and {last}"
