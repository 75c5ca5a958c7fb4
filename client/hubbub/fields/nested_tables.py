"""Fields that contain a table with the fields of another dataclass, and their JSON schema."""

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Any

from hubbub.errors import BadParameter
from hubbub.fields.field import CatalogField, dumped, fields_of, loaded
from hubbub.fields.kinds import Kind, Schema


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
