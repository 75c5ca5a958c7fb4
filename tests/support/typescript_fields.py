"""The ranges of fields that the TypeScript SDK checks, made of the catalog's declarations.

python -m tests.support.typescript_fields writes client/typescript/src/catalog/fields.ts anew.
"""

import json
from collections.abc import Iterator
from typing import Any

from hubbub.catalog.epochs_and_periods import EPOCH_SECONDS
from hubbub.catalog.limits_and_budgets import Caps, Limits
from hubbub.catalog.metric import Metric
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.values.part_values import PartRange
from hubbub.fields.field import CatalogField, fields_of
from hubbub.fields.rules import int_if_whole
from hubbub.mechanisms.registry import REGISTRY, described_parameters, parameters
from tests.support.node import PACKAGE

PATH = PACKAGE / "src" / "catalog" / "fields.ts"
_HEAD = """/** Made of client/hubbub/catalog by: python -m tests.support.typescript_fields */
import type { Definition } from "./definition.js";
import type { Fields } from "./bundle_checks.js";

"""


def fields_file() -> str:
    """The content of the file."""
    tables = {
        "METRIC": {
            **dict(_fields(Metric)),
            **dict(_fields(Limits)),
            "epoch": [list(EPOCH_SECONDS)],
        },
        "CAPS": dict(_fields(Caps)),
    }
    parts = [_table(name, rules) for name, rules in tables.items()]
    operators = [field.name for field in fields_of(Metric) if field.entry.operator]
    lines = "".join(f"  {json.dumps(name)},\n" for name in operators)
    parts.append(f"export const OPERATORS: readonly string[] = [\n{lines}];\n")
    return _HEAD + "\n".join([*parts, _definition(), _parameters()])


def _definition() -> str:
    """The fields by which a metric, its model and its parts are defined, each with its default."""
    metric = [field for field in fields_of(Metric) if field.entry.in_definition]
    sections = {"metric": metric, "model": fields_of(Learning), "ranges": fields_of(PartRange)}
    tables = (
        f"  {name}: {{\n{''.join(map(_defining, fields))}  }},\n"
        for name, fields in sections.items()
    )
    return (
        'export const DEFINITION: Readonly<Record<"metric" | "model" | "ranges", Definition>> = {\n'
        f"{''.join(tables)}}};\n"
    )


def _defining(field: CatalogField) -> str:
    usual = [] if field.required or field.entry.always else [field.default]
    whole = [True] if field.entry.kind.load is int_if_whole else []
    return f"    {field.name}: {json.dumps([*usual, *whole]).replace('e-0', 'e-')},\n"


def _parameters() -> str:
    """The numbers that mechanisms are built from beside epsilon, and which may have fractions."""
    direct_arguments = {"epsilon", "categories", "sizes", "beginnings", "seed"}
    names = {
        mechanism: [name for name in parameters(mechanism) if name not in direct_arguments]
        for mechanism in REGISTRY
    }
    keys = {name: name if name.isidentifier() else json.dumps(name) for name in names}
    lines = (f"  {keys[name]}: {json.dumps(own)},\n" for name, own in names.items())
    described = [described_parameters(mechanism).items() for mechanism in REGISTRY]
    real = {name for own in described for name, parameter in own if not parameter.whole}
    return (
        "export const PARAMETERS: Readonly<Record<string, readonly string[]>> = {\n"
        f"{''.join(lines)}}};\n\n"
        "export const REAL_PARAMETERS: readonly string[] = "
        f"{json.dumps(sorted(real), indent=2)[:-2]},\n];\n"
    )


def _table(name: str, rules: dict[str, Any]) -> str:
    lines = (
        f"  {field}: {json.dumps(rule).replace('e-0', 'e-')},\n" for field, rule in rules.items()
    )
    return f"export const {name}: Fields = {{\n{''.join(lines)}}};\n"


def _fields(section: type) -> Iterator[tuple[str, list[Any]]]:
    """Each field that holds one number, text or truth: its rule, and its default if it has one."""
    for field in fields_of(section):
        rule = _rule(field.entry.kind.schema())
        if rule is not None and field.name not in ("mechanism", "kind", "kem", "discover"):
            yield field.name, [rule] if field.required else [rule, field.default]


def _rule(schema: dict[str, Any]) -> Any:
    schema = next(iter(schema.get("anyOf", [schema])))
    match schema.get("type"):
        case "integer" | "number" as kind:
            low, high = schema.get("minimum"), schema.get("maximum")
            above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
            return [kind, low if above is None else above, high if below is None else below] + (
                [above is not None, below is not None]
                if above is not None or below is not None
                else []
            )
        case "boolean":
            return "boolean"
        case "string" if schema.get("pattern") == r"\S":
            return "text"
        case None if "enum" in schema:
            return schema["enum"]
    return None


if __name__ == "__main__":
    PATH.write_text(fields_file())
