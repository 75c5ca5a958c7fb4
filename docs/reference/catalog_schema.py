"""The JSON Schema of metrics.toml (draft 2020-12), for editors that complete and check it.

It refuses problems of single fields: unknown names, types, ranges. Conflicts of several fields, and
files, are only checked when the catalog is read. TOML dates are texts for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hubbub.authoring.auto_mechanism import SOLE, own_fields
from hubbub.authoring.crowds.crowd_metric_fields import FOLLOWING
from hubbub.authoring.metrics_toml.catalog_file import Catalog
from hubbub.authoring.metrics_toml.model_table import AS_METRICS
from hubbub.catalog.crowds.central_conflicts import PROMISE
from hubbub.catalog.mechanism_choice import AUTO
from hubbub.catalog.metric import DOMAINS, Metric
from hubbub.catalog.models.learning import Learning
from hubbub.fields.field import field_schema, fields_of, object_schema
from hubbub.fields.kinds import Schema
from hubbub.fields.rules import NAME
from hubbub.mechanisms import REGISTRY

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
# Where `auto` weighs nothing, as one mechanism answers (auto_mechanism.py).
_ONE_ANSWERS: Final[Sequence[Schema]] = (
    *({"required": [way]} for way in ("parts", "coordinates", "rate")),
    {"properties": {"kind": {"const": "set"}}, "required": ["kind"]},
    {"properties": {"domain": {"const": DOMAINS["strings"]}}, "required": ["domain"]},
)


def catalog_schema() -> Schema:
    """Schema of a whole file, for the currently registered mechanisms."""
    top = object_schema(Catalog)
    top["properties"]["metrics"] |= {
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "additionalProperties": {"$ref": "#/$defs/metric"},
    }
    top["properties"]["models"] |= {
        "propertyNames": {"pattern": f"^{NAME.pattern}$"},
        "additionalProperties": {"$ref": "#/$defs/model"},
    }
    top["required"] = [name for name in top["required"] if name != "metrics"]
    top["anyOf"] = [{"required": ["metrics"]}, {"required": ["models"]}]
    return {
        "$schema": _DRAFT,
        "title": "metrics.toml, a catalog of hubbub",
        **top,
        "$defs": {"metric": _metric(), "model": _model()},
    }


def _metric() -> Schema:
    """Schema of a [metrics.NAME] table: all fields, then what each mechanism refuses."""
    mechanisms = (AUTO, *REGISTRY)
    shared, schemas = _common_fields(), {name: _mechanism_fields(name) for name in mechanisms}
    for sole in SOLE:
        schemas[AUTO] = (
            schemas[sole.NAME] | schemas[AUTO]
        )  # of hashes the sketch may have more than the tree
    meanings: dict[str, dict[str, list[str]]] = {}
    for mechanism, parameters in schemas.items():
        for name, schema in parameters.items():
            meanings.setdefault(name, {}).setdefault(schema["description"], []).append(mechanism)
    list_names = {
        name
        for parameters in schemas.values()
        for name, schema in parameters.items()
        if schema["type"] == "array"
    }
    numbers: Schema = {
        name: {
            "type": "array" if name in list_names else "number",
            "description": _number_description(lines),
        }
        for name, lines in meanings.items()
    }
    return {
        "type": "object",
        # `steps` is a list of a funnel, and a number of some mechanisms.
        "properties": {**shared, **numbers}
        | {name: {"anyOf": [shared[name], numbers[name]]} for name in shared.keys() & numbers},
        "additionalProperties": False,
        "dependentRequired": {**{name: [*PROMISE] for name in PROMISE}, "edges": ["kind"]},
        **_required(
            [field.name for field in fields_of(Metric) if field.entry.written and field.required]
        ),
        "allOf": [
            _branch(
                mechanism, schemas[mechanism], {name: shared.get(name, False) for name in numbers}
            )
            for mechanism in mechanisms
        ],
    }


def _model() -> Schema:
    """Schema of a [models.NAME] table."""
    shared = [field for field in fields_of(Metric) if field.name in AS_METRICS]
    schema = object_schema(Learning)
    return schema | {
        "properties": {field.name: field_schema(field) for field in shared} | schema["properties"],
        "dependentRequired": {name: [*PROMISE] for name in PROMISE},
        **_required([*(field.name for field in shared if field.required), *schema["required"]]),
    }


def _required(names: Iterable[str], *, unless: Sequence[Schema] = ()) -> Schema:
    """Schema of required fields; some only without a central promise, from which they follow.

    `unless` has further cases in which those are not required.
    """
    always = [name for name in names if name not in FOLLOWING]
    alone = [name for name in names if name in FOLLOWING]
    follows: Schema = {"anyOf": [{"required": ["central_epsilon"]}, *unless]}
    return {"required": always} | (
        {"if": {"not": follows}, "then": {"required": alone}} if alone else {}
    )


def _common_fields() -> Schema:
    """Fields that every metric has."""
    properties: Schema = {}
    for field in fields_of(Metric):
        if field.entry.written:
            properties[field.name] = field_schema(field)
            for name, other in field.entry.others.items():
                properties[name] = {"description": other.meaning, **other.kind.schema()}
    return properties


def _mechanism_fields(mechanism: str) -> Schema:
    return {own_field.name: field_schema(own_field) for own_field in own_fields(mechanism)}


def _branch(mechanism: str, parameters: Schema, others: Schema) -> Schema:
    """Schema if this is the mechanism: its own numbers and its kind of values.

    others: the schema of each mechanism's numbers where they are not its own.
    """
    required = [own_field.name for own_field in own_fields(mechanism) if own_field.required]
    needed = _required(required, unless=_ONE_ANSWERS if mechanism == AUTO else ())
    return {
        "if": {"properties": {"mechanism": {"const": mechanism}}, "required": ["mechanism"]},
        "then": {
            "properties": {**others, **parameters},
            **needed,
            **_domain(mechanism, parameters),
        },
    }


def _domain(mechanism: str, parameters: Schema) -> Schema:
    [field] = (item for item in fields_of(Metric) if item.entry.others)
    ways = [name for name in (field.name, *field.entry.others) if name not in parameters]
    every = ["categories", "numbers", "strings"]
    kinds = every if mechanism == AUTO else [REGISTRY[mechanism].VALUES]
    options: list[Schema] = []
    for kind in kinds:
        if kind in DOMAINS:
            options.append(
                _one_way("domain", ways) | {"properties": {"domain": {"const": DOMAINS[kind]}}}
            )
        else:
            options += [_one_way(way, ways) for way in ways if way in _ways_of(mechanism)]
    if kinds != ["strings"] and _ways_of(mechanism) not in ({"parts"}, {"coordinates"}):
        options.append(_one_way("kind", [*ways, "rate", "kind"]))
    if "coordinates" in _ways_of(mechanism):
        options.append(_one_way("rate", [*ways, "rate"]))
    # A metric with both fields would otherwise match the kind alone, too.
    return {"oneOf": options}


def _ways_of(mechanism: str) -> set[str]:
    """Fields by which values can be listed."""
    if mechanism == AUTO:
        return {"values", "values_file", "parts", "coordinates", "steps", "weeks"}
    alone = {"pairs": {"parts"}, "vector": {"coordinates"}}
    return alone.get(REGISTRY[mechanism].FAMILY, {"values", "values_file", "steps", "weeks"})


def _one_way(way: str, ways: Iterable[str]) -> Schema:
    """Schema for one way to declare the domain, and no other."""
    return {"required": [way], "not": {"anyOf": [{"required": [w]} for w in ways if w != way]}}


def _number_description(meanings: Mapping[str, list[str]]) -> str:
    """Description of a number: once if all mechanisms agree, otherwise per mechanism."""
    if len(meanings) == 1:
        return next(iter(meanings))
    return "\n".join(f"{', '.join(names)}: {sentence}" for sentence, names in meanings.items())
