"""The metrics as a TypeScript module, so that the compiler knows names and values."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from hubbub.authoring import Catalog
from hubbub.catalog import Metric
from hubbub.catalog.experiments import experiments_of
from hubbub.catalog.models.learning import Learning

FIRST_LINE: Final = "// Metrics of the catalog, made by `hubbub catalog codegen`; do not edit."
# An editor's list of more values is useless; beyond, only the client checks values.
MAX_LITERALS: Final = 256
_REPORT: Final = """
/** Reports one value of a metric; an unknown metric or value does not compile. */
export function report<Name extends keyof Metrics>(
  client: Client,
  metric: Name,
  {value},
): Outcome {{
  return client.report(metric, value);
}}
"""
_VALUE: Final = "value: Metrics[Name]"
# For a catalog with metrics that take no value.
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


def typescript_module(catalog: Catalog) -> str:
    """The text of the module."""
    return "\n".join(_lines(catalog))


def _lines(catalog: Catalog) -> Iterator[str]:
    yield FIRST_LINE
    yield 'import type { Client, Outcome } from "hubbub-client";'
    yield ""
    yield "/** What each metric takes. */"
    yield "export interface Metrics {"
    metrics = catalog.metrics.values()
    yield from _fields((metric, _type(metric)) for metric in metrics if not metric.model)
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
    """The types of the arguments of learn()."""
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


def _type(metric: Metric) -> str:
    """The type of the argument of report()."""
    if metric.parts:
        fields = [
            f"readonly {_text(part)}: {'number' if part in metric.ranges else _listed(part_values)}"
            for part, part_values in metric.parts.items()
        ]
        return f"{{ {'; '.join(fields)} }}"
    if metric.values is None and metric.randomizer.VALUES == "strings":
        return "string"
    if metric.values is None or metric.edges:
        return "number"
    open_list = metric.other or len(metric.values) > MAX_LITERALS
    item_type = "string" if open_list else _listed(metric.values)
    return metric.value_kind.TYPESCRIPT.format(item_type)


def _listed(values: Iterable[str]) -> str:
    if sorted(values) == ["false", "true"]:
        return "boolean"
    return _texts(values)


def _texts(values: Iterable[str]) -> str:
    return " | ".join(map(_text, values))


def _text(text: str) -> str:
    """A text in TypeScript, whose quoting JSON shares."""
    return json.dumps(text, ensure_ascii=False)
