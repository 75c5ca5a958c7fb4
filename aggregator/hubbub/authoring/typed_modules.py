"""Writes a catalog's metrics as a module, so that type checkers of apps know the values."""

import json
import keyword
import re
from collections.abc import Iterable, Iterator
from typing import Final

from hubbub.authoring.metrics_toml.catalog_file import Catalog
from hubbub.catalog import Metric
from hubbub.catalog.experiments import experiments_of
from hubbub.catalog.models.learning import Learning
from hubbub.catalog.values.value_kind_registry import kind_named
from hubbub.errors import BadParameter

FIRST_LINES: Final = {
    "--python": '"""Metrics of the catalog, made by `hubbub catalog codegen`; do not edit."""',
    "--typescript": "// Metrics of the catalog, made by `hubbub catalog codegen`; do not edit.",
}
"""The first line of a module, by the option that makes it."""

# An editor's list of more values is useless; beyond, only the client checks values.
_MAX_LITERALS: Final = 256
_REPORT: Final = """
/** Reports one value of a metric; an unknown metric or value does not compile. */
export function report<Name extends keyof Metrics>(
  client: Client,
  metric: Name,
  {value}
): Outcome {{
  return client.report(metric, value);
}}
"""
_VALUE: Final = "value: Metrics[Name],"
# For a catalog with metrics that take no value. No comma may follow a rest parameter.
_PERHAPS_VALUE: Final = "...[value]: Metrics[Name] extends undefined ? [] : [value: Metrics[Name]]"
_LEARN: Final = """
/** Reports one person to a model; an unknown feature or label does not compile. */
export function learn<Name extends keyof Models>(
  client: Client,
  model: Name,
  ...[features, label]: Models[Name]
): Outcome {
  return client.learn(model, features, label);
}
"""
_ARM: Final = """
/** The arm that the app shows on this device; empty if its bundle has none. */
export function arm<Name extends keyof Experiments>(
  client: Client,
  experiment: Name,
): Experiments[Name] {
  return client.arm(experiment) as Experiments[Name];
}
"""


def python_module(catalog: Catalog) -> Iterator[str]:
    """Yields a Python module's lines. Raises BadParameter if two metrics get the same name."""
    # Names of metrics are in small letters, so no name that is imported may be.
    yield FIRST_LINES["--python"]
    yield "# ruff: noqa"
    yield "# fmt: off"
    yield ""
    types = " ".join(metric.value_kind.PYTHON for metric in catalog.metrics.values())
    if names := [name for name in ("Collection", "Sequence") if f"{name}[" in types]:
        yield f"from collections.abc import {', '.join(names)}"
    yield "from datetime import timedelta as Timedelta"
    parted = any(metric.parts for metric in catalog.metrics.values())
    experiments = experiments_of(catalog.metrics)
    typing = ["Final", "Literal", *["TypedDict"] * parted, *["cast"] * bool(experiments)]
    yield f"from typing import {', '.join(typing)}"
    yield ""
    yield f"from hubbub.client import {'Client, ' * bool(experiments)}TypedMetric"
    named: dict[str, str] = {}
    for metric in catalog.metrics.values():
        name = _identifier(metric.name)
        if name in named:
            raise BadParameter(
                f'metrics "{named[name]}" and "{metric.name}" would both be called {name} in '
                "Python; rename one"
            )
        named[name] = metric.name
        yield ""
        value_type = _python_type(metric)
        if metric.parts:
            value_type = f"_{name}"
            yield f"{value_type} = TypedDict({value_type!r}, {_type_of_parts(metric)})"
        yield f"{name}: Final = TypedMetric[{value_type}]({metric.name!r})"
        yield repr(metric.description)
    for experiment in experiments.values():
        name = f"arm_{_identifier(experiment.name)}"
        if name in named:
            raise BadParameter(
                f'the arm of experiment "{experiment.name}" would be called {name} in Python, as '
                f'metric "{named[name]}" is; rename one'
            )
        arms = f"Literal[{', '.join(map(repr, [*experiment.arms, '']))}]"
        yield ""
        yield f"def {name}(client: Client) -> {arms}:"
        yield "    'The arm that the app shows on this device; empty if its bundle has none.'"
        yield f"    return cast({arms}, client.arm({experiment.name!r}))"
    yield ""


