"""A metric's catalog fields as label and text, for pages and cards."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hubbub.catalog.metric import Metric
from hubbub.fields.field import fields_of

# Beginnings of the names of fields that promise a crowd, of which development keeps none.
_OF_CROWDS: Final = ("central_", "crowd", "count_", "dummies")


@dataclass(frozen=True, slots=True)
class Fact:
    """One field and its text: 1,000; day; os (linux, macos). `label` is its name for people."""

    field: str
    label: str
    text: str


def facts(metric: Metric) -> list[Fact]:
    """All labelled fields that differ from their default."""
    section: type = type(metric)
    facts = []
    for field in fields_of(section):
        # In development the minimum batch is 1.
        value = metric.fewest if field.name == "min_batch" else field.of(metric)
        if field.entry.label and not field.is_default(value):
            is_void = metric.development and field.name.startswith(_OF_CROWDS)
            text = f"{value:,}" if isinstance(value, int | float) else str(value)
            if isinstance(value, Mapping):
                text = ", ".join(f"{name} ({', '.join(values)})" for name, values in value.items())
            text += " (not under --dev)" if is_void else ""
            facts.append(Fact(field.name, field.entry.label, text))
    return facts
