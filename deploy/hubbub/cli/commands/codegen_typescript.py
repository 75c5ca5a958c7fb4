"""The metrics as a TypeScript module, so that the compiler knows names and values."""

import json
from collections.abc import Iterator
from typing import Final

from hubbub.catalog import Catalog, Metric
from hubbub.catalog.values.vectors import VECTOR
from hubbub.mechanisms.parts import parts_of

FIRST_LINE: Final = "// Metrics of the catalog, made by `hubbub catalog codegen`; do not edit."
# More than an editor lists with profit; beyond them the client alone tells which are right.
_MAX_LITERALS: Final = 256
_REPORT: Final = """
/** Reports one value of a metric; what is no metric, or none of its values, does not compile. */
export function report<Name extends keyof Metrics>(
  client: Client,
  metric: Name,
  value: Metrics[Name],
): Outcome {
  return client.report(metric, value);
}
"""


def typescript_module(catalog: Catalog) -> str:
    """The module's text."""
    return "\n".join(_lines(catalog))


def _lines(catalog: Catalog) -> Iterator[str]:
    yield FIRST_LINE
    yield 'import type { Client, Outcome } from "hubbub";'
    yield ""
    yield "/** What each metric takes. */"
    yield "export interface Metrics {"
    for metric in catalog.metrics.values():
        if metric.model:
            yield f"  // {metric.name}: a model, which this client does not know."
            continue
        # What ends a comment would end this one.
        yield f"  /** {' '.join(metric.description.split()).replace('*/', '* /')} */"
        yield f"  {_text(metric.name)}: {_type(metric)};"
    yield "}"
    yield _REPORT


def _type(metric: Metric) -> str:
    """The type of what report() takes."""
    if metric.kind == VECTOR:
        return "readonly number[] | Float32Array | Float64Array"
    if metric.randomizer.FAMILY == "pairs":
        parts = parts_of(metric.values or ()).items()
        told = [
            f"readonly {_text(part)}: {'number' if part in metric.ranges else _listed(own)}"
            for part, own in parts
        ]
        return f"{{ {'; '.join(told)} }}"
    if metric.values is None and metric.randomizer.VALUES == "strings":
        return "string"
    if metric.values is None or metric.edges:
        return "number"
    open_list = metric.other or len(metric.values) > _MAX_LITERALS
    one = "string" if open_list else _listed(metric.values)
    return f"readonly ({one})[] | ReadonlySet<{one}>" if metric.kind == "set" else one


def _listed(values: tuple[str, ...]) -> str:
    if sorted(values) == ["false", "true"]:
        return "boolean"
    return " | ".join(map(_text, values))


def _text(text: str) -> str:
    """As TypeScript writes it, which JSON is."""
    return json.dumps(text, ensure_ascii=False)
