"""The page of every field of metrics.toml: `python -m docs.reference.catalog` writes it anew."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from hubbub.catalog.choice import AUTO, own_fields
from hubbub.catalog.crowds.central import FOLLOWING, PROMISE
from hubbub.catalog.limits import Limits
from hubbub.catalog.metric import Metric
from hubbub.catalog.metrics_toml.model_table import AS_METRICS
from hubbub.catalog.metrics_toml.schema import catalog_schema
from hubbub.catalog.metrics_toml.source import Catalog
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.policy import Budget, Caps, Release
from hubbub.fields.field import CatalogField, fields_of
from hubbub.mechanisms import REGISTRY

PAGE: Final = Path(__file__).with_name("catalog.md")
_HEAD: Final = ("field", "type and range", "default", "meaning", "example")
_INTRODUCTION: Final = """\
# Every field of metrics.toml

Made by `python -m docs.reference.catalog` from what the code says of its fields; change it there.

`hubbub catalog check metrics.toml` tells every problem of a file at once, with line, field and
remedy. `hubbub catalog new NAME` writes a metric into it, with a comment above each field; a new
file gets its JSON Schema beside it, named in the first line as [taplo](https://taplo.tamasfe.dev)
and Even Better TOML read it, which complete and check while you type. For a file of your own:

    hubbub catalog schema > metrics.schema.json

```toml
#:schema ./metrics.schema.json
```

Epsilons are in nats. In `[a, b)` the end `a` belongs to the range and `b` does not.
"""

_OF_MODELS_IN_CROWDS: Final = """\
In [a crowd](../learn.md#learn-it-in-a-crowd) `central_epsilon` is what all rounds of a device say together; `epsilon` and `min_batch` follow and may be left out, and without `rounds` and `rounds_each` a device is in 4 of 12.
"""


def schema() -> str:
    """The JSON Schema of metrics.toml, as the package ships it."""
    return json.dumps(catalog_schema(), indent=1) + "\n"


def page() -> str:
    """The whole page, as Markdown."""
    return "\n".join(
        [
            _INTRODUCTION,
            *_section("Top of the file", _written(Catalog)),
            *_section("A metric: `[metrics.NAME]`", _written(Metric)),
            "One of `values`, `values_file`, `parts`, `domain` and `kind` is needed, as the mechanism has it.",
            f"Beside {_named(PROMISE)}, {_named(FOLLOWING)} may be left out.\n",
            *_section("A model: `[models.NAME]`", _of_models()),
            _OF_MODELS_IN_CROWDS,
            *_section("`limits` of a metric", _written(Limits)),
            *_section("`release` of a metric", _written(Release)),
            *_section('With `mechanism = "auto"`', own_fields(AUTO)),
            *_mechanisms(),
            *_section("`[caps]`", _written(Caps)),
            *_section("`[budget]`", _written(Budget)),
        ]
    )


def _named(names: Sequence[str]) -> str:
    return " and ".join([", ".join(f"`{name}`" for name in names[:-1]), f"`{names[-1]}`"])


def _of_models() -> list[CatalogField]:
    """What a model says as a metric does, and its own."""
    return [one for one in fields_of(Metric) if one.name in AS_METRICS] + _written(Learning)


def _written(section: type) -> list[CatalogField]:
    """The fields that people write, with every other way to say one."""
    found = []
    for one in fields_of(section):
        if one.entry.written:
            others = one.entry.others.items()
            found += [one, *(CatalogField(name, says, None) for name, says in others)]
    return found


def _mechanisms() -> list[str]:
    """The numbers that each mechanism takes."""
    own = {name: own_fields(name) for name in REGISTRY}
    none = [f"`{name}`" for name, fields in own.items() if not fields]
    rows = [(f"`{name}`", *_row(one)) for name, fields in own.items() for one in fields]
    return [
        "## Numbers of a mechanism\n",
        f"[Mechanisms](../mechanisms.md) says what they are. {', '.join(none)} take none.\n",
        *_table(("mechanism", *_HEAD), rows),
    ]


def _section(title: str, fields: Iterable[CatalogField]) -> list[str]:
    return [f"## {title}\n", *_table(_HEAD, [_row(one) for one in fields])]


def _row(field: CatalogField) -> tuple[str, ...]:
    says = field.entry
    default = "" if field.required or field.default is None else _default(field.default)
    needed = "must be written" if field.required else default or "none"
    example = f"`{says.example}`" if says.example else ""
    return (f"`{field.name}`", says.kind.words(), needed, says.meaning, example)


def _default(held: object) -> str:
    """A default as TOML has it; nothing of an empty one."""
    if isinstance(held, bool):
        return f"`{str(held).lower()}`"
    return f"`{held}`" if isinstance(held, int | float) or (isinstance(held, str) and held) else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines),
        "",
    ]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
