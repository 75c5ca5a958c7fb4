"""The page of every field of metrics.toml: `python -m docs.reference.catalog` writes it anew."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from docs.reference.catalog_schema import catalog_schema
from hubbub.authoring.auto_mechanism import own_fields
from hubbub.authoring.crowds.crowd_metric_fields import FOLLOWING
from hubbub.authoring.metrics_toml.catalog_file import Catalog
from hubbub.authoring.metrics_toml.model_table import AS_METRICS
from hubbub.catalog.crowds.central_conflicts import PROMISE
from hubbub.catalog.limits_and_budgets import Budget, Caps, Limits, Release
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.catalog.metric import Metric
from hubbub.catalog.models.learning import Learning
from hubbub.fields.field import CatalogField, fields_of
from hubbub.mechanisms import REGISTRY

PAGE: Final = Path(__file__).with_name("catalog.md")
_INTRODUCTION: Final = """\
# Every field of metrics.toml

Made by `python -m docs.reference.catalog` from the fields of the code; change it there.

`hubbub catalog check metrics.toml` reports every problem with line, field and remedy.
`hubbub catalog new NAME` adds a metric, with a comment above each field.
A new file names its JSON Schema in the first line, so that [taplo](https://taplo.tamasfe.dev) and Even Better TOML complete and check it.
For an existing file:

    hubbub catalog schema > metrics.schema.json

```toml
#:schema ./metrics.schema.json
```

Most metrics need only `description`, `owner`, `expires`, `epoch`, `mechanism`, `epsilon`, `values` or `kind`, `min_batch` and `limits`.

Epsilons are in nats. In `[a, b)` the end `a` belongs to the range and `b` does not.
Each entry shows a field with an example value; then, in parentheses, what it may be and its default.
A field that is not required and has no default is optional.
"""

_OF_MODELS_IN_CROWDS: Final = """\
In [a crowd](../learn.md#learn-it-in-a-crowd) `central_epsilon` bounds all rounds of a device together; `epsilon` and `min_batch` follow from it and may be left out. Without `rounds` and `rounds_each` a device takes part in 4 of 12 rounds.
"""


def schema() -> str:
    """The JSON Schema of metrics.toml, as the package ships it."""
    return json.dumps(catalog_schema(), indent=1) + "\n"


def page() -> str:
    """The whole page, as Markdown."""
    return "\n".join(
        [
            _INTRODUCTION,
            *_section("Top of the file", _authored_fields(Catalog)),
            *_section("A metric: `[metrics.NAME]`", _authored_fields(Metric)),
            "A metric has one of `values`, `values_file`, `parts`, `domain` and `kind`, as its mechanism requires.",
            f"Beside {_names_text(PROMISE)}, {_names_text(FOLLOWING)} may be left out.\n",
            *_section("A model: `[models.NAME]`", _authored_fields(Learning)),
            f"As in a metric: {', '.join(f'`{name}`' for name in _shared_with_models())}.\n",
            _OF_MODELS_IN_CROWDS,
            *_section("`limits` of a metric", _authored_fields(Limits)),
            *_section("`release` of a metric", _authored_fields(Release)),
            *_section('With `mechanism = "auto"`', own_fields(AUTO)),
            *_mechanisms(),
            *_section("`[caps]`", _authored_fields(Caps)),
            *_section("`[budget]`", _authored_fields(Budget)),
        ]
    )


def _names_text(names: Sequence[str]) -> str:
    return " and ".join([", ".join(f"`{name}`" for name in names[:-1]), f"`{names[-1]}`"])


def _shared_with_models() -> list[str]:
    """Names of the fields that a model has as a metric does, in the order of the page."""
    return [field.name for field in fields_of(Metric) if field.name in AS_METRICS]


def _authored_fields(section: type) -> list[CatalogField]:
    """The fields that people write, with every other way to say one."""
    found = []
    for one in fields_of(section):
        if one.entry.written:
            others = one.entry.others.items()
            found += [
                one,
                *(CatalogField(name=name, entry=says, default=None) for name, says in others),
            ]
    return found


def _mechanisms() -> list[str]:
    """The numbers that each mechanism takes."""
    parameters = {name: own_fields(name) for name in REGISTRY}
    none = [f"`{name}`" for name, fields in parameters.items() if not fields]
    mechanisms: dict[str, list[str]] = {}
    for name, fields in parameters.items():
        for field in fields:
            mechanisms.setdefault(_entry(field), []).append(f"`{name}`")
    groups: dict[str, list[str]] = {}
    for entry, names in mechanisms.items():
        groups.setdefault(", ".join(names), []).append(entry)
    lists = [part for names, entries in groups.items() for part in (f"{names}:\n", *entries, "")]
    return [
        "## Numbers of a mechanism\n",
        f"[Mechanisms](../mechanisms.md) explains them. {', '.join(none)} take none.\n",
        *lists,
    ]


def _section(title: str, fields: Iterable[CatalogField]) -> list[str]:
    return [f"## {title}\n", *(_entry(field) for field in fields), ""]


def _entry(field: CatalogField) -> str:
    """One field as an item of a list: an example, type and range, default, and meaning."""
    entry = field.entry
    default = "" if field.default is None else _default(field.default)
    example = f" = {entry.example}" if entry.example else ""
    needed = "; required" if field.required else default and f"; default {default}"
    return f"- `{field.name}{example}` ({entry.kind.words()}{needed}): {entry.meaning}"


def _default(value: object) -> str:
    """A default as TOML has it; empty for an empty default."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    is_shown = isinstance(value, int | float) or (isinstance(value, str) and value)
    return f"`{value}`" if is_shown else ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
