"""A metric's catalog fields as label and text, for pages and cards."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hubbub.catalog.metric import Metric
from hubbub.fields.field import fields_of

# Beginnings of the names of fields that promise a crowd, of which development keeps none.
_OF_CROWDS: Final = ("central_", "crowd", "count_", "dummies")


@dataclass(frozen=True, slots=True)
class Fact:
    """One field and its text; `label` is the field's name for people, as "asked by"."""

    field: str
    label: str
    text: str


def facts(metric: Metric) -> list[Fact]:
    """All labelled fields that differ from their default."""
    section: type = type(metric)
    facts = []
    for field in fields_of(section):
        # In development the minimum batch is 1.
        value = metric.fewest if field.name == "min_batch" else getattr(metric, field.name)
        if field.entry.label and not field.is_default(value):
            is_void = metric.development and field.name.startswith(_OF_CROWDS)
            text = _text(value) + (" (not under --dev)" if is_void else "")
            facts.append(Fact(field.name, field.entry.label, text))
    return facts


def _text(value: Any) -> str:
    """The value for people: 1,000; 2027-06-30; day; os (linux, macos)."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} ({', '.join(members)})" for name, members in value.items())
    return f"{value:,}" if isinstance(value, int | float) else str(value)