def _type_of_parts(metric: Metric) -> str:
    """The type of each part's value, by the part's name."""
    types = []
    for part, part_values in metric.parts.items():
        kind = f"Literal[{', '.join(map(repr, part_values))}]"
        if part in metric.ranges:
            kind = kind_named(metric.ranges[part].kind).PYTHON
        elif sorted(part_values) == ["false", "true"]:
            kind = "bool"
        types.append(f"{part!r}: {kind}")
    return f"{{{', '.join(types)}}}"


def _identifier(name: str) -> str:
    """A metric's Python name, with underscores for characters that names cannot have."""
    identifier = re.sub(r"[^a-z0-9_]", "_", name)
    return f"{identifier}_" if keyword.iskeyword(identifier) else identifier


def _python_type(metric: Metric) -> str:
    if metric.values is None and not metric.kind:
        return "str" if metric.randomizer.VALUES == "strings" else "float"
    values = metric.values or ()
    annotation = f"Literal[{', '.join(map(repr, values))}]"
    if metric.other or len(values) > _MAX_LITERALS:
        annotation = "str"
    elif sorted(values) == ["false", "true"]:
        annotation = "bool"
    return metric.value_kind.PYTHON.format(annotation)


def typescript_module(catalog: Catalog) -> Iterator[str]:
    """Yields the lines of a module for TypeScript."""
    yield FIRST_LINES["--typescript"]
    yield 'import type { Client, Outcome } from "hubbub-client";'
    yield ""
    yield "/** What each metric takes. */"
    yield "export interface Metrics {"
    metrics = catalog.metrics.values()
    yield from _fields((metric, _typescript_type(metric)) for metric in metrics if not metric.model)
    yield "}"
    valueless = any(metric.value_kind.VALUELESS for metric in metrics)
    yield _REPORT.format(value=_PERHAPS_VALUE if valueless else _VALUE)
    if experiments := experiments_of(catalog.metrics):
        yield "/** The arms of each experiment. */"
        yield "export interface Experiments {"
        for experiment in experiments.values():
            yield f"  {_text(experiment.name)}: {_texts([*experiment.arms, ''])};"
        yield "}"
        yield _ARM
    models = [(metric, _learn_arguments(metric.model)) for metric in metrics if metric.model]
    if not models:
        return
    yield "/** What each model takes of a person: features, and the label. */"
    yield "export interface Models {"
    yield from _fields(models)
    yield "}"
    yield _LEARN


def _fields(models: Iterable[tuple[Metric, str]]) -> Iterator[str]:
    for metric, kind in models:
        # The end mark of a comment must not appear in it.
        yield f"  /** {' '.join(metric.description.split()).replace('*/', '* /')} */"
        yield f"  {_text(metric.name)}: {kind};"


def _learn_arguments(model: Learning) -> str:
    features = [
        (feature.name, _texts(map(str, feature.says)) if feature.is_listed else "number | boolean")
        for feature in model.features
    ]
    fields = "; ".join(f"readonly {_text(name)}: {kind}" for name, kind in features)
    return f"[features: {{ {fields} }}, label: {_label(model)}]"


def _label(model: Learning) -> str:
    if model.kind == "softmax":
        return _texts(model.classes)
    if model.kind != "logistic":
        return "number"
    texts = _texts((model.positive, model.negative)) if model.negative else "string"
    return f"{texts} | boolean | 0 | 1" if model.positive else "boolean | 0 | 1"


def _typescript_type(metric: Metric) -> str:
    if metric.parts:
        fields = [
            f"readonly {_text(part)}: "
            + ("number" if part in metric.ranges else _quoted_list(part_values))
            for part, part_values in metric.parts.items()
        ]
        return f"{{ {'; '.join(fields)} }}"
    if metric.values is None and metric.randomizer.VALUES == "strings":
        return "string"
    if metric.values is None or metric.edges:
        return "number"
    open_list = metric.other or len(metric.values) > _MAX_LITERALS
    item_type = "string" if open_list else _quoted_list(metric.values)
    return metric.value_kind.TYPESCRIPT.format(item_type)


def _quoted_list(values: Iterable[str]) -> str:
    if sorted(values) == ["false", "true"]:
        return "boolean"
    return _texts(values)


def _texts(values: Iterable[str]) -> str:
    return " | ".join(map(_text, values))


def _text(text: str) -> str:
    """A text in TypeScript, whose quoting JSON shares."""
    return json.dumps(text, ensure_ascii=False)
